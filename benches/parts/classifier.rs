// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of the real classifier per packet under BPF_PROG_TEST_RUN: by feature, by the number of
//! rules and of pairs. Needs root: `cargo bench -p emud-benches-parts --bench classifier`.
//!
//! The same packet repeatedly: its data is in the caches.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::Ipv4Addr;
use std::time::Duration;

use aya::programs::{TestRun, TestRunOptions};
use benches::compiled::compiled;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use emud::abi;
use emud::datapath::compiled::compile_rules;
use emud::datapath::maps::{Loaded, Maps, Program};
use emud::datapath::stage::sizes::Sizes;
use emud::profile::{Match, Pair, Profile, Rule, Target};

/// Runs in one system call.
const BATCH: u32 = 10_000;
/// IPPROTO_UDP
const UDP: u8 = 17;
const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn frame(from: Ipv4Addr) -> Vec<u8> {
    let mut f = vec![0u8; 200];
    f[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    f[14] = 0x45;
    f[23] = UDP;
    f[26..30].copy_from_slice(&from.octets());
    f[30..34].copy_from_slice(&TO.octets());
    f
}

/// The n-th of many.
fn host(n: u32) -> Ipv4Addr {
    (0x0b00_0000 + n).into()
}

fn parse(text: &str) -> Profile {
    Profile::parse(text, "bench").unwrap()
}

fn loaded(profile: &Profile) -> (Loaded, Maps) {
    let sizes = Sizes::of(profile);
    let mut loaded =
        Loaded::load_only(&[Program::Classify], &sizes).expect("load the classifier (root?)");
    let mut maps = loaded.maps().unwrap();
    maps.init(1, 0).unwrap();
    let [mut up, down] = [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| compiled(profile, d));
    for compiled in &mut up {
        // The test run has a socket and no device to clone to.
        compiled.link.flags &= !abi::EMUD_F_CLONE;
    }
    let rules = compile_rules(profile).unwrap();
    maps.apply_with([&up, &down], &rules).unwrap();
    (loaded, maps)
}

fn measure(group: &mut BenchmarkGroup<WallTime>, id: BenchmarkId, loaded: &Loaded, frame: &[u8]) {
    let program = loaded.program(Program::Classify).unwrap();
    group.bench_function(id, |b| {
        b.iter_custom(|iterations| {
            let batches = iterations.div_ceil(BATCH.into());
            let run = || {
                let options = TestRunOptions {
                    data_in: Some(frame),
                    repeat: BATCH,
                    ..TestRunOptions::new()
                };
                // The kernel reports the mean of a batch.
                program.test_run(options).unwrap().duration
            };
            let mean: Duration = (0..batches).map(|_| run()).sum::<Duration>() / batches as u32;
            Duration::from_nanos(mean.as_nanos() as u64 * iterations)
        });
    });
}

fn features(c: &mut Criterion) {
    const JITTER: &str = "jitter = \"5ms\", distribution = \"normal\"";
    let jittered =
        |reorder| format!("delay = {{ mean = \"50ms\", {JITTER}, reorder = \"{reorder}\" }}\n");
    let per_packet = jittered("jitter");
    let mut group = c.benchmark_group("feature");
    for (name, link) in [
        ("delay", "delay = \"50ms\"\n".to_owned()),
        (
            "delay, loss",
            "delay = \"50ms\"\nloss = \"1%\"\n".to_owned(),
        ),
        (
            "delay, rate",
            "delay = \"50ms\"\nrate = \"10Gbit\"\n".to_owned(),
        ),
        ("jitter in order", jittered("never")),
        ("jitter per packet", per_packet.clone()),
        (
            "all",
            format!("{per_packet}loss = \"1%\"\nrate = \"10Gbit\"\n"),
        ),
    ] {
        let (loaded, _maps) = loaded(&parse(&format!("[link]\n{link}")));
        let id = BenchmarkId::from_parameter(name);
        measure(&mut group, id, &loaded, &frame(host(0)));
    }
}

/// The last rule matches the packet; all of them match on the source, through this many different
/// masks.
fn with_rules(count: u32, masks: u8) -> Profile {
    let mut profile = parse("[link]\ndelay = \"1ms\"\n[links.a]\ndelay = \"2ms\"\n");
    let rule = |n: u32| {
        // Prefixes of all lengths in turn; none contains another's host.
        let net = ipnet::Ipv4Net::new(host(n << 8), 32 - (n % u32::from(masks)) as u8).unwrap();
        Rule {
            class: None,
            matches: Match {
                source: Some(net.into()),
                protocol: Some(UDP),
                ..Match::default()
            },
            target: Target::Named("a".to_owned()),
            direction: None,
            per: None,
        }
    };
    profile.rules = (0..count).map(rule).collect();
    profile
}

fn rules(c: &mut Criterion) {
    let mut group = c.benchmark_group("rules");
    for masks in [1, 8] {
        for count in [1, 16, 1000, 16_384] {
            if count >= masks.into() {
                let (loaded, maps) = loaded(&with_rules(count, masks));
                let id = BenchmarkId::new(format!("masks {masks}"), count);
                measure(&mut group, id, &loaded, &frame(host((count - 1) << 8)));
                let hits = maps.rule_hits(count - 1).unwrap();
                assert!(hits > 0, "another rule took the packet");
            }
        }
    }
}

fn pairs(c: &mut Criterion) {
    let mut group = c.benchmark_group("pairs");
    for count in [16, 1024, 65_536] {
        let text = format!("[link]\ndelay = \"1ms\"\n[matrix]\ncapacity = {count}\n");
        let (loaded, mut maps) = loaded(&parse(&text));
        let pair = |n| Pair {
            source: host(n).into(),
            destination: TO.into(),
            rate: Some(1_000_000_000),
            delay_ns: Some(2_000_000),
            loss: Some(0.01),
        };
        let all: Vec<Pair> = (0..count).map(pair).collect();
        maps.apply_pairs(&all, true).unwrap().unwrap();
        let id = BenchmarkId::from_parameter(count);
        measure(&mut group, id, &loaded, &frame(host(count / 2)));
    }
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = short();
    targets = features, rules, pairs
}
criterion_main!(benches);
