// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of greedy flows.

use emud::bottleneck::{Class, Decision, Limits, Plan, Schedule, Server};

use super::traffic::{Outcome, Packet, Random, SECOND, constant, merge, serve};

const RATE: u64 = 10_000_000;

fn plan(schedule: Schedule, classes: Vec<Class>) -> Plan {
    let limits = Limits {
        packets: Some(1000), // more than a turn has, of the smallest
        ..Limits::default()
    };
    let classes = classes.into_iter().map(|class| Class { limits, ..class });
    Plan {
        rate: RATE,
        schedule,
        seed: 0,
        classes: classes.collect(),
    }
}

fn weights(weights: &[u32]) -> Plan {
    let class = |weight: &u32| Class {
        weight: *weight,
        ..Class::default()
    };
    plan(Schedule::Drr, weights.iter().map(class).collect())
}

/// Every class is loaded with twice its share; packet sizes differ between classes.
fn greedy(weights: &[u32], sizes: &[u32], seconds: u64) -> Vec<Packet> {
    let all: u32 = weights.iter().sum();
    let part = |(class, (weight, bytes)): (usize, (&u32, &u32))| {
        let rate = 2 * RATE * u64::from(*weight) / u64::from(all);
        constant(class, *bytes, rate, class as u64, seconds * SECOND)
    };
    merge(weights.iter().zip(sizes).enumerate().map(part))
}

fn shares(outcome: &Outcome, packets: &[Packet], count: usize, seconds: u64) -> Vec<f64> {
    let of = |class| outcome.rate(packets, class, SECOND, seconds * SECOND);
    (0..count).map(of).collect()
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    sum * sum / (shares.len() as f64 * squares)
}

#[test]
fn equal_weights_get_equal_shares() {
    let mut random = Random(21);
    for count in [2, 3, 8, 20] {
        let list = vec![7; count];
        let plan = weights(&list);
        let sizes: Vec<u32> = (0..count).map(|_| 64 + random.below(1451) as u32).collect();
        let packets = greedy(&list, &sizes, 11);
        let outcome = serve(&plan, &packets);
        let jain = jain(&shares(&outcome, &packets, count, 11));
        assert!(jain >= 0.999, "{count} flows: {jain}");
    }
}

/// 1,000 packets of the least, whatever the sizes of the packets.
#[test]
fn weights_are_shares() {
    for (list, sizes) in [
        (vec![1, 2, 3], vec![1514, 1514, 1514]),
        (vec![800, 200], vec![1514, 300]),
        (vec![5, 1, 9, 5], vec![64, 1514, 700, 1400]),
    ] {
        let plan = weights(&list);
        let packets = greedy(&list, &sizes, 31);
        let outcome = serve(&plan, &packets);
        let all: u32 = list.iter().sum();
        let shares = shares(&outcome, &packets, list.len(), 31);
        for (weight, share) in list.iter().zip(&shares) {
            let want = RATE as f64 * f64::from(*weight) / f64::from(all);
            super::traffic::assert_near(
                &format!("weight {weight} of {list:?}"),
                *share,
                want,
                0.01,
            );
        }
    }
}

/// Also if the queue of one gets empty after each turn of two packets, the second of which it owes in part.
#[test]
fn an_empty_queue_keeps_its_debt() {
    let seconds = 31;
    for schedule in [Schedule::Drr, Schedule::Priority] {
        let plan = plan(schedule, vec![Class::default(); 2]);
        let half = || constant(1, 1514, 3_000_000, 0, seconds * SECOND);
        let greedy = constant(0, 1514, RATE, 1, seconds * SECOND);
        let packets = merge([greedy, half(), half()]);
        let outcome = serve(&plan, &packets);
        for got in shares(&outcome, &packets, 2, seconds) {
            super::traffic::assert_near(&format!("{schedule:?}"), got, 5e6, 0.01);
        }
    }
}

/// Below a class of htb: its guarantee is theirs, the best priority first, then by weight.
#[test]
fn classes_without_a_rate_share_that_of_the_class_above() {
    let of = |rate| Class {
        rate: Some(rate),
        ..Class::default()
    };
    let below = |priority, weight| Class {
        parent: Some(0),
        priority,
        weight,
        ..Class::default()
    };
    let plan = plan(
        Schedule::Htb,
        vec![
            of(4_000_000),
            of(6_000_000),
            below(0, 1),
            below(1, 3),
            below(1, 1),
        ],
    );
    let seconds = 31;
    for (best, beside, want) in [
        // What the best one leaves of 4 Mbit/s, by weight.
        (1_000_000, RATE, [6e6, 1e6, 2.25e6, 0.75e6]),
        (RATE, RATE, [6e6, 4e6, 0.0, 0.0]),
        // All that is borrowed is theirs.
        (1_000_000, 1_000_000, [1e6, 1e6, 6e6, 2e6]),
    ] {
        let load = |class, rate| constant(class, 1514, rate, class as u64, seconds * SECOND);
        let packets = merge([load(1, beside), load(2, best), load(3, RATE), load(4, RATE)]);
        let got = shares(&serve(&plan, &packets), &packets, 5, seconds);
        for (got, want) in got[1..].iter().zip(want) {
            let what = format!("{best} and {beside} bit/s");
            super::traffic::assert_near(&what, *got + 1e6, want + 1e6, 0.01);
        }
    }
}

/// What one leaves, the others share by their rates; a ceil leaves more for them.
#[test]
fn what_is_left_is_borrowed_in_proportion_to_the_rates() {
    let class = |rate, ceil| Class {
        rate: Some(rate),
        ceil,
        ..Class::default()
    };
    let mbit = 1_000_000;
    let classes = vec![
        class(5 * mbit, None),
        class(mbit, None),
        class(2 * mbit, None),
        class(mbit, Some(mbit + mbit / 10)),
    ];
    let plan = plan(Schedule::Htb, classes);
    // The first sends 2 of its 5 Mbit/s.
    let seconds = 31;
    let packets = merge([
        constant(0, 1000, 2 * mbit, 0, seconds * SECOND),
        constant(1, 1000, RATE, 1, seconds * SECOND),
        constant(2, 500, RATE, 2, seconds * SECOND),
        constant(3, 1514, RATE, 3, seconds * SECOND),
    ]);
    let outcome = serve(&plan, &packets);
    let got = shares(&outcome, &packets, 4, seconds);
    let left = 10.0 - 2.0 - 1.1 - 3.0;
    let want = [2.0, 1.0 + left / 3.0, 2.0 + left * 2.0 / 3.0, 1.1];
    for (class, (got, want)) in got.iter().zip(want).enumerate() {
        super::traffic::assert_near(&format!("class {class}"), *got, want * 1e6, 0.02);
    }
    assert_eq!(outcome.lost(0), 0);
}

/// Guarantees above the rate, or above the ceil of a class above: each keeps the same part of it. One that a ceil
/// stops takes nothing from others.
#[test]
fn guarantees_above_the_rate_share_it_in_proportion() {
    // Rate, ceil, priority and parent of greedy classes; what they get; all in Mbit/s.
    let plain = |rates: &[u64]| rates.iter().map(|rate| (*rate, 0, 0, None)).collect();
    let below = |class: usize, rate: u64| (rate, 0, 0, Some(class));
    let top = |rate: u64, ceil: u64, priority: u8| (rate, ceil, priority, None);
    let first = top(4, 4, 0);
    let cases: [(Vec<_>, &[f64]); 12] = [
        (plain(&[5, 10]), &[3.33, 6.67]),
        (plain(&[1, 20]), &[0.476, 9.524]),
        (plain(&[1, 5, 9]), &[0.667, 3.33, 6.0]),
        (plain(&[3, 1, 5, 1, 10]), &[1.5, 0.5, 2.5, 0.5, 5.0]),
        (
            vec![top(5, 0, 0), top(5, 0, 1), top(10, 0, 1)],
            &[5.0, 1.67, 3.33],
        ),
        (
            vec![top(5, 0, 0), top(10, 0, 0), top(5, 2, 0)],
            &[2.67, 5.33, 2.0],
        ),
        (
            vec![top(1, 0, 0), top(5, 1, 1), top(4, 0, 1)],
            &[5.0, 1.0, 4.0],
        ),
        (
            vec![first, below(0, 3), below(0, 6), top(2, 0, 0)],
            &[0.0, 1.33, 2.67, 6.0],
        ),
        (
            vec![first, below(0, 1), below(0, 20), top(5, 0, 0)],
            &[0.0, 0.190, 3.81, 6.0],
        ),
        // The ceil does not matter there: all share the server.
        (
            vec![first, below(0, 3), below(0, 6), top(20, 0, 0)],
            &[0.0, 1.034, 2.069, 6.897],
        ),
        // Two of them, one in the other.
        (
            vec![
                top(8, 8, 0),
                (4, 4, 0, Some(0)),
                below(1, 3),
                below(1, 6),
                below(0, 6),
                top(2, 0, 0),
            ],
            &[0.0, 0.0, 1.33, 2.67, 4.0, 2.0],
        ),
        // One beside the other.
        (
            vec![
                first,
                below(0, 3),
                below(0, 6),
                first,
                below(3, 8),
                below(3, 2),
            ],
            &[0.0, 1.33, 2.67, 0.0, 3.2, 0.8],
        ),
    ];
    let mbit = |rate: u64| (rate > 0).then_some(rate * 1_000_000);
    for (classes, want) in cases {
        let class = |&(rate, ceil, priority, parent): &(u64, u64, u8, Option<usize>)| Class {
            parent,
            rate: mbit(rate),
            ceil: mbit(ceil),
            priority,
            ..Class::default()
        };
        let plan = plan(Schedule::Htb, classes.iter().map(class).collect());
        let seconds = 31;
        let load = |class| constant(class, 1514, RATE, class as u64, seconds * SECOND);
        let is_leaf = |class: &usize| !classes.iter().any(|c| c.3 == Some(*class));
        let packets = merge((0..classes.len()).filter(is_leaf).map(load));
        let got = shares(&serve(&plan, &packets), &packets, classes.len(), seconds);
        for (got, want) in got.iter().zip(want) {
            super::traffic::assert_near(&format!("{classes:?}"), *got, want * 1e6, 0.01);
        }
    }
}

/// A class that borrows up to its ceil loses the time that it waits for guaranteed packets, beyond the
/// one packet that a ceil may be exceeded by: the arithmetic of docs/queues.md.
#[test]
fn a_ceil_of_the_best_priority_loses_what_it_waits() {
    let mbit = 1_000_000;
    let classes = [(1, Some(16 * mbit / 10), 0), (3, None, 1), (5, None, 1)];
    let classes = classes.map(|(rate, ceil, priority)| Class {
        rate: Some(rate * mbit),
        ceil,
        priority,
        ..Class::default()
    });
    let plan = plan(Schedule::Htb, classes.to_vec());
    let (frame, seconds) = (1512, 31);
    let packets = merge((0..3).map(|class| {
        let to = seconds * SECOND;
        constant(class, frame, RATE, class as u64, to)
    }));
    let outcome = serve(&plan, &packets);
    let bits = 8.0 * f64::from(frame);
    let ms = |rate: u64| bits * 1e3 / rate as f64;
    let (packet, step) = (ms(RATE), ms(16 * mbit / 10));
    // When the ceil opens again, and what was lost until then, ms.
    let (mut opens, mut lost, mut count) = (0.0f64, 0.0, 0.0);
    // While all are greedy.
    let of = outcome.served.iter().filter(|s| s.class == 0);
    for served in of.filter(|s| s.start_ns < seconds * SECOND) {
        let start = served.start_ns as f64 / 1e6;
        lost += (start - packet - opens).max(0.0);
        opens = opens.max(start - packet) + step;
        count += 1.0;
    }
    let got = shares(&outcome, &packets, 3, seconds)[0];
    let want = bits * 1e3 / (step + lost / count);
    super::traffic::assert_near("step and what was lost", got, want, 0.001);
    super::traffic::assert_near("bit/s", got, 1.5e6, 0.003);
}

/// Whatever changes, and however often: here both priorities, every 100 ms, less than a packet takes.
#[test]
fn changes_leave_each_class_its_turn() {
    let slow = |priority| Plan {
        rate: RATE / 100,
        ..plan(
            Schedule::Priority,
            vec![
                Class {
                    priority,
                    ..Class::default()
                };
                2
            ],
        )
    };
    let plans = [1, 2].map(slow);
    let load = |class| constant(class, 1514, RATE / 100, class as u64, 20 * SECOND);
    let mut server = Server::new(&plans[0]);
    for (index, packet) in merge([0, 1].map(load)).iter().enumerate() {
        server.arrive(packet.arrival(index), index);
    }
    let mut sent = [0u32; 2];
    for n in 1..200 {
        let now = n as u64 * SECOND / 10;
        while let Some(decision) = server.decide(now) {
            if let Decision::Served(served) = decision {
                sent[served.class] += 1;
            }
        }
        server.change(&plans[n % 2], now);
    }
    assert!(sent[0] > 70 && sent[0].abs_diff(sent[1]) <= 2, "{sent:?}");
}
