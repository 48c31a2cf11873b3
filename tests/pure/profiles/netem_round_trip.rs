// SPDX-License-Identifier: MIT OR Apache-2.0
//! Export to netem and import again: the same link.

use emud::convert::export::{ExportDirection, netem};
use emud::profile::{
    Cells, Corrupt, Delay, Distribution, Duplicate, Jitter, Link, LinkState, Loss, LossModel,
    Neighbours, Queue, Reorder, Reordering, Stage, Wire,
};
use proptest::prelude::*;
use support::chance::same_cases;

use super::import_netem::import;
use super::parse;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Delays that netem supports: jitter per packet, none of it below zero.
fn delays() -> impl Strategy<Value = Delay> {
    let mean = prop_oneof![0..=HOUR_NS, (0..=300u64).prop_map(|ms| ms * 1_000_000)];
    let shapes = prop::sample::select(vec![
        (Distribution::Uniform, 1.0),
        (Distribution::Normal, 4.0),
        (Distribution::Pareto, 0.667),
        (Distribution::ParetoNormal, 1.502),
    ]);
    let jitter = prop::option::of((shapes, 0.0..=1.0f64));
    (mean, jitter).prop_map(|(mean_ns, jitter)| {
        let jitter = jitter.and_then(|((distribution, lowest), share)| {
            let most = (mean_ns as f64 / lowest).min(f64::from(i32::MAX));
            let jitter_ns = (share * most).floor();
            let sd_ns = match distribution {
                Distribution::Uniform => jitter_ns / 3f64.sqrt(),
                _ => jitter_ns,
            };
            (jitter_ns > 0.0).then(|| Jitter {
                sd_ns,
                distribution: distribution.into(),
                reorder: Reorder::Jitter,
                coherence_ns: None,
                correlation: 0.0,
            })
        });
        Delay {
            mean_ns,
            jitter,
            ..Delay::default()
        }
    })
}

fn losses() -> impl Strategy<Value = Loss> {
    let p = || prop_oneof![0.0..=1.0f64, 1e-9..=1e-2f64];
    let model = prop_oneof![
        p().prop_map(|probability| LossModel::Bernoulli {
            probability,
            correlation: 0.0
        }),
        (p(), p(), p(), p()).prop_map(|(p, r, bad, good)| LossModel::GilbertElliott {
            p,
            r,
            bad,
            good
        }),
        (p(), p(), p()).prop_map(|(p13, p31, p23)| LossModel::FourState {
            p13,
            p31,
            p32: (1.0 - p31) / 2.0,
            p23,
            p14: (1.0 - p13) / 2.0,
        }),
    ];
    (model, any::<bool>()).prop_map(|(model, ecn)| {
        let loss = Loss {
            model,
            stage: Stage::BeforeQueue,
            ecn,
            max_run: None,
        };
        match loss.is_none() {
            true => Loss::default(),
            false => loss,
        }
    })
}

/// A rate in whole bytes per second, and a queue within netem's limit at that rate.
fn rates() -> impl Strategy<Value = (u64, i32, Wire, Queue)> {
    let cells = prop_oneof![
        Just(None),
        Just(Some(Cells::Atm)),
        (2..=65535u32, -1..=255i32)
            .prop_filter("that is atm", |cell| *cell != (48, 5))
            .prop_map(|(size, overhead)| Some(Cells::Of { size, overhead })),
    ];
    let packets = prop::option::of(1..=65536u32);
    (1..=125_000_000_000u64, -64..=4096i32, cells, packets).prop_map(
        |(bytes, overhead, cells, packets)| {
            let wire = Wire {
                cells,
                ..Wire::default()
            };
            let queue = Queue {
                // The defaults.
                packets: packets.filter(|n| *n != 1000),
                ..Queue::default()
            };
            (bytes * 8, overhead, wire, queue)
        },
    )
}

pub(super) fn exportable() -> impl Strategy<Value = Link> {
    let share = || prop_oneof![2 => Just(0.0), 1 => 1e-9..=1.0f64];
    let reorder = (1e-9..=1.0f64, 1..=1_000_000u32);
    let down = prop::bool::weighted(0.1);
    (
        prop::option::of(rates()),
        delays(),
        losses(),
        (share(), share(), down),
        prop::option::of(reorder),
    )
        .prop_map(|(rate, delay, loss, (copies, damage, down), reorder)| {
            let timed = rate.is_some();
            let (rate, overhead, wire, queue) = match rate {
                Some((bits, overhead, wire, queue)) => (Some(bits), overhead, wire, queue),
                None => Default::default(),
            };
            Link {
                rate,
                overhead,
                wire,
                queue: if down { Queue::default() } else { queue },
                reorder: reorder.filter(|_| !timed && delay.mean_ns > 0).map(
                    |(probability, gap)| Reordering {
                        probability,
                        correlation: 0.0,
                        gap,
                    },
                ),
                delay: Delay {
                    // After a rate the meaning differs.
                    jitter: delay.jitter.filter(|_| !timed),
                    ..delay
                },
                loss: Loss {
                    // Without a rate they are equal.
                    stage: match timed && !loss.is_none() {
                        true => Stage::BeforeQueue,
                        false => Stage::default(),
                    },
                    ..loss
                },
                neighbours: Neighbours::Emulate,
                duplicate: Duplicate {
                    probability: copies,
                    correlation: 0.0,
                },
                reset: 0.0,
                corrupt: Corrupt {
                    probability: damage,
                    ..Corrupt::default()
                },
                state: match down {
                    true => LinkState::Down,
                    false => LinkState::Up,
                },
                ..Link::default()
            }
        })
}

proptest! {
    #![proptest_config(same_cases(support::cases(10_000)))]

    #[test]
    fn import_of_export_is_the_link(link in exportable(), seed in prop::option::of(any::<u64>())) {
        let mut profile = parse("[up]\n");
        (profile.up, profile.seed) = (link, seed);
        let exported = match netem(&profile, ExportDirection::Up, Some("eth0")) {
            Ok(exported) => exported,
            // Only if more packets are in flight than netem's limit permits.
            Err(error) => {
                let many = profile.up.rate.unwrap_or(0) as f64 * profile.up.delay.mean_ns as f64;
                prop_assert!(error.to_string().contains("maximum limit is"), "{error}");
                prop_assert!(many / 8e9 / 1514.0 > 4e9, "{error}");
                return Ok(());
            }
        };
        let back = parse(&import(&exported.command).toml);
        prop_assert_eq!(&back.up, &profile.up, "{}", exported.command);
        prop_assert_eq!(back.seed, profile.seed);
    }
}
