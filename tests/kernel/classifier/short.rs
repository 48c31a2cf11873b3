// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short path has the same results, packet by packet, as the path through all stages.

use emud::profile::{LossModel, Profile};
use support::chance::Random;

use super::garbage::damaged;
use super::*;

const SKB_PRIORITY: usize = 32;

/// Two attachments of one link: one whose packets may take the short path, by a classifier for that
/// link, and one with a flag that has no effect but to keep them from it, by a classifier for all
/// links.
struct Both([Bench; 2]);

impl Both {
    fn new() -> Self {
        let sizes = Sizes::default();
        Self([
            Bench::empty(&sizes),
            Bench::for_features(&sizes, features::ALL),
        ])
    }

    fn set(&mut self, link: &Link) {
        for (short, bench) in [true, false].into_iter().zip(&mut self.0) {
            let compiled = |direction| {
                let mut compiled = bench.compile(link, 42, direction, stamp_place());
                if !short {
                    compiled.link.flags |= abi::EMUD_F_MEND;
                }
                compiled
            };
            let (up, down) = (compiled(abi::EMUD_UP), compiled(abi::EMUD_DOWN));
            bench.apply([&[up], &[down]]).unwrap();
            let word = bench.maps.control().unwrap().generation;
            assert_eq!(word & abi::EMUD_SHORT != 0, short);
        }
    }

    /// Sends a packet through each and compares what comes out.
    fn send(&self, frame: &[u8], ctx: &[u8; SKB_LEN]) -> Left {
        let [short, long] = self.0.each_ref().map(|b| run(&b.loaded, frame, ctx));
        let about = format!("{frame:02x?}");
        assert_eq!(short.fate(0), long.fate(0), "{about}");
        assert_eq!(short.ctx, long.ctx, "{about}");
        assert_eq!(short.frame, long.frame, "{about}");
        short
    }

    fn compare_counters(&self) -> abi::emud_counters {
        let [short, long] = self.0.each_ref().map(Bench::counters);
        assert_eq!(format!("{short:?}"), format!("{long:?}"));
        let last = |b: &Bench| b.maps.state_of(0, abi::EMUD_UP).unwrap().last_departure;
        assert_eq!(last(&self.0[0]), last(&self.0[1]));
        short
    }
}

/// Random packets, some of which their sender holds back, through delays that grow and shrink while
/// packets are on their way, with jitter in both orders, and losses.
#[test]
fn both_paths_have_the_same_results() {
    let mut both = Both::new();
    let mut chance = Random(7);
    let mut now = START;
    for round in 0..16 {
        let mean_ns = [20 * MS, 3 * MS, 0, 1_023, 700 * MS][round % 5] + chance.index(5_000) as u64;
        let mut link = match round % 3 {
            0 => link(|l| l.delay.mean_ns = mean_ns),
            order => jitter(
                mean_ns,
                mean_ns as f64 / 4.0,
                Distribution::Normal,
                [Reorder::Never, Reorder::Jitter][order - 1],
            ),
        };
        link.neighbours = [Neighbours::Pass, Neighbours::Emulate][round % 2];
        if round % 4 > 1 {
            link.loss.model = losses(0.3);
        }
        both.set(&link);
        for _ in 0..u64::from(support::cases(300)) {
            now += chance.index(60_000) as u64;
            let frame = match chance.index(3) {
                0 => damaged(&mut chance),
                1 => with_port(udp4(64, 5), 319),
                _ => tcp4(60 + chance.index(1400), chance.bits() as u16),
            };
            let mut ctx = arriving(now);
            if chance.index(4) == 0 {
                let stamp = now + chance.index(30_000_000) as u64;
                ctx[SKB_TSTAMP..][..8].copy_from_slice(&stamp.to_ne_bytes());
            }
            let gso_size = [0, 0, 0, 500u32][chance.index(4)];
            ctx[SKB_GSO_SIZE..][..4].copy_from_slice(&gso_size.to_ne_bytes());
            let priority = [0, 6, 7u32][chance.index(3)];
            ctx[SKB_PRIORITY..][..4].copy_from_slice(&priority.to_ne_bytes());
            both.send(&frame, &ctx);
        }
        both.compare_counters();
    }
    let c = both.compare_counters();
    assert!(
        c.clamped > 0,
        "no delay was shortened while packets were on their way"
    );
    assert!(c.passed[abi::EMUD_PASS_NEIGHBOUR as usize] > 0 && c.super_packets > 0);
    assert!(c.lost > 0 && c.reordered > 0);
}

fn losses(probability: f64) -> LossModel {
    LossModel::Bernoulli {
        probability,
        correlation: 0.0,
    }
}

fn tcp4(len: usize, source: u16) -> Vec<u8> {
    let mut frame = udp4(len, source);
    frame[23] = 6;
    frame[46] = 0x50;
    frame
}

fn with_port(mut frame: Vec<u8>, port: u16) -> Vec<u8> {
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame
}

/// A link takes the short path if nothing but a delay and independent losses is configured.
#[test]
fn any_other_key_takes_the_path_through_all_stages() {
    let bits = |text: &str| {
        let profile = Profile::parse(&format!("[up]\n{text}"), "short").unwrap();
        let b = Bench::new(&profile.up);
        b.maps.control().unwrap().generation & abi::EMUD_SHORT
    };
    for short in [
        "delay = \"3ms\"",
        "delay = \"0ms\"",
        "neighbours = \"emulate\"",
        "loss = \"0.1%\"",
        "delay = { mean = \"3ms\", sd = \"1ms\" }",
        "delay = { mean = \"3ms\", sd = \"1ms\", reorder = \"jitter\" }\nloss = \"1%\"",
    ] {
        assert_ne!(bits(short), 0, "{short}");
    }
    for long in [
        "rate = \"1Gbit\"",
        "loss = { probability = \"0.1%\", correlation = \"25%\" }",
        "loss = { probability = \"0.1%\", stage = \"before-queue\" }",
        "loss = { probability = \"0.1%\", max-run = 3 }",
        "loss = { probability = \"0.1%\", ecn = true }",
        "loss = { model = \"burst\", probability = \"0.1%\", length = 3 }",
        "duplicate = \"1%\"",
        "corrupt = \"1%\"",
        "delay = { mean = \"3ms\", sd = \"1ms\", reorder = \"jitter\", correlation = \"25%\" }",
        "delay = { mean = \"3ms\", share = \"50%\" }",
        "reorder = { probability = \"10%\" }\ndelay = \"3ms\"",
        "slot = \"10ms\"",
        "state = \"down\"",
    ] {
        assert_eq!(bits(long), 0, "{long}");
    }
}

/// `EMUD_F_CLONE` is for a packet with a socket; a device without Ethernet headers has no short path.
#[test]
fn no_other_place_takes_it() {
    let delay = link(|l| l.delay.mean_ns = MS);
    let bits = |place| {
        let b = Bench::with(&delay, 1, place);
        b.maps.control().unwrap().generation & abi::EMUD_SHORT
    };
    assert_ne!(bits(stamp_place()), 0);
    let hold = PacketTarget {
        release: abi::EMUD_RELEASE_HOLD,
        ..stamp_place()
    };
    let l3 = PacketTarget {
        l3: true,
        ..stamp_place()
    };
    assert_eq!([bits(hold), bits(l3)], [0, 0]);
}
