// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core of a medium: time per event with saturated stations, 802.11b at 11 Mbit/s. An exchange is
//! four events, each at all stations in reach. Either all hear each other, or they stand on a grid of
//! 150 m, on which several send at the same time, by disk or with powers that add up.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use emud::medium::air::{Access, Air, Discipline, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Disk, Matrix, PathLoss, Position, Radio, STANDARDS, Timing, ratio};

const S: u64 = 1_000_000_000;

/// Stations send without end, each to another one.
fn saturated(matrix: Matrix, senders: &[(usize, u16)]) -> Air<u16> {
    let plan = Plan {
        timing: Timing::new(&STANDARDS[0], None),
        access: Access::Dcf,
        rts_bytes: None,
        attempts: 7,
        aggregate: 1,
        queue_packets: 50,
        discipline: Discipline::Fifo,
        rate: RateControl::Fixed,
        capture: ratio(10.0),
        noise: 0,
        seed: 1,
    };
    let mut air = Air::new(plan, Arc::new(matrix), &[]);
    for (station, to) in senders {
        air.arrive(0, *station, packet(*to));
        air.arrive(0, *station, packet(*to));
    }
    run(&mut air, S);
    air
}

fn packet(to: u16) -> Frame<u16> {
    Frame {
        to: To::Station(to),
        bytes: 1500,
        token: to,
    }
}

fn run(air: &mut Air<u16>, until_ns: u64) {
    while let Some(outcome) = air.next(until_ns) {
        if let Outcome::Finished {
            at_ns,
            station,
            token,
            ..
        } = outcome
        {
            air.arrive(at_ns, station, packet(token));
        }
    }
}

/// The first `senders` of a grid with rows of 16, of those with an even number: to the next one.
fn neighbours(senders: usize) -> Vec<(usize, u16)> {
    (0..senders).map(|n| (2 * n, 2 * n as u16 + 1)).collect()
}

fn positions(stations: usize) -> Vec<Position> {
    let at = |n: usize| [(n % 16) as f64 * 150.0, (n / 16) as f64 * 150.0];
    (0..stations).map(at).collect()
}

fn media() -> Vec<(String, Air<u16>)> {
    let mut media = Vec::new();
    for (stations, senders) in [(2, 1), (6, 5), (31, 30), (100, 30), (256, 30)] {
        let to_first: Vec<_> = (1..=senders).map(|station| (station, 0)).collect();
        let air = saturated(Matrix::full(stations), &to_first);
        media.push((format!("{stations} stations, {senders} send: 1 s"), air));
    }
    let radio = Radio::new(&STANDARDS[0], PathLoss::LogDistance { exponent: 2.8 });
    for (stations, senders) in [(100, 30), (256, 128)] {
        let at = positions(stations);
        let senders = neighbours(senders);
        for (name, matrix) in [
            ("disk", Matrix::disk(&at, Disk::default(), 0.0)),
            ("powers", Matrix::radio(&at, &radio, 0.0)),
        ] {
            let count = senders.len();
            let name = format!("{stations} stations on a grid, {name}, {count} send: 1 s");
            media.push((name, saturated(matrix, &senders)));
        }
    }
    media
}

fn medium(c: &mut Criterion) {
    let mut group = c.benchmark_group("medium");
    for (name, mut air) in media() {
        let before = air.events();
        run(&mut air, 11 * S);
        group.throughput(Throughput::Elements((air.events() - before) / 10));
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
