// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wired segment: when frames arrive, and which receivers lose them.

use std::sync::Arc;

use emud::medium::air::{Access, Air, Fate, Frame, Outcome, Plan, To};
use emud::medium::phy::{Line, Timing, Wire};

use super::traffic::{MS, S, plan};

const LINE: Line = Line {
    delay_ns: 0,
    loss: 0.0,
    ber: 0.0,
};

fn segment(kbit: u32, stations: usize, wire: &Wire, seed: u64) -> Air<u64> {
    let plan = Plan {
        timing: Timing::wire(kbit),
        access: Access::None,
        ..plan("802.11b", seed)
    };
    assert!(plan.timing.is_consistent());
    Air::new(plan, Arc::new(wire.matrix(stations)), &vec![0; stations])
}

fn wire(line: Line) -> Wire {
    let pairs = vec![];
    Wire { line, pairs }
}

/// Time, sender, receiver and token of each delivery.
fn deliveries(air: &mut Air<u64>, until_ns: u64) -> Vec<(u64, usize, usize, u64)> {
    let mut all = Vec::new();
    while let Some(outcome) = air.next(until_ns) {
        match outcome {
            Outcome::Delivered {
                at_ns,
                from,
                to,
                token,
            } => all.push((at_ns, from, to, token)),
            Outcome::Finished { fate, .. } => assert_eq!(fate, Fate::Sent),
        }
    }
    all
}

fn frame(to: To, token: u64) -> Frame<u64> {
    let bytes = 1250;
    Frame { to, bytes, token }
}

/// 1250 bytes at 10 Mbit/s take 1 ms, from each station at the same time.
#[test]
fn nobody_waits_for_another() {
    let mut line = wire(Line {
        delay_ns: 2 * MS,
        ..LINE
    });
    let far = Line {
        delay_ns: 7 * MS,
        ..LINE
    };
    line.pairs.push(([0, 2], far));
    let mut air = segment(10_000, 3, &line, 1);
    air.arrive(0, 0, frame(To::All, 1));
    air.arrive(0, 0, frame(To::Station(2), 2));
    air.arrive(0, 1, frame(To::All, 3));
    air.arrive(0, 2, frame(To::Station(0), 4));
    let expected = [
        (3 * MS, 0, 1, 1),
        (3 * MS, 1, 0, 3),
        (3 * MS, 1, 2, 3),
        (3 * MS, 2, 0, 4),
        (8 * MS, 0, 2, 1),
        (9 * MS, 0, 2, 2),
    ];
    assert_eq!(deliveries(&mut air, S), expected);
    let count = air.count(0);
    assert_eq!([count.air_ns, count.busy_ns], [2 * MS; 2]);
}

#[test]
fn each_receiver_of_a_broadcast_loses_it_independently() {
    const FRAMES: u64 = 40_000;
    let receive = |seed| {
        let mut line = wire(Line { loss: 0.1, ..LINE });
        line.pairs.push(([0, 3], Line { loss: 0.4, ..LINE }));
        let mut air = segment(1_000_000, 4, &line, seed);
        let mut got = vec![0_u8; FRAMES as usize];
        for n in 0..FRAMES {
            air.arrive(n * 20_000, 0, frame(To::All, n));
        }
        for (_, _, to, n) in deliveries(&mut air, S) {
            got[n as usize] |= 1 << to;
        }
        got
    };
    let got = receive(7);
    assert_eq!(got, receive(7));
    assert_ne!(got, receive(8));
    // Each of the eight sets of receivers has the product of the probabilities, within five
    // standard deviations: wrong once in 200,000 seeds.
    for set in 0..8_u8 {
        let arrives = |bit: u8, p: f64| if set >> bit & 1 == 1 { p } else { 1.0 - p };
        let p = arrives(0, 0.9) * arrives(1, 0.9) * arrives(2, 0.6);
        let n = FRAMES as f64;
        let found = got.iter().filter(|got| **got >> 1 == set).count() as f64;
        let off = (found - n * p) / (n * p * (1.0 - p)).sqrt();
        assert!(off.abs() < 5.0, "{set:03b}: {found}, expected {}", n * p);
    }
}

/// Loss is of frames, and bit errors of their bits: (1 - 0.2) (1 - 1e-5)^10000 = 0.7239.
#[test]
fn losses_and_bit_errors_multiply_in_one_direction() {
    let bad = Line {
        loss: 0.2,
        ber: 1e-5,
        ..LINE
    };
    let none = Line { loss: 1.0, ..LINE };
    let line = Wire {
        line: LINE,
        pairs: vec![([0, 1], bad), ([2, 0], none)],
    };
    let matrix = line.matrix(3);
    assert!(matrix.reach(2, 0).is_none() && matrix.reach(0, 2).is_some());
    assert_eq!(matrix.neighbours(&[0; 3]), [vec![1], vec![0, 2], vec![1]]);
    let mut air = segment(1_000_000, 3, &line, 3);
    let frames = 20_000;
    for n in 0..frames {
        for (from, to) in [(0, 1), (1, 0), (2, 0)] {
            air.arrive(n * 20_000, from, frame(To::Station(to), n));
        }
    }
    let mut got = [0; 3];
    for (_, from, ..) in deliveries(&mut air, S) {
        got[from] += 1;
    }
    assert_eq!(got[1..], [frames, 0]);
    let (n, p) = (frames as f64, 0.8 * (-0.1_f64).exp());
    let off = (got[0] as f64 - n * p) / (n * p * (1.0 - p)).sqrt();
    assert!(off.abs() < 5.0, "{} of {n}, expected {}", got[0], n * p);
}
