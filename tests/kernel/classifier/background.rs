// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue with background against a simulation of every packet, to the nanosecond.

use emud::profile::{Background, Profile, Queue, Wire};
use support::chance::Random;

use super::rules::bench_of;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Every packet of the background, in order, without end.
struct Arrivals {
    rows: Vec<abi::emud_stretch>,
    base: u64,
    period: u64,
    row: usize,
    packet: u64,
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.packet == self.rows[self.row].count {
            (self.row, self.packet) = (self.row + 1, 0);
            if self.row == self.rows.len() {
                (self.row, self.base) = (0, self.base + self.period);
            }
        }
        let row = &self.rows[self.row];
        let at = self.base + row.at_ns + self.packet * row.gap_ns;
        self.packet += 1;
        Some(at)
    }
}

/// A queue that knows nothing of stretches. Its clock is in ns times 2^shift.
struct Simulation {
    link: abi::emud_link,
    background: std::iter::Peekable<Arrivals>,
    busy: u128,
    admitted: u64,
    dropped: u64,
}

impl Simulation {
    fn new(compiled: &Compiled) -> Self {
        let mut rows = compiled.stretches.clone().expect("a background");
        rows.pop();
        let arrivals = Arrivals {
            rows,
            base: compiled.link.background.epoch_ns,
            period: compiled.link.background.period_ns,
            row: 0,
            packet: 0,
        };
        Self {
            link: compiled.link,
            background: arrivals.peekable(),
            busy: 0,
            admitted: 0,
            dropped: 0,
        }
    }

    fn ns(&self) -> u64 {
        (self.busy >> self.link.rate_shift) as u64
    }

    /// Returns whether a packet of either kind is admitted.
    fn packet(&mut self, at: u64, work: u128) -> bool {
        let start = at - self.link.queueing.burst_ns;
        let mut busy = self.busy;
        if self.ns() < start {
            busy = u128::from(start) << self.link.rate_shift;
        }
        let wait = ((busy >> self.link.rate_shift) as u64).saturating_sub(at);
        busy += work;
        let sent = ((busy >> self.link.rate_shift) as u64).saturating_sub(at);
        if wait > self.link.queue_wait_ns || sent > self.link.queue_busy_ns {
            return false;
        }
        self.busy = busy;
        true
    }

    /// When a packet of the link leaves the wire.
    fn send(&mut self, at: u64, len: usize) -> Option<u64> {
        let service = u128::from(self.link.background.service_ns) << self.link.rate_shift;
        while let Some(background) = self.background.next_if(|b| *b <= at) {
            match self.packet(background, service) {
                true => self.admitted += 1,
                false => self.dropped += 1,
            }
        }
        let work = len as u128 * u128::from(self.link.rate_mult);
        self.packet(at, work).then(|| self.ns().max(at))
    }
}

fn shared(rate: u64, queue: Queue, background: Background) -> Link {
    link(|l| {
        l.rate = Some(rate);
        l.queue = queue;
        l.background = Some(background);
    })
}

fn sources(load: f64, sources: u32, on_ms: u64, off_ms: u64) -> Background {
    Background {
        load,
        sources,
        on_ns: on_ms * MS,
        off_ns: off_ms * MS,
        ..Background::default()
    }
}

fn bytes(packets: u64) -> Queue {
    Queue {
        bytes: Some(packets * 1514),
        ..Queue::default()
    }
}

fn links() -> Vec<(&'static str, Link)> {
    let time = Queue {
        time_ns: Some(30 * MS),
        ..Queue::default()
    };
    let mut burst = shared(10_000_000, bytes(20), sources(0.9, 3, 30, 30));
    burst.wire = Wire {
        burst: Some(20_000),
        ..Wire::default()
    };
    let mut short = sources(0.8, 2, 40, 40);
    short.packet_bytes = 210;
    short.shape = 1.2;
    vec![
        (
            "light",
            shared(10_000_000, bytes(20), sources(0.3, 10, 50, 50)),
        ),
        (
            "faster than the link",
            shared(10_000_000, bytes(5), sources(0.6, 1, 20, 30)),
        ),
        (
            "full",
            shared(10_000_000, bytes(10), sources(1.0, 3, 20, 60)),
        ),
        (
            "two packets",
            shared(3_333_333, bytes(2), sources(0.7, 3, 30, 30)),
        ),
        ("by time", shared(7_654_321, time, short)),
        (
            "fast",
            shared(1_000_000_000, bytes(200), sources(0.9, 20, 1, 1)),
        ),
        ("with a burst", burst),
    ]
}

/// When and how long: mostly close together, then a silence, at times longer than a period.
fn packets(chance: &mut Random, rate: u64, period: u64, n: usize) -> Vec<(u64, usize)> {
    let full = 1514 * 8 * SECOND / rate;
    let mut at = 0;
    let one = |_| {
        at += match chance.index(200) {
            0 => chance.index((period + period / 2) as usize),
            1..10 => chance.index((100 * full) as usize),
            _ => chance.index((2 * full) as usize),
        } as u64;
        (at, 60 + chance.index(1455))
    };
    (0..n).map(one).collect()
}

/// The fate of each packet is that of the simulation.
#[test]
fn every_packet_waits_as_in_a_simulation() {
    for (name, link) in links() {
        let mut chance = Random(3);
        let bench = Bench::new(&link);
        let compiled = bench.compile(&link, 42, abi::EMUD_UP, stamp_place());
        let figures = compiled.link.background;
        let mut simulation = Simulation::new(&compiled);
        let rate = link.rate.expect("a rate");
        let (mut waited, mut lost) = (0, 0);
        let sent = packets(
            &mut chance,
            rate,
            figures.period_ns,
            support::cases(4_000) as usize,
        );
        for (n, (at, len)) in sent.iter().enumerate() {
            let fate = bench.send(&udp4(*len, 1), *at);
            let expected = simulation.send(bench.start + at, *len);
            let got = (fate.verdict == TC_ACT_UNSPEC).then_some(bench.start + fate.departure);
            assert_eq!(got, expected, "{name}: packet {n} of {len} bytes at {at}");
            lost += u64::from(got.is_none());
            let own_ns = *len as u64 * 8 * SECOND / rate;
            waited += u64::from(got.is_some_and(|sent| sent > bench.start + at + own_ns + 1));
        }
        assert_eq!(bench.counters().queue_dropped, lost, "{name}");
        assert!(simulation.admitted > 10_000 && waited > 50, "{name}");
        assert!(
            lost > 10 || ["light", "fast"].contains(&name),
            "{name}: {lost}"
        );
    }
}

/// Which packets of a steady stream are lost.
fn fates(link: &Link, seed: u64, release: abi::emud_release) -> Vec<bool> {
    let place = PacketTarget {
        release,
        ..stamp_place()
    };
    let mut bench = Bench::with(link, seed, place);
    let holder = abi::emud_holder {
        lease_ns: u64::MAX,
        ..Default::default()
    };
    bench.maps.set_holder(abi::EMUD_UP, &holder).unwrap();
    let frame = udp4(1000, 1);
    let one = |n: u64| bench.send(&frame, n * 1_500_000).verdict == TC_ACT_STOLEN;
    (0..2_000).map(one).collect()
}

#[test]
fn a_seed_has_one_background_on_all_engines() {
    let link = shared(10_000_000, bytes(5), sources(0.7, 3, 20, 20));
    let first = fates(&link, 42, abi::EMUD_RELEASE_STAMP);
    let lost = first.iter().filter(|lost| **lost).count();
    assert!((50..1_000).contains(&lost), "{lost}");
    for release in [
        abi::EMUD_RELEASE_STAMP,
        abi::EMUD_RELEASE_QDISC,
        abi::EMUD_RELEASE_HOLD,
    ] {
        assert_eq!(first, fates(&link, 42, release));
    }
    assert_ne!(first, fates(&link, 43, abi::EMUD_RELEASE_STAMP));
}

/// The background goes on through a change of anything else.
#[test]
fn a_change_of_the_delay_leaves_the_background_as_it_is() {
    let link = shared(10_000_000, bytes(20), sources(0.6, 3, 20, 20));
    let mut late = link.clone();
    late.delay.mean_ns = 7 * MS;
    let (same, mut changed) = (Bench::new(&link), Bench::new(&link));
    let frame = udp4(500, 1);
    for n in 0..2_000 {
        let at = n * 1_700_000;
        let delay_ns = if n < 1_000 { 0 } else { 7 * MS };
        if n == 1_000 {
            changed.set(&late, 42, stamp_place());
        }
        let (a, b) = (same.send(&frame, at), changed.send(&frame, at));
        assert_eq!(a.verdict, b.verdict, "{n}");
        if a.verdict == TC_ACT_UNSPEC {
            assert_eq!(a.departure + delay_ns, b.departure, "{n}");
        }
    }
}

/// A link that had none: the rows are in a map that was not there. Nothing of the background comes late.
#[test]
fn a_background_comes_and_goes_with_a_change() {
    let with = shared(10_000_000, bytes(2_000), sources(0.9, 1, 3_600_000, 1));
    let mut without = with.clone();
    without.background = None;
    let mut bench = Bench::new(&without);
    let frame = udp4(100, 1);
    let mut now = 0;
    for _ in 0..3 {
        for (link, waits) in [(&without, 80_000..80_001), (&with, 1_000_000..1_300_000)] {
            bench.set(link, 42, stamp_place());
            let longest = (0..1_000).map(|_| {
                now += 1_100_000;
                bench.send(&frame, now).departure - now
            });
            let longest = longest.max().unwrap();
            assert!(waits.contains(&longest), "{longest} at {now}");
            now += 5 * MS;
        }
    }
}

/// The classifier has the code, but the queue of an instance is none of those with a background.
#[test]
fn instances_beside_a_background_have_their_queues() {
    let text = "[link]\nrate = \"10Mbit\"\nbackground = \"40%\"\n[links.a]\nrate = \"8Mbit\"\n\
                [[rule]]\nlink = \"a\"\nper = \"flow\"";
    let bench = bench_of(&Profile::parse(text, "x.toml").unwrap());
    let sent = bench.send(&udp4(1000, 1), MS).departure;
    assert_eq!((sent, bench.counters().queue_dropped), (2 * MS, 0));
}
