// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every loss model: the share and the runs of losses in theory, exact patterns, and the stage in
//! the link.

use super::timeline::{of_rows, traced};
use super::*;
use emud::profile::quantile::normal_quantile;
use emud::profile::{LinkState, Loss, LossModel, Pattern, Stage, TraceRow, Word};
use support::chain::{Chain, Expected, both_below, runs};

/// Packets of a statistic.
fn n() -> u64 {
    support::count(100_000)
}

fn model(model: LossModel) -> Link {
    link(|l| {
        l.loss = Loss {
            model,
            ..Loss::default()
        }
    })
}

/// As [`losses`], within the horizon of a stamp.
fn sequence(model_: LossModel) -> Vec<u64> {
    let b = Bench::new(&model(model_));
    let lost = losses(&b, 1000, n());
    assert_eq!(b.counters().lost, lost.len() as u64);
    lost
}

fn meets(what: &str, chain: &Chain, lost: &[u64]) {
    let [share, run] = chain.expected(n() as f64);
    share.meets(&format!("{what}: share"), lost.len() as f64 / n() as f64);
    run.meets(&format!("{what}: run"), runs(lost).1);
}

#[test]
fn gilbert_elliott_is_its_markov_chain() {
    for (p, r, bad, good) in [
        (0.01, 0.1, 1.0, 0.0),
        (0.05, 0.3, 0.7, 0.0),
        (0.02, 0.2, 0.5, 0.01),
        (0.5, 0.5, 1.0, 0.0),
    ] {
        let lost = sequence(LossModel::GilbertElliott { p, r, bad, good });
        let chain = Chain::gilbert_elliott(p, r, bad, good);
        meets(&format!("p {p} r {r} bad {bad} good {good}"), &chain, &lost);
    }
}

#[test]
fn the_four_states_are_their_markov_chain() {
    for (p13, p31, p32, p23, p14) in [
        (0.01, 0.1, 0.0, 1.0, 0.0),
        (0.01, 0.1, 0.2, 0.5, 0.005),
        (0.05, 0.3, 0.3, 0.4, 0.02),
        (0.0, 1.0, 0.0, 1.0, 0.03),
    ] {
        let lost = sequence(LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        });
        let chain = Chain::four_state(p13, p31, p32, p23, p14);
        meets(&format!("p13 {p13} p31 {p31} p32 {p32}"), &chain, &lost);
    }
}

#[test]
fn bursts_begin_and_last_as_asked() {
    for (probability, length) in [(0.002, 5u32), (0.05, 2), (0.01, 1)] {
        let lost = sequence(LossModel::Burst {
            probability,
            length,
        });
        let chain = Chain::burst(probability, length as usize);
        meets(&format!("burst of {length}"), &chain, &lost);
        // A burst may follow another, so that a run is a multiple of one; the last may be cut.
        let mut run = 0;
        for (i, packet) in lost.iter().enumerate() {
            run += 1;
            let ends = lost.get(i + 1) != Some(&(packet + 1)) && *packet + 1 != n();
            if ends {
                assert_eq!(run % length, 0, "a run of {run}");
                run = 0;
            }
        }
    }
}

/// The share does not change, two losses in a row become as frequent as the normal values imply.
#[test]
fn correlation_keeps_the_share() {
    for (probability, correlation) in [(0.01, 0.5), (0.1, 0.25), (0.1, 0.9), (0.5, 0.7)] {
        let lost = sequence(LossModel::Bernoulli {
            probability,
            correlation,
        });
        let t = normal_quantile(probability);
        let own = probability * (1.0 - probability);
        let others: f64 = (1..2000)
            .map(|lag| both_below(t, correlation.powi(lag)))
            .sum();
        let share = Expected {
            value: probability,
            error: ((own + 2.0 * others) / n() as f64).sqrt(),
        };
        let what = format!("p {probability} correlation {correlation}");
        share.meets(&what, lost.len() as f64 / n() as f64);
        pairs(&lost, both_below(t, correlation) + probability.powi(2)).meets(
            &format!("{what}: two in a row"),
            lost.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64 / n() as f64,
        );
    }
}

/// The error of a mean of dependent values from those of 200 parts, each much longer than they
/// remember.
fn pairs(lost: &[u64], value: f64) -> Expected {
    let part = n() / 200;
    let mut counts = vec![0.0; 200];
    for pair in lost.windows(2).filter(|w| w[1] == w[0] + 1) {
        counts[(pair[0] / part) as usize] += 1.0 / part as f64;
    }
    let (_, sd) = moments(&counts);
    Expected {
        value,
        error: sd / 200f64.sqrt(),
    }
}

#[test]
fn all_and_none_are_so_when_correlated() {
    let all = sequence(LossModel::Bernoulli {
        probability: 1.0,
        correlation: 0.5,
    });
    assert_eq!(all.len() as u64, n());
}

#[test]
fn bit_errors_go_by_the_length_on_the_wire() {
    let ber = 1e-5;
    let share = |bits: f64| {
        let p = 1.0 - (1.0f64 - ber).powf(bits);
        Expected {
            value: p,
            error: (p * (1.0 - p) / n() as f64).sqrt(),
        }
    };
    for (len, overhead) in [(64usize, 0), (576, 0), (1500, 0), (64, 24)] {
        let mut l = model(LossModel::BitError { ber });
        l.overhead = overhead;
        let b = Bench::new(&l);
        let frame = udp4(len, 1000);
        let lost = (0..n()).filter(|i| b.send(&frame, i * 1000).verdict == TC_ACT_STOLEN);
        let bits = 8.0 * (len as f64 + f64::from(overhead));
        share(bits).meets(&format!("{len} bytes"), lost.count() as f64 / n() as f64);
    }
    // Two frames of 1042 bytes with the same fate.
    let b = Bench::new(&model(LossModel::BitError { ber }));
    let frame = udp4(2042, 1000);
    let lost = (0..n()).filter(|i| b.send_gso(&frame, i * 1000, 1000).verdict == TC_ACT_STOLEN);
    share(8.0 * 2084.0).meets("a super-packet", lost.count() as f64 / n() as f64);
}

#[test]
fn a_bit_error_rate_of_nothing_and_all() {
    assert!(
        losses(
            &Bench::new(&model(LossModel::BitError { ber: 0.0 })),
            1,
            2000
        )
        .is_empty()
    );
    let all = losses(
        &Bench::new(&model(LossModel::BitError { ber: 1.0 })),
        1,
        2000,
    );
    assert_eq!(all.len(), 2000);
}

fn pattern(bits: &str, repeat: bool) -> LossModel {
    LossModel::Pattern {
        pattern: Pattern::from_bits(bits).unwrap(),
        repeat,
    }
}

#[test]
fn patterns_are_exact() {
    let every = |n, offset| LossModel::Every { n, offset };
    for (model_, want) in [
        (every(7, 0), vec![6, 13, 20, 27]),
        (every(7, 3), vec![3, 10, 17, 24]),
        (every(10, 9), vec![0, 10, 20]),
        (every(29, 0), vec![28]),
        (pattern("0001000", true), vec![3, 10, 17, 24]),
        (pattern("1100000000", false), vec![0, 1]),
        (pattern("1", true), (0..30).collect()),
    ] {
        let b = Bench::new(&model(model_.clone()));
        assert_eq!(losses(&b, 1, 30), want, "{model_:?}");
    }
    let b = Bench::new(&model(every(1, 0)));
    assert_eq!(losses(&b, 1, 30).len(), 30);
}

/// The longest pattern: the last entry of the map, and around.
#[test]
fn a_long_pattern_is_exact() {
    let length = u64::from(emud::profile::MAX_PATTERN);
    let lost = [0, 1, 63, 64, 65, 100_000, length - 1];
    let recorded = Pattern::from_lost(&lost, length).unwrap();
    let b = Bench::new(&model(LossModel::Pattern {
        pattern: recorded,
        repeat: true,
    }));
    let mut want = lost.to_vec();
    want.extend([length, length + 1]);
    let frame = udp4(100, 1);
    let got: Vec<u64> = (0..length + 10)
        .filter(|_| b.send(&frame, 0).verdict == TC_ACT_STOLEN)
        .collect();
    assert_eq!(got, want);
}

/// A pattern belongs to the link: all flows advance it.
#[test]
fn flows_share_a_pattern() {
    let b = Bench::new(&model(pattern("0110", true)));
    let fates: Vec<bool> = (0..12)
        .map(|i| b.send(&udp4(100, 1000 + i % 3), 0).verdict == TC_ACT_STOLEN)
        .collect();
    let want = [false, true, true, false].repeat(3);
    assert_eq!(fates, want);
}

#[test]
fn a_change_of_something_else_leaves_the_model_where_it_is() {
    let mut l = model(pattern("00000011", true));
    let mut b = Bench::new(&l);
    assert_eq!(losses(&b, 1, 4), [0u64; 0]);
    l.delay.mean_ns = MS;
    b.set(&l, 42, stamp_place());
    assert_eq!(losses(&b, 1, 4), [2, 3], "it goes on");
    assert_eq!(losses(&b, 1, 4), [0u64; 0]);
    b.set(&model(pattern("1000", true)), 42, stamp_place());
    assert_eq!(losses(&b, 1, 4), [0], "another one begins again");
    b.set(
        &model(LossModel::Every { n: 3, offset: 0 }),
        42,
        stamp_place(),
    );
    assert_eq!(losses(&b, 1, 4), [2]);
}

/// The same packets are lost as without it, but for each that would make a run longer.
#[test]
fn no_run_is_longer_than_the_longest() {
    const N: u64 = 20_000;
    let bernoulli = |probability, correlation| LossModel::Bernoulli {
        probability,
        correlation,
    };
    let (p, r, bad, good) = (0.05, 0.1, 0.9, 0.01);
    let (p13, p31, p32, p23, p14) = (0.05, 0.2, 0.3, 0.4, 0.02);
    let (probability, length) = (0.02, 7);
    for (model, max) in [
        (bernoulli(0.6, 0.0), 2),
        (bernoulli(0.6, 0.5), 3),
        (bernoulli(1.0, 0.0), 4),
        (LossModel::GilbertElliott { p, r, bad, good }, 3),
        (
            LossModel::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            },
            1,
        ),
        (LossModel::BitError { ber: 1e-3 }, 2),
        (LossModel::Every { n: 1, offset: 0 }, 5),
        (pattern("0111110110", true), 2),
        (
            LossModel::Burst {
                probability,
                length,
            },
            4,
        ),
    ] {
        let with = |max_run| {
            let loss = Loss {
                model: model.clone(),
                max_run,
                ..Loss::default()
            };
            let bench = Bench::new(&link(|l| l.loss = loss.clone()));
            (losses(&bench, 1000, N), loss)
        };
        let (free, _) = with(None);
        let mut run = 0;
        let mut expected = Vec::new();
        for i in 0..N {
            run = match free.binary_search(&i) {
                Ok(_) if run < max => {
                    expected.push(i);
                    run + 1
                }
                _ => 0,
            };
        }
        let (cut, loss) = with(Some(max));
        assert_eq!(cut, expected, "{}", model.name().word());
        assert!(cut.len() < free.len());
        // 4 standard errors of a share with runs of losses up to `max`.
        let frame = udp4(100, 1).len() as u32;
        let share = loss.share_of(frame);
        let error = 4.0 * (share * (1.0 - share) * 2.0 * f64::from(max) / N as f64).sqrt();
        let got = cut.len() as f64 / N as f64;
        let correlated = matches!(model, LossModel::GilbertElliott { .. });
        let error = if correlated { 3.0 * error } else { error };
        assert!(
            (got - share).abs() < error + 1e-3,
            "{}: {got} for {share}",
            model.name().word()
        );
    }
}

/// A row without losses ends a run, too.
#[test]
fn a_run_ends_with_a_packet_that_nothing_loses() {
    let row = |(at_ns, loss)| TraceRow {
        at_ns,
        loss: Some(loss),
        ..TraceRow::default()
    };
    let mut lossy = traced(of_rows(
        [(0, 1.0), (2000, 0.0)].map(row).to_vec(),
        3000,
        true,
    ));
    lossy.loss.max_run = Some(3);
    // Two, one that passes, two, for a packet a us: no run is long enough to be cut.
    assert_eq!(losses(&Bench::new(&lossy), 1, 6), [0, 1, 3, 4]);
    lossy.loss.max_run = Some(1);
    assert_eq!(losses(&Bench::new(&lossy), 1, 6), [0, 3]);
}

#[test]
fn before_the_queue_a_lost_packet_takes_no_time() {
    let departures = |stage| {
        let b = Bench::new(&link(|l| {
            l.rate = Some(8_000_000);
            l.loss = Loss {
                model: LossModel::Every { n: 2, offset: 0 },
                stage,
                ..Loss::default()
            };
        }));
        let frame = udp4(1000, 1);
        let fates: Vec<_> = (0..6).map(|_| b.send(&frame, 0)).collect();
        let sent = fates.iter().filter(|f| f.verdict == TC_ACT_UNSPEC);
        sent.map(|f| f.departure).collect::<Vec<_>>()
    };
    assert_eq!(departures(Stage::AfterQueue), [MS, 3 * MS, 5 * MS]);
    assert_eq!(departures(Stage::BeforeQueue), [MS, 2 * MS, 3 * MS]);
}

/// After a full queue the model does not see packets that the queue dropped.
#[test]
fn before_and_after_a_full_queue() {
    for (stage, lost, dropped) in [(Stage::AfterQueue, 2, 6), (Stage::BeforeQueue, 5, 1)] {
        let b = Bench::new(&link(|l| {
            l.rate = Some(8_000_000);
            l.queue = Limit::Packets(4).into();
            l.loss = Loss {
                model: LossModel::Every { n: 2, offset: 0 },
                stage,
                ..Loss::default()
            };
        }));
        let frame = udp4(1000, 1);
        for _ in 0..10 {
            b.send(&frame, 0);
        }
        let c = b.counters();
        assert_eq!((c.lost, c.queue_dropped), (lost, dropped), "{stage:?}");
    }
}

#[test]
fn a_link_that_is_down_loses_everything_and_keeps_the_rest() {
    let mut l = model(pattern("0001", true));
    l.rate = Some(8_000_000);
    let mut b = Bench::new(&l);
    assert_eq!(losses(&b, 1, 2), [0u64; 0]);
    l.state = LinkState::Down;
    b.set(&l, 42, stamp_place());
    assert_eq!(losses(&b, 1, 100).len(), 100);
    let c = b.counters();
    assert_eq!((c.down, c.lost, c.packets), (100, 0, 102));
    let mut arp = vec![0u8; 60];
    arp[12..14].copy_from_slice(&0x0806u16.to_be_bytes());
    assert_eq!(b.send(&arp, 0).verdict, TC_ACT_UNSPEC, "of the test bed");
    l.state = LinkState::Up;
    b.set(&l, 42, stamp_place());
    assert_eq!(losses(&b, 1, 6), [1, 5], "the pattern goes on where it was");
}

#[test]
fn the_same_seed_moves_the_chain_alike() {
    let ge = LossModel::GilbertElliott {
        p: 0.05,
        r: 0.3,
        bad: 0.8,
        good: 0.01,
    };
    let run = |seed| {
        losses(
            &Bench::with(&model(ge.clone()), seed, stamp_place()),
            1000,
            5000,
        )
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// With ecn a loss is a mark if the sender supports it.
#[test]
fn what_understands_it_is_marked_instead_of_lost() {
    let b = Bench::new(&link(|l| {
        l.loss = Loss {
            model: LossModel::Every { n: 2, offset: 0 },
            ecn: true,
            ..Loss::default()
        };
    }));
    for (ecn, lost) in [(0u8, 5), (1, 0), (2, 0), (3, 0)] {
        let mut frame = udp4(200, 1);
        frame[15] = ecn;
        let before = b.counters();
        let fates = (0..10).map(|i| b.send(&frame, i * MS).verdict);
        assert_eq!(
            fates.filter(|v| *v == TC_ACT_STOLEN).count(),
            lost,
            "ECN {ecn}"
        );
        let c = b.counters();
        assert_eq!((c.lost - before.lost) as usize, lost, "ECN {ecn}");
        assert_eq!((c.marked - before.marked) as usize, 5 - lost, "ECN {ecn}");
    }
}
