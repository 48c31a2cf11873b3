// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the episodes of a run, applies the limit to alarms that do not come from the kernel's
//! programs, and computes the verdicts at the end.

use std::collections::BTreeMap;

use emud_monitor::event::{Alarm, Clear, Dropped, Resource, Watched};
use emud_monitor::log::{PerResource, Verdict};

/// The source that numbers the episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The programs in the kernel, which apply the limit themselves.
    Kernel,
    /// Pressure stall information.
    Psi,
    /// A report through the socket: an event without an end.
    Socket,
}

#[derive(Debug)]
pub struct Tally {
    limit: u32,
    episodes: u64,
    /// Number in the log, and resource, of the open episodes.
    open: BTreeMap<(Origin, u64), (u64, Resource)>,
    alarms: PerResource<u64>,
    since_reset: PerResource<u32>,
    suppressed: PerResource<u64>,
    /// When no alarm had been suppressed yet, CLOCK_MONOTONIC.
    none_suppressed_mono_ns: PerResource<u64>,
}

impl Tally {
    /// Creates a tally with up to `limit` alarms per resource until a reset.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            episodes: 0,
            open: BTreeMap::new(),
            alarms: each(|_| 0),
            since_reset: each(|_| 0),
            suppressed: each(|_| 0),
            none_suppressed_mono_ns: each(|_| 0),
        }
    }

    /// Numbers an alarm; `None` if it is beyond the limit. An alarm that the kernel reported is
    /// within the limit: other reports must not hide it.
    pub fn alarm(&mut self, origin: Origin, mut alarm: Alarm) -> Option<Alarm> {
        let raised = self.since_reset.entry(alarm.resource).or_default();
        if origin != Origin::Kernel && *raised >= self.limit {
            *self.suppressed.entry(alarm.resource).or_default() += 1;
            return None;
        }
        *raised += 1;
        *self.alarms.entry(alarm.resource).or_default() += 1;
        self.episodes += 1;
        if origin != Origin::Socket {
            let key = (origin, alarm.episode);
            self.open.insert(key, (self.episodes, alarm.resource));
        }
        alarm.episode = self.episodes;
        Some(alarm)
    }

    /// Numbers the end of an episode like its alarm; `None` if that was suppressed here.
    pub fn clear(&mut self, origin: Origin, mut clear: Clear) -> Option<Clear> {
        (clear.episode, _) = self.open.remove(&(origin, clear.episode))?;
        Some(clear)
    }

    /// Returns the number in the log of an episode that is open.
    pub fn number(&self, origin: Origin, episode: u64) -> Option<u64> {
        Some(self.open.get(&(origin, episode))?.0)
    }

    /// Resets the limit of every resource.
    pub fn reset(&mut self) {
        self.since_reset = each(|_| 0);
    }

    /// Returns the number of alarm lines by resource.
    pub fn alarms(&self) -> &PerResource<u64> {
        &self.alarms
    }

    /// Returns the number of alarm lines of all resources.
    pub fn total(&self) -> u64 {
        self.alarms.values().sum()
    }

    /// Returns the number of alarms beyond the limit, in the kernel and here.
    pub fn suppressed(&self, dropped: &Dropped) -> PerResource<u64> {
        let kernel = Resource::ALL.into_iter().zip(dropped.suppressed);
        kernel
            .map(|(resource, n)| (resource, n + self.suppressed.get(&resource).unwrap_or(&0)))
            .collect()
    }

    /// Notes that `dropped` was read at this time or later.
    pub fn look(&mut self, dropped: &Dropped, mono_ns: u64) {
        let suppressed = self.suppressed(dropped).into_iter();
        let none = suppressed.filter(|(_, n)| *n == 0);
        let seen = none.map(|(resource, _)| (resource, mono_ns));
        self.none_suppressed_mono_ns.extend(seen);
    }

    /// Returns for each resource with alarms beyond the limit a time before the first of them.
    pub fn suppressed_since(&self, dropped: &Dropped) -> PerResource<u64> {
        let suppressed = self.suppressed(dropped).into_iter();
        let some = suppressed.filter(|(_, n)| *n > 0);
        some.map(|(resource, _)| (resource, self.none_suppressed_mono_ns[&resource]))
            .collect()
    }

    /// Returns the number of open episodes.
    pub fn in_contention(&self) -> PerResource<u64> {
        let going_on = |resource| {
            let of_it = self.open.values().filter(|(_, of)| *of == resource);
            of_it.count() as u64
        };
        each(going_on)
    }

    /// Returns the number of events for which the kernel did not run a program.
    pub fn skipped(dropped: &Dropped) -> PerResource<u64> {
        Resource::ALL.into_iter().zip(dropped.skipped).collect()
    }

    /// Returns the verdict of each resource. A lost record may have been an alarm of any of them:
    /// then none is clean.
    pub fn verdicts(
        &self,
        dropped: &Dropped,
        watched: impl Fn(Resource) -> Watched,
    ) -> PerResource<Verdict> {
        let suppressed = self.suppressed(dropped);
        let some = |of: &PerResource<u64>, resource| of.get(&resource) > Some(&0);
        let seen = |resource| some(&self.alarms, resource) || some(&suppressed, resource);
        each(|resource| match watched(resource) {
            _ if seen(resource) => Verdict::Contended,
            Watched::Yes if dropped.ring_full > 0 => Verdict::Unknown,
            Watched::Yes if resource == Resource::Disk && dropped.disks_unknown > 0 => {
                Verdict::Unknown
            }
            Watched::Yes if dropped.skipped[resource as usize] > 0 => Verdict::Unknown,
            Watched::Yes => Verdict::Clean,
            Watched::Unknown => Verdict::Unknown,
            Watched::No => Verdict::NotWatched,
        })
    }
}

fn each<T>(value: impl Fn(Resource) -> T) -> PerResource<T> {
    let pair = |resource| (resource, value(resource));
    Resource::ALL.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emud_monitor::event::{Scope, Unit};

    fn alarm(resource: Resource, episode: u64) -> Alarm {
        Alarm {
            episode,
            mono_ns: 2,
            resource,
            scope: Scope::Cpu { cpu: 0 },
            since_mono_ns: 1,
            value: 1,
            threshold: 1,
            unit: Unit::Ns,
            hook: "perf/cpu-clock".into(),
            shares: vec![],
            rest: 0.0,
        }
    }

    fn clear(resource: Resource, episode: u64) -> Clear {
        Clear {
            episode,
            mono_ns: 3,
            resource,
            scope: Scope::Cpu { cpu: 0 },
            since_mono_ns: 1,
            until_mono_ns: 3,
            hook: "perf/cpu-clock".into(),
            shares: vec![],
            rest: 0.0,
        }
    }

    fn all_watched(_: Resource) -> Watched {
        Watched::Yes
    }

    #[test]
    fn reports_beyond_the_limit_are_counted_until_a_reset() {
        let mut tally = Tally::new(2);
        let report = |tally: &mut Tally| {
            let report = alarm(Resource::Application, 0);
            tally.alarm(Origin::Socket, report).is_some()
        };
        let raised: Vec<bool> = (0..5).map(|_| report(&mut tally)).collect();
        assert_eq!(raised, [true, true, false, false, false]);
        let suppressed = tally.suppressed(&Dropped::default());
        assert_eq!(suppressed[&Resource::Application], 3);
        assert_eq!(tally.total(), 2);
        tally.reset();
        assert!(report(&mut tally));
        assert_eq!(tally.in_contention()[&Resource::Application], 0);
    }

    /// Alarms within the limit may come after the first one beyond it.
    #[test]
    fn suppression_is_possible_since_the_last_look_without_any() {
        let mut tally = Tally::new(1);
        let mut dropped = Dropped::default();
        tally.look(&dropped, 10);
        tally.look(&dropped, 20);
        dropped.suppressed[Resource::Network as usize] = 1;
        tally.look(&dropped, 30);
        for episode in 1..3 {
            tally.alarm(Origin::Psi, alarm(Resource::Cpu, episode));
        }
        tally.reset();
        dropped.suppressed[Resource::Network as usize] = 2;
        tally.look(&dropped, 40);
        let since = tally.suppressed_since(&dropped);
        let wanted = [(Resource::Cpu, 30), (Resource::Network, 20)];
        assert_eq!(since, PerResource::from(wanted));
    }

    #[test]
    fn the_kernels_alarms_are_never_hidden_by_reports() {
        let mut tally = Tally::new(1);
        let psi = tally.alarm(Origin::Psi, alarm(Resource::Cpu, 1));
        let kernel = tally.alarm(Origin::Kernel, alarm(Resource::Cpu, 1));
        assert!(psi.is_some() && kernel.is_some());
        assert!(tally.alarm(Origin::Psi, alarm(Resource::Cpu, 2)).is_none());
        assert!(tally.clear(Origin::Psi, clear(Resource::Cpu, 2)).is_none());
    }

    #[test]
    fn an_end_has_the_number_of_its_alarm() {
        let mut tally = Tally::new(9);
        let psi = tally.alarm(Origin::Psi, alarm(Resource::Cpu, 7)).unwrap();
        let kernel = tally
            .alarm(Origin::Kernel, alarm(Resource::Cpu, 7))
            .unwrap();
        assert_ne!(psi.episode, kernel.episode);
        assert_eq!(tally.in_contention()[&Resource::Cpu], 2);
        let end = tally.clear(Origin::Kernel, clear(Resource::Cpu, 7));
        assert_eq!(end.unwrap().episode, kernel.episode);
        let end = tally.clear(Origin::Psi, clear(Resource::Cpu, 7));
        assert_eq!(end.unwrap().episode, psi.episode);
        assert_eq!(tally.in_contention()[&Resource::Cpu], 0);
    }

    #[test]
    fn a_resource_is_clean_only_if_nothing_can_have_been_missed() {
        let mut tally = Tally::new(3);
        let mut dropped = Dropped::default();
        dropped.suppressed[Resource::Network as usize] = 1;
        assert!(
            tally
                .alarm(Origin::Kernel, alarm(Resource::Disk, 1))
                .is_some()
        );
        let watched = |resource| match resource {
            Resource::Memory => Watched::Unknown,
            Resource::Emulator => Watched::No,
            _ => Watched::Yes,
        };
        let verdicts = tally.verdicts(&dropped, watched);
        for (resource, expected) in [
            (Resource::Cpu, Verdict::Clean),
            (Resource::Network, Verdict::Contended),
            (Resource::Memory, Verdict::Unknown),
            (Resource::Disk, Verdict::Contended),
            (Resource::Application, Verdict::Clean),
            (Resource::Emulator, Verdict::NotWatched),
        ] {
            assert_eq!(verdicts[&resource], expected, "{resource:?}");
        }

        let beyond = Dropped {
            disks_unknown: 1,
            ..Dropped::default()
        };
        let verdicts = Tally::new(3).verdicts(&beyond, all_watched);
        assert_eq!(verdicts[&Resource::Disk], Verdict::Unknown);
        assert_eq!(verdicts[&Resource::Cpu], Verdict::Clean);

        let mut skipped = Dropped::default();
        skipped.skipped[Resource::Emulator as usize] = 1;
        let verdicts = Tally::new(3).verdicts(&skipped, all_watched);
        assert_eq!(verdicts[&Resource::Emulator], Verdict::Unknown);
        assert_eq!(verdicts[&Resource::Disk], Verdict::Clean);

        let lost = Dropped {
            ring_full: 1,
            ..Dropped::default()
        };
        let verdicts = Tally::new(3).verdicts(&lost, all_watched);
        assert!(
            verdicts
                .values()
                .all(|verdict| *verdict == Verdict::Unknown)
        );
    }
}
