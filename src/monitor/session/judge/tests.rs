// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::datapath::radio::READ_LATE;
use emud_monitor::event::{Share, Unit};

use super::*;

const S: u64 = SECOND_NS;
const MS: u64 = 1_000_000;
/// From second 10 to second 20 of the clock.
const MEASURED: [u64; 2] = [10 * S, 20 * S];

fn episode(resource: Resource, scope: Scope, since: u64, until: Option<u64>) -> Episode {
    Episode {
        alarm: Alarm {
            episode: 1,
            mono_ns: since + MS,
            resource,
            scope,
            since_mono_ns: since,
            value: 2,
            threshold: 1,
            unit: Unit::Ns,
            hook: "perf/cpu-clock".into(),
            shares: vec![Share {
                group: format!("hog {since}"),
                share: 0.9,
            }],
            rest: 0.1,
        },
        until_mono_ns: until,
    }
}

fn cpu(since: u64, until: u64) -> Episode {
    episode(Resource::Cpu, Scope::Cpu { cpu: 1 }, since, Some(until))
}

fn late(netns: u32, since: u64) -> Episode {
    let scope = Scope::Link {
        failure: "late",
        what: None,
        name: "eth0".into(),
        ifindex: 2,
        netns,
    };
    episode(Resource::Emulator, scope, since, Some(since + MS))
}

fn links_in(netns: u32, devices: Option<&[u32]>) -> OwnLinks {
    OwnLinks {
        netns: [netns].into(),
        devices: devices.map(|devices| devices.iter().copied().collect()),
    }
}

#[derive(Default)]
struct Case {
    episodes: Vec<Episode>,
    never_measured: bool,
    suppressed: PerResource<u64>,
    suppressed_since: PerResource<u64>,
    ring_full: u64,
    blind: Vec<String>,
    unwatched: bool,
    own: Option<OwnLinks>,
    facts: Facts,
}

impl Case {
    fn of(episodes: impl IntoIterator<Item = Episode>) -> Self {
        Self {
            episodes: episodes.into_iter().collect(),
            ..Self::default()
        }
    }

    fn judge(&self) -> Judgement {
        judge(&Evidence {
            episodes: &self.episodes,
            measured: (!self.never_measured).then_some(MEASURED),
            ended_mono_ns: 21 * S,
            suppressed: &self.suppressed,
            suppressed_since: &self.suppressed_since,
            ring_full: self.ring_full,
            blind: self.blind.clone(),
            own: self.own.as_ref(),
            facts: &self.facts,
            watched: !self.unwatched,
        })
    }

    fn verdict(&self) -> RunVerdict {
        self.judge().verdict
    }
}

#[test]
fn what_nobody_watched_is_not_clean() {
    let case = Case {
        unwatched: true,
        ..Case::default()
    };
    assert_eq!(case.verdict(), RunVerdict::Unwatched);
    // A program may still report contention, and a link may be removed.
    let case = Case {
        episodes: vec![cpu(12 * S, 13 * S)],
        ..case
    };
    assert_eq!(case.verdict(), RunVerdict::Contended);
    let case = Case {
        facts: Facts {
            invalid: vec!["the link went away".into()],
            ..Facts::default()
        },
        ..case
    };
    assert_eq!(case.verdict(), RunVerdict::Invalid);
}

fn verdict(episodes: impl IntoIterator<Item = Episode>) -> RunVerdict {
    Case::of(episodes).verdict()
}

#[test]
fn contention_counts_if_it_touches_the_measured_phase() {
    use RunVerdict::{Clean, Contended};
    assert_eq!(verdict([]), Clean);
    assert_eq!(verdict([cpu(8 * S, 9 * S)]), Clean);
    assert_eq!(verdict([cpu(20 * S + 1, 21 * S)]), Clean);
    assert_eq!(verdict([cpu(9 * S, 10 * S)]), Contended);
    assert_eq!(verdict([cpu(20 * S, 21 * S)]), Contended);
    assert_eq!(verdict([cpu(1, 30 * S)]), Contended);
}

#[test]
fn spans_keep_their_times_and_seconds_are_of_the_measured_phase() {
    let judgement = Case::of([cpu(9 * S, 11 * S + 1), cpu(13 * S + 5, 13 * S + 9)]).judge();
    assert_eq!(judgement.contended_seconds, [0, 1, 3]);
    let first = &judgement.contention[0];
    assert_eq!(
        (first.since_mono_ns, first.until_mono_ns),
        (9 * S, 11 * S + 1)
    );
    assert_eq!(first.duration_ns, 2 * S + 1);
    assert_eq!((&*first.resource, &*first.what), ("cpu", "cpu 1"));
    assert_eq!(first.by[0].group, "hog 9000000000");
}

#[test]
fn an_episode_that_goes_on_lasts_until_the_end() {
    let open = episode(Resource::Disk, Scope::Psi { of: "io" }, 18 * S, None);
    let judgement = Case::of([open]).judge();
    assert_eq!(judgement.contention[0].until_mono_ns, 21 * S);
    // The measured phase ends at the beginning of its second 10.
    assert_eq!(judgement.contended_seconds, [8, 9, 10]);
}

#[test]
fn episodes_close_together_are_one() {
    let judgement = Case::of([
        cpu(11 * S + 99 * MS, 13 * S),
        cpu(10 * S, 11 * S),
        cpu(13 * S + 100 * MS, 14 * S),
        episode(Resource::Cpu, Scope::Cpu { cpu: 0 }, 11 * S, Some(12 * S)),
    ])
    .judge();
    let times = (judgement.contention.iter()).map(|s| (&*s.what, s.since_mono_ns / S));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [("cpu 1", 10), ("cpu 0", 11), ("cpu 1", 13)]
    );
    let joined = &judgement.contention[0];
    assert_eq!(joined.duration_ns, 3 * S);
    assert_eq!(joined.by[0].group, "hog 11099000000");
}

#[test]
fn a_late_emulator_makes_a_run_invalid() {
    let mut latest = late(7, 12 * S);
    latest.alarm.value = 9_260_000;
    let judgement = Case::of([late(7, 13 * S), latest, late(7, 11 * S)]).judge();
    assert_eq!(judgement.verdict, RunVerdict::Invalid);
    assert_eq!(
        judgement.invalid,
        [
            "packets left eth0 late, and no contention explains it (3 alarms of up to 9.3 ms, the first \
          1.000 s into the measured phase)"
        ]
    );
    assert_eq!(verdict([late(7, 8 * S)]), RunVerdict::Clean);
}

#[test]
fn lateness_alone_is_told_from_every_other_failure() {
    let mut dropped = late(7, 12 * S);
    let Scope::Link { failure, .. } = &mut dropped.alarm.scope else {
        panic!()
    };
    *failure = "dropped";
    let of = |episodes: &[Episode]| only_late(&Case::of(episodes.iter().cloned()).judge());
    assert!(of(&[late(7, 12 * S)]));
    // With contention it is explained, so no reason at all.
    assert!(!of(&[late(7, 12 * S), cpu(11 * S, 13 * S)]));
    assert!(!of(&[]));
    assert!(!of(&[dropped.clone()]));
    assert!(!of(&[late(7, 12 * S), dropped]));
    let mut case = Case::of([late(7, 12 * S)]);
    case.facts.invalid.push("the holder of up ended".into());
    assert!(!only_late(&case.judge()));
    let mut case = Case::of([late(7, 12 * S)]);
    case.suppressed.insert(Resource::Emulator, 1);
    assert!(!only_late(&case.judge()));
    // Frames of a medium.
    let of_medium = |what: &str| {
        let mut case = Case::default();
        case.facts.failures.push(Failure {
            since_mono_ns: 11 * S,
            until_mono_ns: 12 * S,
            explained_by: LOAD,
            of: "medium wlan0".into(),
            number: 3,
            what: what.to_owned().into(),
        });
        only_late(&case.judge())
    };
    assert!(of_medium("frames were delivered more than 5 ms late"));
    assert!(of_medium(READ_LATE));
    assert!(!of_medium("frames were dropped before they could be read"));
}

#[test]
fn packets_that_a_bottleneck_did_not_know_are_told_from_every_other_failure() {
    let disordered = |number| Failure {
        since_mono_ns: 11 * S,
        until_mono_ns: 12 * S,
        explained_by: LOAD,
        of: "link wire, up".into(),
        number,
        what: DISORDERED.into(),
    };
    let mut case = Case::of([]);
    assert_eq!(only_disordered(&case.judge()), None);
    case.facts.failures = vec![disordered(2), disordered(40)];
    assert_eq!(only_disordered(&case.judge()), Some(42));
    let mut late = Case::of([late(7, 12 * S)]);
    late.facts.failures = case.facts.failures.clone();
    assert_eq!(only_disordered(&late.judge()), None);
    case.facts.invalid.push("the holder of up ended".into());
    assert_eq!(only_disordered(&case.judge()), None);
}

#[test]
fn drops_of_the_engine_are_told_from_every_other_failure() {
    let counted = |what: &'static str| Failure {
        since_mono_ns: 11 * S,
        until_mono_ns: 12 * S,
        explained_by: LOAD,
        of: "link wire, up".into(),
        number: 3,
        what: what.into(),
    };
    let of = |failures: &[&'static str], episodes: &[Episode]| {
        let mut case = Case::of(episodes.iter().cloned());
        case.facts.failures = failures.iter().map(|what| counted(what)).collect();
        only_dropped(&case.judge())
    };
    let mut alarm = late(7, 12 * S);
    if let Scope::Link { failure, .. } = &mut alarm.alarm.scope {
        *failure = "dropped";
    }
    let late = [late(7, 12 * S)];
    assert!(of(&[ENGINE_DROPPED], &[]));
    assert!(of(&[], &[alarm]));
    assert!(of(&[ENGINE_DROPPED], &late));
    assert!(!of(&[], &late));
    assert!(!of(&[], &[]));
    let other = "packets passed without emulation";
    assert!(!of(&[ENGINE_DROPPED, other], &[]));
}

#[test]
fn links_of_others_do_not_count() {
    let case = Case {
        own: Some(links_in(8, None)),
        ..Case::of([late(7, 12 * S)])
    };
    assert_eq!(case.verdict(), RunVerdict::Clean);
    // In the namespace of the host others have links beside that of the run.
    for (devices, want) in [([2, 9], RunVerdict::Invalid), ([3, 9], RunVerdict::Clean)] {
        let case = Case {
            own: Some(links_in(7, Some(&devices))),
            ..Case::of([late(7, 12 * S)])
        };
        assert_eq!(case.verdict(), want, "{devices:?}");
    }
}

/// A run that ends at contention must not end because of what leaves it clean.
#[test]
fn what_lowers_the_verdict_ends_a_run() {
    let at = |episode: &Episode, after| lowers(episode, [10 * S, 10 * S + after], None);
    assert!(!at(&cpu(8 * S, 9 * S), S));
    assert!(at(&cpu(9 * S, 10 * S), S));
    let open = |since| episode(Resource::Cpu, Scope::Cpu { cpu: 1 }, since, None);
    // Its end may be on its way for some ticks.
    assert!(!at(&open(9 * S), MS));
    assert!(at(&open(9 * S), S));
    assert!(at(&open(10 * S), MS));
    let of_others = |netns| {
        lowers(
            &late(netns, 11 * S),
            [10 * S, 12 * S],
            Some(&links_in(8, None)),
        )
    };
    assert_eq!([of_others(8), of_others(7)], [true, false]);
}

#[test]
fn contention_explains_a_late_emulator() {
    use RunVerdict::{Contended, Invalid};
    let hog = || cpu(12 * S, 13 * S);
    assert_eq!(verdict([hog(), late(7, 12 * S + MS)]), Contended);
    assert_eq!(verdict([hog(), late(7, 13 * S + 500 * MS)]), Contended);
    assert_eq!(verdict([hog(), late(7, 13 * S + 501 * MS)]), Invalid);
    assert_eq!(verdict([hog(), late(7, 11 * S)]), Invalid);
    assert_eq!(
        Case::of([hog(), late(7, 11 * S)]).judge().contention.len(),
        1
    );
}

/// Otherwise a run with a late emulator would be clean.
#[test]
fn contention_before_the_measured_phase_counts_if_the_emulator_was_late_in_it() {
    let judgement = Case::of([cpu(9 * S, 10 * S - MS), late(7, 10 * S + 2 * MS)]).judge();
    assert_eq!(judgement.verdict, RunVerdict::Contended);
    assert_eq!(judgement.contention.len(), 1);
    assert_eq!(judgement.contended_seconds, [0]);
}

#[test]
fn counters_of_the_emulator_are_explained_as_alarms_are() {
    let failure = Failure {
        since_mono_ns: 11 * S,
        until_mono_ns: 12 * S,
        explained_by: LOAD,
        of: "link left, up".into(),
        number: 3,
        what: "packets were dropped by the engine".into(),
    };
    let mut case = Case::default();
    case.facts.failures.push(failure.clone());
    let said = "link left, up: 3 packets were dropped by the engine";
    assert_eq!(case.judge().invalid, [said]);
    // Of all intervals together.
    let mut all = Case::default();
    all.facts.failures = vec![failure.clone(); 3];
    let said = "link left, up: 9 packets were dropped by the engine";
    assert_eq!(all.judge().invalid, [said]);
    case.episodes
        .push(cpu(11 * S + 400 * MS, 11 * S + 700 * MS));
    assert_eq!(case.verdict(), RunVerdict::Contended);
}

/// Only a resource that the emulator needs while packets pass.
#[test]
fn contention_of_another_resource_explains_nothing() {
    use RunVerdict::{Contended, Invalid};
    let device = |name: &str| Scope::Device {
        name: name.into(),
        ifindex: 3,
        netns: 9,
    };
    let disk = Scope::Disk {
        name: "sda".into(),
        major: 8,
        minor: 0,
    };
    let paging = Scope::Paging {
        direction: "page-in",
    };
    let program = Scope::Application {
        name: "player".into(),
    };
    for (resource, scope, want) in [
        (Resource::Cpu, Scope::Cpu { cpu: 1 }, Contended),
        (Resource::Cpu, Scope::Psi { of: "cpu" }, Contended),
        (Resource::Steal, Scope::Cpu { cpu: 1 }, Contended),
        (Resource::Network, device("eth1"), Contended),
        (Resource::Memory, paging, Contended),
        (Resource::Disk, disk, Invalid),
        (Resource::Disk, Scope::Psi { of: "io" }, Invalid),
        (Resource::Application, program, Invalid),
    ] {
        let span = || episode(resource, scope.clone(), 12 * S, Some(13 * S));
        let judgement = Case::of([span(), late(7, 12 * S + MS)]).judge();
        assert_eq!(judgement.verdict, want, "{scope:?}");
        // It is contention all the same.
        assert_eq!(judgement.contention.len(), 1, "{scope:?}");
        assert_eq!(verdict([span()]), Contended, "{scope:?}");
    }
}

#[test]
fn packets_that_are_never_emulated_are_not_explained() {
    let mut case = Case::of([cpu(11 * S, 13 * S)]);
    case.facts.failures.push(Failure {
        since_mono_ns: 11 * S,
        until_mono_ns: 12 * S,
        explained_by: &[],
        of: "link left, up".into(),
        number: 30,
        what: "packets passed without emulation, which are not IP".into(),
    });
    let judgement = case.judge();
    assert_eq!(judgement.verdict, RunVerdict::Invalid);
    let said = "link left, up: 30 packets passed without emulation, which are not IP";
    assert_eq!(judgement.invalid, [said]);
    // A medium that writes a record waits for the disk.
    case.facts.failures[0].explained_by = LOAD_AND_DISK;
    let disk = |until| episode(Resource::Disk, Scope::Psi { of: "io" }, 11 * S, Some(until));
    case.episodes = vec![disk(12 * S)];
    assert_eq!(case.verdict(), RunVerdict::Contended);
    case.facts.failures[0].explained_by = LOAD;
    assert_eq!(case.verdict(), RunVerdict::Invalid);
}

#[test]
fn what_nobody_saw_is_not_clean() {
    use RunVerdict::{Contended, Invalid};
    let lost = Case {
        ring_full: 1,
        ..Case::of([cpu(11 * S, 12 * S)])
    };
    assert_eq!(lost.verdict(), Invalid);
    let blind = Case {
        blind: vec!["memory CANNOT BE WATCHED here".into()],
        ..Case::default()
    };
    assert_eq!(blind.verdict(), Invalid);
    let never = Case {
        never_measured: true,
        ..Case::of([cpu(11 * S, 12 * S)])
    };
    assert_eq!(
        never.judge().invalid,
        ["the measured phase was not reached"]
    );

    let suppressed = [(Resource::Cpu, 3), (Resource::Disk, 0)].into();
    let mut beyond = Case {
        suppressed,
        suppressed_since: [(Resource::Cpu, 15 * S)].into(),
        ..Case::default()
    };
    assert_eq!(beyond.verdict(), Invalid);
    beyond.episodes.push(cpu(11 * S, 12 * S));
    assert_eq!(beyond.verdict(), Contended);
    // No alarm after that one was within the limit: nothing is known of the rest.
    let seconds = beyond.judge().contended_seconds;
    // After a reset, or from the kernel, others may be.
    beyond.episodes.push(cpu(18 * S, 18 * S + MS));
    let since: Vec<u64> = [1, 2].into_iter().chain(5..=10).collect();
    assert_eq!(beyond.judge().contended_seconds, since);
    beyond.episodes.pop();
    beyond.suppressed = BTreeMap::default();
    beyond.suppressed_since = BTreeMap::default();
    let known = beyond.judge().contended_seconds;
    assert_eq!(seconds[0], known[0]);
    assert!(known.len() < seconds.len(), "{known:?} {seconds:?}");
    assert_eq!(
        seconds.len() as u64,
        seconds.last().unwrap() - seconds[0] + 1
    );
}
