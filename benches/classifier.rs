// SPDX-License-Identifier: GPL-2.0-only
//! What the real classifier costs a packet, by feature, under
//! BPF_PROG_TEST_RUN. Needs root: `cargo bench`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use aya::programs::{TestRun, TestRunOptions};
use criterion::{Criterion, criterion_group, criterion_main};
use emud::abi;
use emud::link::compile::{Place, compile};
use emud::link::datapath::{Loaded, Program};
use emud::link::sizes::Sizes;
use emud::profile::{Delay, Distribution, Jitter, Link, Reorder};

/// Runs in one system call.
const BATCH: u64 = 10_000;

fn frame() -> Vec<u8> {
    let mut f = vec![0u8; 200];
    f[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    f[14] = 0x45;
    f[23] = 17;
    f
}

fn links() -> Vec<(&'static str, Link)> {
    let delay = Delay {
        mean_ns: 50_000_000,
        ..Delay::default()
    };
    let jittered = |reorder| Delay {
        jitter: Some(Jitter {
            sd_ns: 5e6,
            distribution: Distribution::Normal.into(),
            reorder,
            ..Jitter::default()
        }),
        ..delay.clone()
    };
    let with = |delay| Link {
        delay,
        ..Link::default()
    };
    let rate = Some(10_000_000_000);
    vec![
        ("delay", with(delay.clone())),
        (
            "delay, loss",
            Link {
                loss: 0.01.into(),
                ..with(delay.clone())
            },
        ),
        (
            "delay, rate",
            Link {
                rate,
                ..with(delay.clone())
            },
        ),
        ("jitter in order", with(jittered(Reorder::Never))),
        ("jitter per packet", with(jittered(Reorder::Jitter))),
        (
            "all",
            Link {
                loss: 0.01.into(),
                rate,
                ..with(jittered(Reorder::Jitter))
            },
        ),
    ]
}

fn classifier(c: &mut Criterion) {
    let frame = frame();
    for (name, link) in links() {
        let mut loaded = Loaded::load(&Sizes::default()).expect("load the classifier (root?)");
        let mut maps = loaded.maps().unwrap();
        maps.init(1, 0).unwrap();
        let place = Place {
            release: abi::EMUD_RELEASE_STAMP,
            ifindex: 0,
            l3: false,
        };
        let mut compiled = compile(&link, 1, abi::EMUD_UP, 0, place).unwrap();
        // The test run has a socket and no device to clone to.
        compiled.link.flags &= !abi::EMUD_F_CLONE;
        let compiled = [compiled];
        maps.apply([&compiled, &compiled]).unwrap();
        let program = loaded.program(Program::Egress).unwrap();
        c.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                let batches = iterations.div_ceil(BATCH);
                let run = || {
                    let options = TestRunOptions {
                        data_in: Some(&frame),
                        repeat: BATCH as u32,
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
}

criterion_group!(benches, classifier);
criterion_main!(benches);
