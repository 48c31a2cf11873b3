// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay against the definition of each criterion, computed directly.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::calibrate::{Findings, Outcome, Tally, replay, suggest};
use crate::config::{Class, Config, Cpu, Disk, Memory, Network};
use crate::criteria::Measured;
use crate::event::Watched;
use crate::record::{Event, Header, Interval, Kind, NetClass, Reader, StopReason, Trailer, Writer};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const START: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn header() -> Header {
    let mut header = crate::record::tests::header();
    (header.start_mono_ns, header.hooks) = (START, vec![]);
    let bios = header.watched.insert("disk-bios".into(), Watched::Unknown);
    assert_eq!(bios, Some(Watched::Yes));
    header
}

fn findings(events: &[Event], config: &Config) -> Findings {
    let mut writer = Writer::new(vec![], &header()).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    let trailer = Trailer {
        end_mono_ns: START + 1_000 * MS,
        reason: StopReason::Duration,
        records: writer.counts(),
        lost: BTreeMap::new(),
        disks_unknown: 0,
        unpaired: 0,
    };
    let file = writer.finish(&trailer).unwrap();
    replay(Reader::new(&file[..]).unwrap(), config).unwrap()
}

fn total<'a>(findings: &'a Findings, criterion: &str) -> &'a Tally {
    &findings.measures[criterion].total
}

fn measured(name: &str) -> &'static Measured {
    let mut all = Measured::all().map(|(_, measured)| measured);
    all.find(|measured| measured.name == name).unwrap()
}

fn packet(after_ns: u64, bytes: u32, ifindex: u32, class: NetClass) -> Event {
    Event::Packet {
        time_ns: START + after_ns,
        bytes,
        ifindex,
        netns: 7,
        class,
    }
}

fn busy(cpu: u16, begin_ms: u64, end_ms: u64) -> Event {
    Event::CpuBusy {
        cpu,
        interval: interval(begin_ms, end_ms),
    }
}

fn interval(begin_ms: u64, end_ms: u64) -> Interval {
    Interval {
        begin_ns: START + begin_ms * MS,
        end_ns: START + end_ms * MS,
        open_begin: false,
        open_end: false,
    }
}

fn network(window: Duration, external_bit_s: u64) -> Config {
    Config {
        network: Some(Network {
            window,
            external_bit_s: Some(external_bit_s),
            ..Network::default()
        }),
        ..Config::default()
    }
}

/// The sum over (t - window, t], by definition.
fn sum_at(packets: &[(u64, u32)], window_ns: u64, t: u64) -> u64 {
    let inside = packets
        .iter()
        .filter(|(p, _)| *p <= t && *p + window_ns > t);
    inside.map(|(_, bytes)| u64::from(*bytes)).sum()
}

/// Episodes of a sum that reaches `threshold` at a packet, and did not at any one within a window before; returns when
/// the first begins.
fn episodes(packets: &[(u64, u32)], window_ns: u64, threshold: u64) -> (u64, Option<u64>) {
    let mut over: Vec<u64> = packets.iter().map(|(t, _)| *t).collect();
    over.retain(|t| sum_at(packets, window_ns, *t) >= threshold);
    over.dedup();
    let begins = |t: &&u64| {
        !over
            .iter()
            .any(|before| before < t && before + window_ns > **t)
    };
    let begun = over.iter().filter(begins).count();
    (begun as u64, over.first().copied())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_sliding_window_is_its_definition(
        // Multiples of 0.1 ms, so that packets often leave the window at the time of another
        // packet.
        gaps in prop::collection::vec((0u64..6, 1u32..2_000), 1..120),
        window_us in (10u64..30).prop_map(|n| n * 100),
        kilobit in 1u64..200_000,
        shuffle in prop::collection::vec(0usize..4, 120),
    ) {
        let mut now = 0;
        let mut times = vec![];
        for (gap, bytes) in &gaps {
            now += gap * 100_000;
            times.push((now, *bytes));
        }
        let mut events: Vec<Event> = times
            .iter()
            .map(|(t, bytes)| packet(*t, *bytes, 3, NetClass::External))
            .collect();
        // CPUs write a little out of order.
        for (i, by) in shuffle.iter().enumerate().take(events.len()) {
            let j = (i + by).min(events.len() - 1);
            events.swap(i, j);
        }
        let window = Duration::from_micros(window_us);
        let window_ns = window_us * 1_000;
        let rate = kilobit * 1_000;
        let found = findings(&events, &network(window, rate));
        let external = total(&found, "external");
        let threshold = (rate as u128 * u128::from(window_ns)).div_ceil(8_000_000_000) as u64;
        prop_assert_eq!(external.threshold, Some(threshold));
        let (alarms, first) = episodes(&times, window_ns, threshold);
        prop_assert_eq!((external.alarms, external.first_ns), (alarms, first));
        let largest = times.iter().map(|(t, _)| sum_at(&times, window_ns, *t)).max();
        prop_assert_eq!(external.distribution.max(), largest);
        prop_assert_eq!(external.distribution.count(), times.len() as u64);
        prop_assert_eq!(found.late, 0);
    }

    /// Judges interval criteria CPU by CPU.
    #[test]
    fn intervals_at_least_as_long_as_theta_raise_one_alarm_each(
        lengths in prop::collection::vec((0u16..4, 1u64..500), 1..60),
        theta_ms in 1u64..500,
    ) {
        let mut now = [0; 4];
        let mut events = vec![];
        let mut long = vec![];
        for (cpu, length) in &lengths {
            let begin = now[usize::from(*cpu)];
            now[usize::from(*cpu)] += length + 1;
            events.push(busy(*cpu, begin, begin + length));
            if *length >= theta_ms {
                long.push((begin + theta_ms) * MS);
            }
        }
        let theta = Duration::from_millis(theta_ms);
        let config = Config {
            cpu: Some(Cpu { theta, ..Cpu::default() }),
            ..Config::default()
        };
        let found = findings(&events, &config);
        let cpu = total(&found, "cpu");
        prop_assert_eq!(cpu.alarms, long.len() as u64);
        prop_assert_eq!(cpu.first_ns, long.iter().min().copied());
        let longest = lengths.iter().map(|(_, l)| l * MS).max();
        prop_assert_eq!(cpu.distribution.max(), longest);
    }
}

#[test]
fn classes_follow_the_configuration_and_members_their_names() {
    let name = |ifindex, name: &str| Event::Interface {
        ifindex,
        netns: 7,
        name: name.into(),
    };
    let events = [
        name(1, "eth0"),
        packet(0, 1_000, 1, NetClass::External),
        name(2, "wg0"),
        packet(MS, 500, 2, NetClass::Internal),
        name(3, "eth1"),
        packet(2 * MS, 9_000, 3, NetClass::External),
        packet(3 * MS, 1_500, 4, NetClass::Internal),
    ];
    let mut config = network(Duration::from_millis(10), 1_200_000);
    let net = config.network.as_mut().unwrap();
    net.classes = BTreeMap::from([
        ("wg0".into(), Class::External),
        ("eth1".into(), Class::Ignored),
    ]);
    net.devices = BTreeMap::from([("wg0".into(), 400_000)]);
    let found = findings(&events, &config);
    let external = &found.measures["external"];
    assert_eq!(external.total.distribution.max(), Some(1_500));
    // 1.2 Mbit/s over 10 ms are 1500 bytes: reached, not exceeded.
    assert_eq!(
        (external.total.alarms, external.total.first_ns),
        (1, Some(MS))
    );
    let names: Vec<&String> = external.members.keys().collect();
    assert_eq!(names, ["eth0", "wg0"]);
    // 400 kbit/s over 10 ms are 500 bytes.
    assert_eq!(external.members["wg0"].alarms, 1);
    assert_eq!(external.members["eth0"].threshold, None);
    let internal = &found.measures["internal"];
    // Its name was lost: the name is made of namespace and index.
    assert_eq!(internal.members.keys().next().unwrap(), "4@7");
}

#[test]
fn a_device_with_a_window_is_judged_in_it() {
    let name = |ifindex, name: &str| Event::Interface {
        ifindex,
        netns: 7,
        name: name.into(),
    };
    let mut events = vec![name(1, "eth0"), name(2, "eth1")];
    let both = |n: u64| [1, 2].map(|of| packet(10 * n * MS, 1_000, of, NetClass::External));
    events.extend((0..10).flat_map(both));
    let mut config = network(Duration::from_millis(10), 1_000_000_000);
    let net = config.network.as_mut().unwrap();
    net.devices = BTreeMap::from(["eth0", "eth1"].map(|name| (name.to_owned(), 800_000)));
    net.device_windows = BTreeMap::from([("eth1".to_owned(), Duration::from_millis(50))]);
    let found = findings(&events, &config);
    let external = &found.measures["external"];
    assert_eq!(external.window_ns, Some(10 * MS));
    assert_eq!(external.total.distribution.max(), Some(2_000));
    let of = |name: &str| {
        let tally = &external.members[name];
        let max = tally.distribution.max();
        (tally.window_ns, tally.threshold, max, tally.first_ns)
    };
    assert_eq!(of("eth0"), (None, Some(1_000), Some(1_000), Some(0)));
    let fifth = Some(40 * MS);
    assert_eq!(of("eth1"), (Some(50 * MS), Some(5_000), Some(5_000), fifth));
}

#[test]
fn disks_have_thresholds_of_their_own() {
    let disk = |device, name: &str| Event::Disk {
        device,
        name: name.into(),
    };
    let never_empty = |device, begin, end| Event::DiskBusy {
        device,
        interval: interval(begin, end),
    };
    let (sda, sdb, sr0) = (8 << 20, 8 << 20 | 16, 11 << 20);
    let events = [
        disk(sda, "sda"),
        never_empty(sda, 0, 60),
        disk(sdb, "sdb"),
        never_empty(sdb, 0, 60),
        disk(sr0, "sr0"),
        never_empty(sr0, 0, 900),
        never_empty(253 << 20 | 1, 0, 1),
    ];
    let config = Config {
        disk: Some(Disk {
            theta: Duration::from_millis(100),
            devices: BTreeMap::from([
                ("sdb".into(), Some(Duration::from_millis(50))),
                ("sr0".into(), None),
            ]),
        }),
        ..Config::default()
    };
    let found = findings(&events, &config);
    let disk = &found.measures["disk"];
    let names: Vec<&String> = disk.members.keys().collect();
    assert_eq!(names, ["253:1", "sda", "sdb"]);
    assert_eq!((disk.total.alarms, disk.total.first_ns), (1, Some(50 * MS)));
    assert_eq!(
        (disk.members["sda"].alarms, disk.members["sdb"].alarms),
        (0, 1)
    );
    // The kernel rejected one of the two hooks for disks.
    assert_eq!(disk.watched, Watched::Unknown);
}

#[test]
fn page_ins_and_page_outs_are_apart() {
    let ins = |t, pages| Event::PageIn {
        time_ns: START + t,
        pages,
    };
    let outs = |t, pages| Event::PageOut {
        time_ns: START + t,
        pages,
    };
    let events = [ins(0, 3), outs(MS, 40), ins(10 * MS, 2), outs(9 * MS, 2)];
    let config = Config {
        memory: Some(Memory {
            page_ins: Some(4),
            page_outs: Some(42),
            ..Memory::default()
        }),
        ..Config::default()
    };
    let found = findings(&events, &config);
    // The first page-in has left the window of 10 ms before the second.
    assert_eq!(total(&found, "page-in").alarms, 0);
    assert_eq!(total(&found, "page-in").distribution.max(), Some(3));
    assert_eq!(total(&found, "page-out").alarms, 1);
    assert_eq!(total(&found, "page-out").first_ns, Some(9 * MS));
}

#[test]
fn what_is_switched_off_is_not_judged() {
    let config = Config {
        cpu: None,
        network: None,
        memory: None,
        disk: None,
        ..Config::default()
    };
    let found = findings(
        &[busy(0, 0, 900), packet(0, 1, 1, NetClass::External)],
        &config,
    );
    assert!(found.measures.is_empty());
}

#[test]
fn losses_are_summed_up() {
    let lost = |kind, count| Event::Lost {
        time_ns: START,
        kind,
        count,
    };
    let events = [
        lost(Kind::Packet, 3),
        lost(Kind::CpuBusy, 1),
        lost(Kind::Packet, 2),
    ];
    let found = findings(&events, &Config::default());
    let expected = BTreeMap::from([(Kind::Packet, 5), (Kind::CpuBusy, 1)]);
    assert_eq!(found.lost, expected);
}

fn cpu_of(milliseconds: &[u64]) -> Findings {
    let mut begin = 0;
    let mut events = vec![];
    for length in milliseconds {
        events.push(busy(0, begin, begin + length));
        begin += length + 1;
    }
    findings(&events, &Config::default())
}

fn suggested(good: &[&Findings], bad: &[&Findings]) -> (Option<u64>, Outcome) {
    let of =
        |all: &[&Findings]| -> Vec<_> { all.iter().map(|f| f.measures["cpu"].clone()).collect() };
    let (good, bad) = (of(good), of(bad));
    let good: Vec<_> = good.iter().collect();
    let bad: Vec<_> = bad.iter().collect();
    let s = suggest(measured("cpu"), &good, &bad, 0.25);
    (s.theta, s.outcome)
}

#[test]
fn a_threshold_is_above_all_good_and_below_all_bad_values() {
    let (good, better) = (cpu_of(&[1, 40, 2]), cpu_of(&[7]));
    assert_eq!(
        suggested(&[&good, &better], &[]),
        (Some(50 * MS), Outcome::Margin)
    );
    let (bad, worse) = (cpu_of(&[1, 90]), cpu_of(&[800]));
    // sqrt(40 * 90) = 60.
    assert_eq!(
        suggested(&[&good], &[&bad, &worse]),
        (Some(60 * MS), Outcome::Between)
    );
    // A contended recording whose bottleneck was not the CPU.
    assert_eq!(
        suggested(&[&good], &[&better, &bad]),
        (Some(60 * MS), Outcome::PartlyBetween)
    );
    assert_eq!(
        suggested(&[&good], &[&better]),
        (Some(50 * MS), Outcome::Overlap)
    );
    assert_eq!(
        suggested(&[&cpu_of(&[])], &[]),
        (None, Outcome::NothingSeen)
    );
}

#[test]
fn nothing_is_suggested_from_what_could_not_be_watched() {
    let found = findings(&[], &Config::default());
    let measure = &found.measures["page-in"];
    let s = suggest(measured("page-in"), &[measure], &[], 0.25);
    assert_eq!((s.theta, s.outcome), (None, Outcome::Unknown));
    // Watched, and no page was swapped: one page is already more than under good load.
    let measure = &found.measures["page-out"];
    let s = suggest(measured("page-out"), &[measure], &[], 0.25);
    assert_eq!((s.theta, s.outcome), (Some(1), Outcome::Margin));
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// The suggestion raises no alarm on the good recording, and one on the bad recording.
    #[test]
    fn suggestions_hold_on_the_recordings_they_come_from(
        good in prop::collection::vec((0u64..2_000_000, 1u32..70_000), 1..60),
        factor in 2u32..9,
    ) {
        let of = |factor: u32| {
            let mut now = 0;
            let mut events = vec![];
            for (gap, bytes) in &good {
                now += gap;
                events.push(packet(now, bytes * factor, 3, NetClass::External));
            }
            events
        };
        let window = Duration::from_millis(10);
        let measure = |events: &[Event], rate| {
            findings(events, &network(window, rate)).measures["external"].clone()
        };
        let (calm, wild) = (measure(&of(1), 1), measure(&of(factor), 1));
        let alone = suggest(measured("external"), &[&calm], &[], 0.0).theta.unwrap();
        prop_assert_eq!(measure(&of(1), alone).total.alarms, 0);
        let both = suggest(measured("external"), &[&calm], &[&wild], 0.25);
        prop_assert_eq!(both.outcome, Outcome::Between);
        let theta = both.theta.unwrap();
        prop_assert_eq!(measure(&of(1), theta).total.alarms, 0);
        prop_assert!(measure(&of(factor), theta).total.alarms > 0);
    }
}
