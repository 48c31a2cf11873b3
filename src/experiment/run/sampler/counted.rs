// SPDX-License-Identifier: MIT OR Apache-2.0
//! What links counted in an interval, and the emulator's failures in it.

use emud_monitor::event::Resource;
use emud_monitor::log::{ClassSample, Line, Sample};

use super::Work;
use crate::datapath::show::report::Report;
use crate::experiment::run::counts::{Counts, of_class, sample};
use crate::experiment::scenario::Link;
use crate::host::now_ns;
use crate::monitor::session::experiment::{DISORDERED, ENGINE_DROPPED, Failure, LOAD};
use crate::profile::Offload;

impl Work {
    /// Returns the packets so far.
    pub(super) fn link(&mut self, link: &Link, report: &Report) -> u64 {
        let mut packets = 0;
        for (name, own) in [("up", &report.up), ("down", &report.down)] {
            let Some(own) = own else { continue };
            let counts = Counts::of(&own.link, Some(own), report.mono_ns);
            packets += counts.counted.packets;
            if let Some(before) = self.interval(link, None, name, &counts) {
                self.failures(link, name, &before, &counts);
            }
        }
        for class in &report.matching.links {
            for (name, of) in [("up", &class.up), ("down", &class.down)] {
                let Some(of) = of else { continue };
                let counts = Counts::of(of, None, report.mono_ns);
                packets += counts.counted.packets;
                // What the engine counts is in the link itself.
                if let Some(before) = self.interval(link, Some(&class.name), name, &counts) {
                    self.failures(link, &format!("{}, {name}", class.name), &before, &counts);
                }
            }
        }
        self.classes(link, report);
        packets
    }

    /// Writes a line for each class of a bottleneck in which packets wait.
    fn classes(&mut self, link: &Link, report: &Report) {
        let all = (report.bottlenecks.iter()).flat_map(|b| b.classes.iter().map(move |c| (b, c)));
        for (bottleneck, class) in all.filter(|(_, class)| class.queue.is_some()) {
            let (mono_ns, now) = (report.mono_ns, of_class(class));
            let key = (
                link.name.clone(),
                bottleneck.name.clone(),
                class.name.clone(),
            );
            let before = self.classes_before.insert(key, (mono_ns, now));
            let Some((since_ns, before)) = before.filter(|_| self.parts.lines) else {
                continue;
            };
            self.parts.log.line(Line::Class(Box::new(ClassSample {
                mono_ns,
                link: link.name.clone(),
                bottleneck: bottleneck.name.clone(),
                class: class.name.clone(),
                interval_ns: mono_ns.saturating_sub(since_ns),
                counted: now.since(&before),
                backlog_packets: class.backlog_packets,
                backlog_bytes: class.backlog_bytes,
            })));
        }
    }

    /// Writes and returns a line for the interval since the previous check.
    fn interval(
        &mut self,
        link: &Link,
        class: Option<&str>,
        direction: &'static str,
        now: &Counts,
    ) -> Option<Counts> {
        let key = (link.name.clone(), class.map(str::to_owned), direction);
        let before = self.before.insert(key, now.clone())?;
        if let Some(sample) = sample(&before, now).filter(|_| self.parts.lines) {
            self.parts.log.line(Line::Sample(Box::new(Sample {
                link: link.name.clone(),
                direction: direction.to_owned(),
                class: class.map(str::to_owned),
                ..sample
            })));
        }
        Some(before)
    }

    fn failures(&mut self, link: &Link, direction: &str, before: &Counts, now: &Counts) {
        let of = format!("link {}, {direction}", link.name);
        let since = (self.foreign_since.entry(of.clone())).or_insert_with(|| before.clone());
        let foreign = foreign(since, now, self.last);
        let failed = failed(before, now, link.profile.offload).into_iter();
        let failed = failed.map(|failing| (before.mono_ns, failing));
        let failed = failed
            .chain([foreign])
            .filter(|(_, (number, ..))| *number > 0);
        self.found
            .failures
            .extend(
                failed.map(|(since_mono_ns, (number, explained_by, what))| Failure {
                    since_mono_ns,
                    // The counters were read after the time of the report.
                    until_mono_ns: now_ns(),
                    explained_by,
                    of: of.clone(),
                    number,
                    what: what.into(),
                }),
            );
    }
}

/// A number of packets, the resources that can be the cause, and what they are.
type Failing = (u64, &'static [Resource], &'static str);

/// Returns the failures of an interval.
fn failed(before: &Counts, now: &Counts, offload: Offload) -> [Failing; 6] {
    let grown = now.counted.since(&before.counted);
    let failed = now.failed.saturating_sub(before.failed);
    // A link that has just been changed has no count of before; with `keep` it is intended.
    let super_packets = (now.super_packets.zip(before.super_packets))
        .filter(|_| offload != Offload::Keep)
        .map_or(0, |(now, before)| now.saturating_sub(before));
    [
        (grown.engine_dropped, LOAD, ENGINE_DROPPED),
        (
            grown.untouched.saturating_sub(failed),
            LOAD,
            "packets passed without emulation",
        ),
        (
            failed,
            &[],
            "packets passed without emulation, since the kernel could not hand them to the engine",
        ),
        (
            now.disordered.saturating_sub(before.disordered),
            LOAD,
            DISORDERED,
        ),
        (
            super_packets,
            &[],
            "super-packets had one fate each, where the link decides packet by packet",
        ),
        (
            now.unaltered.saturating_sub(before.unaltered),
            &[],
            "packets were to be copied or damaged and could not be",
        ),
    ]
}

/// Protocols of the network itself, such as LLDP and spanning trees, send a packet now and then. More
/// of them, and more than a hundredth of all, are traffic of a program: in a second or more, whatever the interval of
/// samples, and in what is left at the last one. Returns since when, too.
fn foreign(since: &mut Counts, now: &Counts, last: bool) -> (u64, Failing) {
    const SECOND_NS: u64 = 1_000_000_000;
    let since_ns = since.mono_ns;
    let others = now.counted.since(&since.counted).packets;
    let not_ip = now.not_ip.saturating_sub(since.not_ip);
    let is_judged = last || now.mono_ns.saturating_sub(since_ns) >= SECOND_NS;
    if is_judged {
        *since = now.clone();
    }
    let number = match is_judged && not_ip >= 10 && not_ip > others / 100 {
        true => not_ip,
        false => 0,
    };
    let what = "packets were not emulated, which are not IP: only engine hold delays them at ingress, and at egress \
                without their socket";
    (since_ns, (number, &[], what))
}

#[cfg(test)]
mod tests {
    use emud_monitor::log::Counted;

    use super::*;

    #[test]
    fn what_load_cannot_cause() {
        let [mut before, mut now] = [Counts::default(), Counts::default()];
        before.super_packets = Some(0);
        now.super_packets = Some(5);
        (now.disordered, now.failed, now.unaltered) = (4, 6, 7);
        now.counted = Counted {
            engine_dropped: 1,
            untouched: 8,
            ..Counted::default()
        };
        let of = |offload| {
            failed(&before, &now, offload).map(|(number, explained_by, _)| (number, explained_by))
        };
        let none = &[][..];
        let mut want = [
            (1, LOAD),
            (2, LOAD),
            (6, none),
            (4, LOAD),
            (5, none),
            (7, none),
        ];
        assert_eq!(of(Offload::Auto), want);
        want[4].0 = 0;
        assert_eq!(of(Offload::Keep), want);
    }

    #[test]
    fn traffic_is_not_the_networks_own() {
        assert_eq!(of_a_second(9, 0, 1), [0]);
        assert_eq!(of_a_second(10, 0, 1), [10]);
        assert_eq!(of_a_second(10, 1_000, 1), [0]);
        assert_eq!(of_a_second(11, 1_000, 1), [11]);
        // The number of checks makes no difference.
        for checks in [2, 10, 100] {
            let found: u64 = of_a_second(200, 1_000, checks).iter().sum();
            assert_eq!(found, 200, "{checks}");
            let found: u64 = of_a_second(8, 0, checks).iter().sum();
            assert_eq!(found, 0, "{checks}");
        }
        // The beginning of a second decides nothing, its end and that of the run do.
        let mut since = Counts::default();
        let mut now = Counts::default();
        (now.mono_ns, now.not_ip) = (10_000_000, 12);
        assert_eq!(foreign(&mut since, &now, false).1.0, 0);
        assert_eq!(foreign(&mut since.clone(), &now, true).1.0, 12);
        now.mono_ns = 1_000_000_000;
        now.counted.packets = 2_012;
        assert_eq!(foreign(&mut since, &now, false).1.0, 0);
    }

    /// Returns what each of `checks` checks finds in a second with `packets`.
    fn of_a_second(not_ip: u64, packets: u64, checks: u64) -> Vec<u64> {
        let mut since = Counts::default();
        let check = |check: u64| {
            let mut now = Counts::default();
            (now.mono_ns, now.not_ip) = (check * 1_000_000_000 / checks, check * not_ip / checks);
            now.counted.packets = check * packets / checks;
            let (_, (number, explained_by, _)) = foreign(&mut since, &now, false);
            // A busy host makes no packet another protocol.
            assert_eq!(explained_by, []);
            number
        };
        (1..=checks).map(check).collect()
    }
}
