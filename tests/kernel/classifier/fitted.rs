// SPDX-License-Identifier: MIT OR Apache-2.0
//! A classifier that is loaded for its links treats each packet as one for all links does, also after
//! a change for which another one replaces it.

use std::os::fd::{AsFd, AsRawFd};

use aya::maps::MapData;
use aya::programs::ProgramInfo;
use aya::util::KernelVersion;
use emud::datapath::compiled::{compile_rules, matching};
use emud::datapath::stage::compile::of_number;
use emud::datapath::stage::timeline;
use emud::profile::{LossModel, Profile, shipped};
use support::chance::Random;

use super::garbage::damaged;
use super::*;

/// The packets upwards of one profile, through both.
struct Both([Bench; 2]);

impl Both {
    fn new(sizes: &Sizes) -> Self {
        Self([
            Bench::empty(sizes),
            Bench::for_features(sizes, features::ALL),
        ])
    }

    fn set(&mut self, profile: &Profile) {
        let rules = compile_rules(profile).unwrap();
        for bench in &mut self.0 {
            let mut links: Vec<_> = (0..)
                .zip(profile.links_of(abi::EMUD_UP))
                .map(|(n, link)| bench.compile(link, of_number(42, n), abi::EMUD_UP, stamp_place()))
                .collect();
            matching(profile, abi::EMUD_UP, &mut links);
            timeline::phases(profile, abi::EMUD_UP, &mut links, 1, bench.start);
            bench.apply_with([&links, &[]], &rules).unwrap();
        }
    }

    fn send(&self, chance: &mut Random, packets: u64, now: &mut u64) {
        for _ in 0..packets {
            *now += chance.index(3_000_000) as u64;
            let frame = match chance.index(8) {
                0 => damaged(chance),
                n => udp4(60 + chance.index(1400), 1000 + n as u16),
            };
            let ctx = arriving(*now);
            let [fitted, all] = self.0.each_ref().map(|b| run(&b.loaded, &frame, &ctx));
            assert_eq!(fitted.fate(0), all.fate(0), "{frame:02x?}");
            assert_eq!(fitted.frame, all.frame);
        }
        let [fitted, all] = self.0.each_ref().map(Bench::counters);
        assert_eq!(format!("{fitted:?}"), format!("{all:?}"));
    }
}

#[test]
fn shipped_links_have_the_same_results() {
    let mut chance = Random(11);
    for one in shipped::SHIPPED {
        let profile = shipped::find(one.name).unwrap();
        let mut both = Both::new(&Sizes::of(&profile));
        both.set(&profile);
        both.send(&mut chance, support::count(2_000), &mut START.clone());
        let has = |b: &Bench| b.maps.control().unwrap().features;
        assert!(has(&both.0[0]) < has(&both.0[1]), "{}", one.name);
    }
}

#[test]
fn the_kernel_accepts_every_classifier() {
    for (built, _) in abi::CLASSIFIERS {
        Loaded::load(&Program::ALL, &Sizes::default(), *built).unwrap();
    }
}

#[test]
fn a_change_continues_with_flows_and_queues() {
    let half = |text: &str| {
        let text = format!("[up]\nloss = \"50%\"\n{text}");
        Profile::parse(&text, "half").unwrap()
    };
    let mut both = Both::new(&Sizes::of(&half("")));
    let (mut chance, mut now) = (Random(12), START);
    for keys in [
        "delay = \"5ms\"",
        "delay = { mean = \"5ms\", sd = \"1ms\" }",
        "rate = \"8Mbit\"\nqueue = \"20p\"",
        "rate = \"8Mbit\"\nduplicate = \"10%\"",
        "rate = \"2Mbit\"\nqueue = { limit = \"50p\", aqm = \"codel\" }",
        "slot = \"10ms\"\nreorder = \"10%\"\ndelay = \"30ms\"",
        "delay = \"5ms\"",
    ] {
        both.set(&half(keys));
        both.send(&mut chance, 300, &mut now);
    }
}

fn losing() -> Link {
    link(|l| {
        l.loss.model = LossModel::Bernoulli {
            probability: 0.1,
            correlation: 0.0,
        };
    })
}

#[test]
fn what_the_classifier_lacks_is_refused() {
    let mut bench = Bench::new(&Link::default());
    let up = bench.compile(&losing(), 42, abi::EMUD_UP, stamp_place());
    let error = bench.maps.apply([&[up], &[]]).unwrap_err();
    assert!(error.to_string().contains("lacks features"), "{error}");
}

/// The verifier's work is most of the time of an attach: measured 10,000 of 56,000 instructions, and
/// 20,000 with a rate, jitter and loss.
#[test]
fn a_usual_link_is_a_fraction_of_the_verifiers_work() {
    let verified = |features| {
        let loaded = Loaded::load(&[Program::Classify], &Sizes::default(), features).unwrap();
        let info = loaded.program(Program::Classify).unwrap().info().unwrap();
        info.verified_instruction_count().expect("Linux 5.16")
    };
    let needs = |text: &str| {
        let profile = Profile::parse(text, "usual").unwrap();
        let up = compile(&profile.up, 42, abi::EMUD_UP, START, stamp_place()).unwrap();
        features::of([&[up], &[]])
    };
    let all = verified(features::ALL);
    let delay = verified(needs("[up]\ndelay = \"10ms\""));
    assert!(4 * delay < all, "{delay} of {all}");
    let usual = "[up]\nrate = \"8Mbit\"\nloss = \"1%\"\ndelay = { mean = \"5ms\", sd = \"1ms\" }";
    let usual = verified(needs(usual));
    assert!(2 * usual < all, "{usual} of {all}");
}

/// Of the maps of a program, bytes. Before Linux 6.4 a map whose entries are allocated when they are
/// written counts as if it were full, and is left out.
pub fn memory(info: &ProgramInfo) -> u64 {
    const BPF_F_NO_PREALLOC: u32 = 1;
    let counts_entries = KernelVersion::current().unwrap() >= KernelVersion::new(6, 4, 0);
    let maps = info.map_ids().unwrap().expect("ids of maps").into_iter();
    let maps = maps.map(|id| MapData::from_id(id).unwrap());
    let counted = maps
        .filter(|map| counts_entries || map.info().unwrap().map_flags() & BPF_F_NO_PREALLOC == 0);
    counted
        .map(|map| {
            let number = map.fd().as_fd().as_raw_fd();
            let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
            let bytes = said.lines().find_map(|l| l.strip_prefix("memlock:"));
            bytes.expect("memlock").trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn a_link_has_the_memory_that_it_uses() {
    let memory_of = |bench: &Bench| {
        let program = bench.loaded.program(Program::Classify).unwrap();
        memory(&program.info().unwrap())
    };
    let mut bench = Bench::new(&link(|l| l.delay.mean_ns = 5_000_000));
    let delay = memory_of(&bench);
    assert!(delay < 1 << 20, "{delay}");
    bench.set(&losing(), 42, stamp_place());
    let flows = 2 * u64::from(abi::EMUD_FLOW_SETS) * size_of::<[u64; 24]>() as u64;
    let losing = memory_of(&bench);
    assert!(losing > delay + flows, "{losing} {flows}");
}
