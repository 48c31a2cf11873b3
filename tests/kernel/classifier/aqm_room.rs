// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifier's managers packet by packet against `emud::bottleneck::aqm`, which knows neither
//! rings nor clocks.

use std::collections::VecDeque;

use emud::abi::mix;
use emud::bottleneck::aqm::{
    self, AqmVerdict, Ared, AredFigures, AverageFigures, Gains, Packet, Pi, PiFigures, Pie,
    PieFigures, Red, RedFigures, Rem, RemFigures, Rio, RioFigures, catch_up,
};
use emud::profile::{self, Aqm, Length, Queue};

use super::queue::send_and_see;
use super::*;

/// 1 us a byte.
const RATE: u64 = 8_000_000;
const BYTE_NS: u64 = 1_000;
const LIMIT: usize = 250;

fn managed(aqm: Aqm) -> Link {
    link(|l| {
        l.rate = Some(RATE);
        l.queue = Queue {
            packets: Some(LIMIT as u32),
            aqm: Some(aqm),
            ..Queue::default()
        };
    })
}

fn red_figures(red: &abi::emud_red) -> RedFigures {
    RedFigures {
        min: red.min_ns,
        max: red.max_ns,
        probability: red.probability,
        average: AverageFigures {
            weight: red.weight,
            packet_ns: red.packet_ns,
        },
    }
}

fn gains(gains: &abi::emud_gains) -> Gains {
    Gains {
        mult: gains.mult,
        shift: gains.shift,
    }
}

/// The manager of a compiled link, in ns of the wire, of a queue whose first packet comes at 0.
fn room(link: &abi::emud_link) -> Box<dyn aqm::Aqm> {
    let q = &link.queueing;
    match q.aqm {
        abi::EMUD_AQM_RED => Box::new(Red::new(red_figures(&q.red))),
        abi::EMUD_AQM_ARED => {
            let figures = AredFigures {
                red: red_figures(&q.red),
                interval_ns: q.ared.interval_ns,
                alpha: q.ared.alpha,
                beta: q.ared.beta,
            };
            Box::new(Ared::new(figures, 0))
        }
        abi::EMUD_AQM_RIO => Box::new(Rio::new(RioFigures {
            best_effort: red_figures(&q.red),
            assured: red_figures(&q.rio.assured),
            codes: q.rio.codes,
        })),
        abi::EMUD_AQM_PIE => {
            let figures = PieFigures {
                target_ns: q.pie.target_ns,
                tupdate_ns: q.pie.tupdate_ns,
                alpha: q.pie.alpha,
                beta: q.pie.beta,
                packets: q.pie.packets_ns,
                unit_ns: 1 << 32,
            };
            Box::new(Pie::new(figures, 0))
        }
        abi::EMUD_AQM_PI => {
            let figures = PiFigures {
                target: q.pi.target_ns,
                tupdate_ns: q.pi.tupdate_ns,
                gains: gains(&q.pi.gains),
            };
            Box::new(Pi::new(figures, 0))
        }
        abi::EMUD_AQM_REM => {
            let figures = RemFigures {
                target: q.rem.target_ns,
                tupdate_ns: q.rem.tupdate_ns,
                capacity: q.rem.tupdate_ns,
                gains: gains(&q.rem.gains),
            };
            Box::new(Rem::new(figures, 0))
        }
        other => panic!("manager {other}"),
    }
}

/// A queue with packets in it, in front of a wire.
struct Reference {
    manager: Box<dyn aqm::Aqm>,
    /// What has not left: until when, and what it is.
    queue: VecDeque<(u64, Packet)>,
    busy_until: u64,
    idle_until: u64,
}

impl Reference {
    fn arrive(&mut self, at: u64, bytes: u64, dscp: u8, capable: bool, draw: u64) -> AqmVerdict {
        while self.queue.front().is_some_and(|(sent, _)| *sent <= at) {
            let (sent, packet) = self.queue.pop_front().unwrap();
            self.manager.depart(&packet, self.busy_until - sent);
        }
        let busy_until = self.busy_until;
        catch_up(&mut *self.manager, at, |ns| busy_until.saturating_sub(ns));
        let wait = busy_until.saturating_sub(at);
        let packet = Packet {
            now_ns: at,
            size: bytes * BYTE_NS,
            idle_ns: at.saturating_sub(busy_until.max(self.idle_until)),
            dscp,
            capable,
            full: self.queue.len() >= LIMIT,
            draw,
            ..Packet::default()
        };
        if wait == 0 {
            self.idle_until = at;
        }
        let verdict = self.manager.arrive(&packet, wait);
        if verdict == AqmVerdict::Drop || packet.full {
            return AqmVerdict::Drop;
        }
        self.busy_until = busy_until.max(at) + packet.size;
        self.queue.push_back((self.busy_until, packet));
        verdict
    }
}

/// The draws of the first flow of a link, as bpf/rng.h says.
struct Draws {
    id: u64,
    packets: u64,
}

impl Draws {
    fn of(link: &abi::emud_link, frame: &[u8]) -> Self {
        let absorb = |hash: u64, word: u64| {
            let hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^ (hash >> 32)
        };
        let word =
            |from: usize| u64::from(u32::from_ne_bytes(frame[from..][..4].try_into().unwrap()));
        let addresses = absorb(4, word(26) << 32 | word(30));
        let service = absorb(addresses, u64::from(frame[23]) << 32 | word(34)) | 1;
        Self {
            id: mix(link.seed ^ mix(service)),
            packets: 0,
        }
    }

    fn next(&mut self) -> u64 {
        let draw = (self.id).wrapping_add(self.packets.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.packets += 1;
        mix(draw ^ 0x71d6_7fff_eda6_0001)
    }
}

/// IPv4 with this DS field.
fn frame(bytes: u64, dscp: u8, ecn: u8) -> Vec<u8> {
    let mut frame = udp4(bytes as usize, 1000);
    frame[15] = dscp << 2 | ecn;
    frame
}

/// Too much, about as much as the wire takes, silence, a burst, and again.
fn arrivals() -> impl Iterator<Item = (u64, u64)> {
    let phases = [
        (2_500, 500_000),
        (1_500, 800_000),
        (1_500, 730_000),
        (40, 9_000_000),
        (1, 3_000_000_000),
        (400, 0),
        (2_500, 400_000),
    ];
    let gaps = phases
        .into_iter()
        .flat_map(|(n, gap)| (0..n).map(move |_| gap));
    gaps.enumerate().scan(0, |at, (n, gap)| {
        let arrival = *at;
        *at += gap / 2 + mix(n as u64) % (gap + 1);
        Some((n as u64, arrival))
    })
}

/// Drops, marks, and packets that only the full queue dropped.
fn compare(aqm: Aqm) -> [u64; 3] {
    let link = managed(aqm);
    let b = Bench::new(&link);
    let compiled = b.compile(&link, 42, abi::EMUD_UP, stamp_place()).link;
    let mut reference = Reference {
        manager: room(&compiled),
        queue: VecDeque::new(),
        busy_until: 0,
        idle_until: 0,
    };
    let mut draws = Draws::of(&compiled, &frame(100, 0, 0));
    let mut marks = 0;
    for (n, at) in arrivals() {
        let random = mix(!n);
        let bytes = 200 + random % 1_100;
        let dscp = [0, 10, 12, 18, 46, 63][(random >> 20) as usize % 6];
        let capable = random >> 40 & 3 == 0;
        let packet = frame(bytes, dscp, if capable { 2 } else { 0 });
        let (verdict, left) = send_and_see(&b, &packet, at);
        let got = match (verdict, left[15] & 3) {
            (TC_ACT_STOLEN, _) => AqmVerdict::Drop,
            (_, 3) => AqmVerdict::Mark,
            _ => AqmVerdict::Pass,
        };
        marks += u64::from(got == AqmVerdict::Mark);
        let want = reference.arrive(at, bytes, dscp, capable, draws.next());
        assert_eq!(
            got,
            want,
            "packet {n}, {:?}",
            b.maps.state_of(0, abi::EMUD_UP).unwrap().aqm
        );
    }
    let c = b.counters();
    let drops: u64 = c.aqm_dropped.iter().sum();
    assert_eq!(c.aqm_dropped[compiled.queueing.aqm as usize], drops);
    assert_eq!(c.marked, marks);
    [drops, marks, c.queue_dropped]
}

fn assert_signals(name: &str, [drops, marks, full]: [u64; 3]) {
    println!("{name}: {drops} dropped, {marks} marked, {full} found it full");
    assert!(
        drops > 50 && marks > 1,
        "{name}: {drops} dropped, {marks} marked"
    );
}

const TARGET: Length = Length::Bytes(40_000);

#[test]
fn red_is_the_rooms() {
    let red = profile::Red {
        min: Length::Bytes(20_000),
        max: Length::Time(80_000_000),
        probability: 0.1,
        weight: 0.01,
        ecn: true,
    };
    assert_signals("red", compare(Aqm::Red(red)));
}

#[test]
fn ared_is_the_rooms() {
    let ared = profile::Ared {
        target: TARGET,
        ecn: true,
        ..profile::Ared::default()
    };
    assert_signals("ared", compare(Aqm::Ared(ared)));
    let quick = profile::Ared {
        weight: Some(0.02),
        probability: 0.5,
        interval_ns: 20_000_000,
        ..ared
    };
    assert_signals("ared", compare(Aqm::Ared(quick)));
}

#[test]
fn rio_is_the_rooms() {
    let rio = profile::Rio {
        min: Length::Bytes(10_000),
        max: Length::Bytes(60_000),
        probability: 0.1,
        assured_min: Length::Bytes(15_000),
        assured_max: Length::Bytes(40_000),
        weight: 0.02,
        ecn: true,
        ..profile::Rio::default()
    };
    assert_signals("rio", compare(Aqm::Rio(rio)));
    let wide = profile::Rio {
        max: Length::Bytes(1_000_000),
        assured: 1 << 10 | 1 << 63,
        ..rio
    };
    assert_signals("rio", compare(Aqm::Rio(wide)));
}

#[test]
fn pie_is_the_rooms() {
    let pie = profile::Pie {
        ecn: true,
        ..profile::Pie::default()
    };
    assert_signals("pie", compare(Aqm::Pie(pie)));
}

#[test]
fn pi_is_the_rooms() {
    let pi = profile::Pi {
        target: TARGET,
        a: 1.9e-3,
        b: 1.8e-3,
        ecn: true,
        ..profile::Pi::default()
    };
    assert_signals("pi", compare(Aqm::Pi(pi)));
}

#[test]
fn rem_is_the_rooms() {
    let rem = profile::Rem {
        target: TARGET,
        gamma: 0.05,
        phi: 1.01,
        ecn: true,
        ..profile::Rem::default()
    };
    assert_signals("rem", compare(Aqm::Rem(rem)));
}

/// Of all that is not assured nothing passes a backlog of 20 ms.
fn strict_rio() -> profile::Rio {
    profile::Rio {
        min: Length::Bytes(10_000),
        max: Length::Bytes(20_000),
        assured_min: Length::Bytes(1_000_000),
        assured_max: Length::Bytes(2_000_000),
        weight: 1.0,
        ..profile::Rio::default()
    }
}

#[test]
fn rio_reads_the_dscp_of_both_families() {
    let b = Bench::new(&managed(Aqm::Rio(strict_rio())));
    for _ in 0..40 {
        let assured = b.send(&frame(1_000, 10, 0), 0);
        assert_eq!(assured.verdict, TC_ACT_UNSPEC);
    }
    for dscp in 0..64u8 {
        let mut v6 = ip6(17, 0);
        v6[14] |= dscp >> 2;
        v6[15] = dscp << 6;
        let is_assured = [10, 18, 26, 34].contains(&dscp);
        for packet in [frame(1_000, dscp, 1), v6] {
            let passes = b.send(&packet, 0).verdict == TC_ACT_UNSPEC;
            assert_eq!(passes, is_assured, "DSCP {dscp} of {} bytes", packet.len());
        }
    }
    // Without an IP header: best effort.
    let mut arp = frame(1_000, 10, 0);
    arp[12..14].copy_from_slice(&0x88b5u16.to_be_bytes());
    assert_eq!(b.send(&arp, 0).verdict, TC_ACT_STOLEN);
}

#[test]
fn rio_counts_from_when_it_is_set() {
    let plain = link(|l| {
        l.rate = Some(RATE);
        l.queue = Limit::Packets(LIMIT as u32).into();
    });
    let mut b = Bench::new(&plain);
    let assured = frame(1_000, 10, 0);
    for _ in 0..50 {
        b.send(&assured, 0);
    }
    b.set(&managed(Aqm::Rio(strict_rio())), 42, stamp_place());
    let backlog = |b: &Bench| b.maps.state_of(0, abi::EMUD_UP).unwrap().aqm.rio_backlog / 1_000_000;
    for n in 1..=10 {
        b.send(&assured, 0);
        assert_eq!(backlog(&b), n);
    }
    // 54 of 60 have left, and one comes.
    b.send(&assured, 54_500_000);
    assert_eq!(backlog(&b), 7);
    // Idle meanwhile.
    b.send(&assured, 500_000_000);
    assert_eq!(backlog(&b), 1);
    // A limit in bytes does not keep it from counting packets.
    let bytes = link(|l| {
        l.rate = Some(RATE);
        l.queue.bytes = Some(100_000);
        l.queue.aqm = Some(Aqm::Rio(strict_rio()));
    });
    b.set(&bytes, 42, stamp_place());
    b.send(&assured, 500_000_000);
    assert_eq!(backlog(&b), 2);
    b.send(&assured, 501_500_000);
    assert_eq!(backlog(&b), 2);
}

/// The ring says of each packet whether RIO counted it as assured, also after RIO.
#[test]
fn a_queue_admits_after_rio() {
    let mut b = Bench::new(&managed(Aqm::Rio(strict_rio())));
    let assured = frame(1_000, 10, 0);
    for n in 0..LIMIT as u64 {
        assert_eq!(b.send(&assured, n * 2_000_000).verdict, TC_ACT_UNSPEC);
    }
    let plain = link(|l| {
        l.rate = Some(RATE);
        l.queue = Limit::Packets(LIMIT as u32).into();
    });
    b.set(&plain, 42, stamp_place());
    for n in 0..10 {
        let at = 10_000_000_000 + n * 2_000_000;
        assert_eq!(b.send(&assured, at).verdict, TC_ACT_UNSPEC, "{n}");
    }
}

/// A manager that comes back has not been updated meanwhile; made up for from what it was, its
/// probability would drop most packets of the new time.
#[test]
fn a_manager_that_comes_back_starts_anew() {
    let pi = profile::Pi {
        a: 1.9e-3,
        b: 1.8e-3,
        ..profile::Pi::default()
    };
    let with = managed(Aqm::Pi(pi));
    let plain = link(|l| {
        l.rate = Some(RATE);
        l.queue = Limit::Packets(LIMIT as u32).into();
    });
    let mut b = Bench::new(&with);
    let packet = frame(1_000, 0, 0);
    let state = |b: &Bench| b.maps.state_of(0, abi::EMUD_UP).unwrap().aqm;
    // 10 % more than it carries.
    let mut at = (0..).map(|n| n * 909_090);
    let mut overload = |b: &Bench, packets: usize| {
        at.by_ref().take(packets).for_each(|at| {
            b.send(&packet, at);
        });
    };
    overload(&b, 20_000);
    assert!(state(&b).pi_probability > 0);
    b.set(&plain, 42, stamp_place());
    overload(&b, 20_000);
    b.set(&with, 42, stamp_place());
    overload(&b, 1);
    assert_eq!(state(&b).pi_probability, 0);
}

/// Small packets at half the rate leave gaps shorter than a packet of 1000 bytes.
#[test]
fn an_average_falls_in_short_gaps() {
    let red = profile::Red {
        min: Length::Time(20_000_000),
        max: Length::Time(200_000_000),
        probability: 0.1,
        weight: 0.002,
        ecn: false,
    };
    let b = Bench::new(&managed(Aqm::Red(red)));
    let average = |b: &Bench| b.maps.state_of(0, abi::EMUD_UP).unwrap().aqm.red_average;
    for n in 0..2_000 {
        b.send(&frame(1_000, 0, 0), n * 700_000);
    }
    let full = average(&b);
    assert!(full >> 16 > 20_000_000, "{full}");
    // 200 bytes take 200 us; the backlog is at most 250 ms.
    for n in 0..10_000 {
        b.send(&frame(200, 0, 0), 2_000_000_000 + n * 400_000);
    }
    assert!(average(&b) < full / 20, "{} of {full}", average(&b));
}
