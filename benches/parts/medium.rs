// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core of a medium: time per event with saturated stations that all hear each other, 802.11b
//! at 11 Mbit/s. An exchange is four events, each at all stations.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use emud::medium::air::{Access, Air, Discipline, Frame, Outcome, Plan, To};
use emud::medium::phy::{Matrix, Standard, Timing, ratio};

const S: u64 = 1_000_000_000;

/// `senders` of `stations` send to station 0 without end.
fn saturated(stations: usize, senders: usize) -> Air<()> {
    let plan = Plan {
        timing: Timing::new(Standard::named("802.11b").unwrap(), None),
        access: Access::Dcf,
        rts_bytes: None,
        attempts: 7,
        queue_packets: 50,
        discipline: Discipline::Fifo,
        capture: ratio(10.0),
        noise: 0,
        seed: 1,
    };
    let mut air = Air::new(plan, Arc::new(Matrix::full(stations)), &[]);
    for station in 1..=senders {
        air.arrive(0, station, PACKET);
        air.arrive(0, station, PACKET);
    }
    run(&mut air, S);
    air
}

const PACKET: Frame<()> = Frame {
    to: To::Station(0),
    bytes: 1500,
    token: (),
};

fn run(air: &mut Air<()>, until_ns: u64) {
    while let Some(outcome) = air.next(until_ns) {
        if let Outcome::Finished { at_ns, station, .. } = outcome {
            air.arrive(at_ns, station, PACKET);
        }
    }
}

fn medium(c: &mut Criterion) {
    let mut group = c.benchmark_group("medium");
    for (stations, senders) in [(2, 1), (6, 5), (31, 30), (100, 30), (256, 30)] {
        let mut air = saturated(stations, senders);
        let before = air.events();
        run(&mut air, 11 * S);
        group.throughput(Throughput::Elements((air.events() - before) / 10));
        let name = format!("{stations} stations, {senders} send: 1 s");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let until_ns = air.now_ns() + S;
                run(&mut air, until_ns);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, medium);
criterion_main!(benches);
