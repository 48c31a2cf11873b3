// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues in front of the radio: bands by ToS, and RED.

use emud::bottleneck::aqm::{AverageFigures, RedFigures, probability};
use emud::medium::air::{Access, Air, Discipline, Fate, Frame, Outcome, Plan, To};
use emud::medium::phy::Matrix;

use super::traffic::{S, plan};

fn air(discipline: Discipline, queue_packets: usize) -> Air<u64> {
    let plan = Plan {
        discipline,
        queue_packets,
        ..plan("802.11b", 1)
    };
    Air::new(plan, Matrix::full(2).into(), &[])
}

fn packet(token: u64) -> Frame<u64> {
    Frame {
        to: To::Station(0),
        bytes: 1500,
        token,
    }
}

fn delivered(air: &mut Air<u64>) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some(outcome) = air.next(air.now_ns() + S) {
        if let Outcome::Delivered { token, .. } = outcome {
            order.push(token);
        }
    }
    order
}

/// pfifo_fast: minimum delay first, maximum throughput last; what the radio has is not overtaken.
#[test]
fn bands_by_tos() {
    let tos = [0x08, 0x00, 0x10, 0x18, 0x04, 0x14];
    for (discipline, expected) in [
        (Discipline::Fifo, [0, 1, 2, 3, 4, 5]),
        (Discipline::Priority, [0, 2, 5, 1, 3, 4]),
    ] {
        let mut air = air(discipline, 50);
        for (token, tos) in (0..).zip(tos) {
            assert!(air.arrive_with(1, 1, packet(token), tos));
        }
        assert_eq!(delivered(&mut air), expected, "{discipline:?}");
    }
}

/// ECN bits are not a part of the ToS; each band has its limit, the packet on air in that of its band.
#[test]
fn each_band_has_the_limit() {
    let mut air = air(Discipline::Priority, 2);
    for (token, tos) in (0..).zip([0, 0, 3, 0x10, 0x12, 0x10]) {
        air.arrive_with(1, 1, packet(token), tos);
    }
    let mut full = Vec::new();
    let mut waiting = 0;
    while let Some(outcome) = air.next(2) {
        if let Outcome::Finished { token, fate, .. } = outcome {
            assert_eq!(fate, Fate::QueueFull);
            full.push(token);
        }
        waiting = air.count(1).waiting;
    }
    assert_eq!((full, waiting.max(air.count(1).waiting)), (vec![2, 5], 4));
    assert_eq!(delivered(&mut air), [0, 3, 4, 1]);
    assert_eq!((air.count(1).full, air.count(1).waiting), (2, 0));
}

fn red(min: u64, max: u64) -> Discipline {
    Discipline::Red(RedFigures {
        min,
        max,
        probability: probability(0.1),
        average: AverageFigures {
            weight: probability(0.01),
            packet_ns: 1_500_000,
        },
    })
}

/// 7.2 Mbit/s into a medium of 6.2, with retries: RED keeps the queue between its thresholds; a full
/// queue stays full.
#[test]
fn red_drops_before_the_queue_is_full() {
    for access in [Access::Dcf, Access::None] {
        let of = |discipline| {
            let plan = Plan {
                discipline,
                access,
                queue_packets: 100,
                ..plan("802.11b", 1)
            };
            let gap_ns = match access {
                Access::Dcf => 1_666_667,
                Access::None => 952_381,
            };
            let mut air = Air::new(plan, Matrix::full(2).into(), &[]);
            let (mut waited, mut samples) = (0, 0);
            for n in 0..30_000 {
                air.arrive(n * gap_ns, 1, packet(n));
                while air.next(n * gap_ns).is_some() {}
                if n > 3_000 {
                    (waited, samples) = (waited + air.count(1).waiting, samples + 1);
                }
            }
            (air.count(1), waited as f64 / f64::from(samples))
        };
        let (fifo, length) = of(Discipline::Fifo);
        assert!(fifo.full > 1_000 && fifo.managed == 0, "{fifo:?}");
        assert!(length > 97.0, "{length}");
        let (red, length) = of(red(15_000, 45_000));
        assert!(red.managed > 1_000 && red.full == 0, "{red:?}");
        assert!((10.0..32.0).contains(&length), "{length}");
        assert_eq!(red.sent / 100, fifo.sent / 100);
    }
}
