// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wireless pilot of Cyprus: ad hoc 802.11b, 1470 bytes of UDP, or TCP, for 60 s. One fitted
//! figure, a bit error rate of 9.8e-6, yields the UDP row without line of sight; all others are
//! predictions. The published figures are Mibit/s.

use std::sync::Arc;

use emud::medium::air::{Outcome, Plan, To};
use emud::medium::phy::{Matrix, PathLoss, Radio, Reach, Standard};

use super::tcp;
use super::traffic::{Cell, MS, S, megabits, near, plan};

const BER: f64 = 9.8e-6;
/// 1470 bytes of UDP.
const PACKET: u32 = 1498;

fn mebibits(bytes: u64, ns: u64) -> f64 {
    megabits(bytes, ns) * 1e6 / 1_048_576.0
}

fn control_at_1() -> Plan {
    plan("802.11b with control at 1", 9)
}

fn pair() -> Matrix {
    Matrix::new(2, |_, to| Some(Reach::full(to).with_ber(BER)))
}

#[test]
fn without_line_of_sight() {
    let mut cell = Cell::new(control_at_1(), pair(), &[11_000; 2]);
    cell.saturate(1, To::Station(0), PACKET);
    cell.run(60 * S);
    let udp = mebibits(cell.deliveries * 1470, 60 * S);
    near("UDP", udp, 4.90, 0.03);
    let [receiver, sender] = cell.counts()[..] else {
        panic!()
    };
    // 1 - (1 - p)^(8 * 1534 + 8 * 14 for the ACK).
    near(
        "failed",
        sender.failed as f64 / sender.attempts as f64,
        0.1143,
        0.05,
    );
    // 0.0011 of the ACKs are lost.
    assert!(receiver.duplicates > 0);

    let (_, received) = tcp::flow(control_at_1(), pair(), 11_000, 60 * S);
    // Acknowledgements of every second segment: more than the published 3.62 and 3.76.
    let tcp = mebibits(received, 60 * S);
    near("TCP", tcp, 4.14, 0.02);
}

/// The receiver walks away by 1 m/s: geometry changes every 100 ms.
fn walk(mut each_step: impl FnMut(u64, u64, Arc<Matrix>)) {
    let path = PathLoss::LogDistance { exponent: 3.8 };
    let radio = Radio::new(Standard::named("802.11b").unwrap(), path);
    for step in 0..600 {
        let metres = f64::from(step) / 10.0;
        let matrix = Matrix::radio(&[[metres, 0.0], [0.0, 0.0]], &radio, BER);
        let at_ns = u64::from(step as u32) * 100 * MS;
        each_step(at_ns, at_ns + 100 * MS, Arc::new(matrix));
    }
}

#[test]
fn a_walk_of_60_metres() {
    let mut cell = Cell::new(control_at_1(), pair(), &[11_000; 2]);
    cell.saturate(1, To::Station(0), PACKET);
    let (mut bytes, mut last_ns) = (0, 0);
    walk(|from_ns, until_ns, matrix| {
        cell.air.move_at(from_ns, matrix);
        while let Some(outcome) = cell.air.next(until_ns) {
            match outcome {
                Outcome::Delivered { at_ns, .. } => (bytes, last_ns) = (bytes + 1470, at_ns),
                Outcome::Finished { at_ns, .. } => cell.add(at_ns, 1),
            }
        }
    });
    // In reach for 50.8 m of 60.
    let udp = mebibits(bytes, 60 * S);
    near("UDP of the walk", udp, 4.90 * 50.8 / 60.0, 0.15);
    // At -85 dBm: 50.78 m.
    near("last packet, s", last_ns as f64 / 1e9, 50.8, 0.002);

    let mut flow = tcp::Flow::default();
    let mut cell = Cell::new(control_at_1(), pair(), &[11_000; 2]);
    flow.fill(&mut cell.air, 0);
    walk(|from_ns, until_ns, matrix| {
        cell.air.move_at(from_ns, matrix);
        flow.run(&mut cell.air, until_ns);
    });
    let tcp = mebibits(flow.bytes(), 60 * S);
    near("TCP of the walk", tcp, 3.62 * 50.8 / 60.0, 0.15);
}
