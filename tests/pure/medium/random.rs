// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random media and traffic: what holds whatever happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use emud::abi::mix;
use emud::medium::air::{Access, Air, Discipline, Fate, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Matrix, Reach, STANDARDS, Standard, Timing, ratio};

use super::traffic::{MS, S};

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        emud::abi::mix(self.0) % n
    }
}

/// The DS field of a packet.
fn ds(token: u64) -> u8 {
    mix(token) as u8
}

struct Setup {
    plan: Plan,
    matrices: Vec<Arc<Matrix>>,
    modes: Vec<usize>,
    arrivals: Vec<(u64, usize, Frame<u64>)>,
    promiscuous: usize,
}

fn matrix(random: &mut Random, stations: usize) -> Matrix {
    Matrix::new(stations, |_, to| {
        let reach = Reach {
            modes: if random.below(4) == 0 { 0 } else { u16::MAX },
            senses: random.below(4) > 0,
            power: 1 << random.below(50),
            ..Reach::full(to)
        };
        let ber = [0.0, 1e-5, 1e-4][random.below(3) as usize];
        (random.below(5) > 0).then(|| reach.with_ber(ber))
    })
}

fn setup(seed: u64) -> Setup {
    let mut random = Random(seed);
    let stations = 2 + random.below(8) as usize;
    let standard: &Standard = &STANDARDS[random.below(STANDARDS.len() as u64) as usize];
    let timing = Timing::new(standard, None);
    let modes = standard.rates.len() as u64;
    let plan = Plan {
        access: if random.below(6) == 0 {
            Access::None
        } else {
            Access::Dcf
        },
        rts_bytes: [None, Some(0), Some(700)][random.below(3) as usize],
        attempts: 1 + random.below(8) as u32,
        aggregate: [1, 1 + (mix(seed) % 64) as u32][usize::from(standard.aggregates())],
        queue_packets: 1 + random.below(20) as usize,
        discipline: [Discipline::Fifo, Discipline::Edca][seed as usize / 4 % 2],
        rate: [
            RateControl::Fixed,
            RateControl::Arf,
            RateControl::Ideal,
            RateControl::Minstrel,
        ][seed as usize % 4],
        capture: ratio(random.below(20) as f64),
        noise: random.below(1000),
        seed,
        timing,
    };
    let arrival = |token, random: &mut Random| {
        let station = random.below(stations as u64) as usize;
        let to = (station as u64 + 1 + random.below(stations as u64 - 1)) % stations as u64;
        let to = if random.below(4) == 0 {
            To::All
        } else {
            To::Station(to as u16)
        };
        // Some at the same instant.
        let at_ns = random.below(400) * MS / 4;
        let bytes = random.below(2_300) as u32;
        (at_ns, station, Frame { to, bytes, token })
    };
    let mut arrivals: Vec<_> = (0..300).map(|token| arrival(token, &mut random)).collect();
    arrivals.sort_by_key(|(at_ns, ..)| *at_ns);
    Setup {
        matrices: (0..10)
            .map(|_| Arc::new(matrix(&mut random, stations)))
            .collect(),
        modes: (0..stations)
            .map(|_| random.below(modes) as usize)
            .collect(),
        arrivals,
        promiscuous: random.below(stations as u64) as usize,
        plan,
    }
}

/// Runs to the end in steps; arrivals of a step are handed over at its end, in no order. No delivery is
/// sooner than was announced before the step, or than a packet that arrived in it can be.
fn run(setup: &Setup, mut step: impl FnMut() -> u64) -> (Air<u64>, Vec<Outcome<u64>>) {
    let matrix = Arc::clone(&setup.matrices[0]);
    let mut air = Air::new(setup.plan.clone(), matrix, &setup.modes);
    air.set_promiscuous(setup.promiscuous, true);
    let mut outcomes = Vec::new();
    let (mut now, mut next, mut moved) = (0, 0, 1);
    while now < 20 * S {
        // Geometry changes every 20 ms.
        let boundary = moved * 20 * MS;
        let mut earliest_ns = air.next_delivery_ns().unwrap_or(u64::MAX);
        now = (now + step()).min(boundary);
        let arrived = setup.arrivals[next..].iter();
        let arrived = arrived.take_while(|(at_ns, ..)| *at_ns <= now).count();
        // Of each station in order, as from its TAP.
        let mut batch: Vec<_> = setup.arrivals[next..next + arrived].to_vec();
        batch.sort_by_key(|(_, station, _)| *station);
        for (at_ns, station, frame) in batch {
            earliest_ns = earliest_ns.min(at_ns + air.shortest_ns());
            assert!(air.arrive_with(at_ns, station, frame, ds(frame.token)));
        }
        next += arrived;
        while let Some(outcome) = air.next(now) {
            if let Outcome::Delivered { at_ns, .. } = outcome {
                assert!(at_ns >= earliest_ns, "{at_ns}, announced for {earliest_ns}");
            }
            outcomes.push(outcome);
        }
        if now == boundary {
            let matrix = &setup.matrices[moved as usize % setup.matrices.len()];
            air.move_at(now + 1, Arc::clone(matrix));
            moved += 1;
        }
    }
    (air, outcomes)
}

#[test]
fn every_packet_ends_once_and_arrives_once() {
    for seed in 0..60 {
        let setup = setup(seed);
        let (air, outcomes) = run(&setup, || 20 * MS);
        let mut finished = BTreeMap::new();
        let mut delivered = BTreeMap::new();
        let mut last_ns = 0;
        for outcome in outcomes {
            let at = match outcome {
                Outcome::Finished {
                    at_ns, token, fate, ..
                } => {
                    assert_eq!(finished.insert(token, fate), None, "{seed}: {token} twice");
                    at_ns
                }
                Outcome::Delivered {
                    at_ns, to, token, ..
                } => {
                    assert_eq!(
                        delivered.insert((token, to), ()),
                        None,
                        "{seed}: {token} at {to}"
                    );
                    assert!(!finished.contains_key(&token) || to == setup.promiscuous);
                    at_ns
                }
            };
            assert!(at >= last_ns, "{seed}: time runs back");
            last_ns = at;
        }
        assert_eq!(finished.len(), setup.arrivals.len(), "{seed}");
        for (_, _, frame) in &setup.arrivals {
            let To::Station(to) = frame.to else { continue };
            let arrived = delivered.contains_key(&(frame.token, usize::from(to)));
            match finished[&frame.token] {
                Fate::Sent if setup.plan.access == Access::Dcf => assert!(arrived, "{seed}"),
                Fate::QueueFull => assert!(!arrived, "{seed}"),
                _ => {}
            }
        }
        for station in 0..setup.modes.len() {
            let count = air.count(station);
            assert_eq!(count.waiting, 0, "{seed}");
            match setup.plan.aggregate {
                1 => {
                    assert_eq!(count.attempts, count.failed + count.sent, "{seed}");
                    assert!(count.collided + count.damaged <= count.failed, "{seed}");
                }
                _ => assert!(count.attempts <= count.failed + count.sent, "{seed}"),
            }
            assert!(count.busy_ns < 20 * S, "{seed}: the medium is still busy");
        }
    }
}

/// A receiver gets the packets of a category in the order in which they arrived at their sender.
#[test]
fn packets_stay_in_order() {
    let (mut packets, mut aggregates) = (0, 0);
    for seed in 0..60 {
        let setup = setup(seed);
        let (air, outcomes) = run(&setup, || 20 * MS);
        let mut last = BTreeMap::new();
        for outcome in outcomes {
            let Outcome::Delivered {
                from, to, token, ..
            } = outcome
            else {
                continue;
            };
            let unicast = setup.arrivals.iter();
            let mut unicast = unicast.filter(|(.., frame)| frame.to == To::Station(to as u16));
            let Some((at_ns, ..)) = unicast.find(|(.., frame)| frame.token == token) else {
                continue;
            };
            // Precedence decides on the category of most packets.
            let key = (from, to, ds(token) >> 2);
            let before = last.insert(key, *at_ns);
            assert!(
                before.is_none_or(|before| before <= *at_ns),
                "{seed}: {token}"
            );
            packets += 1;
        }
        let counts = (0..setup.modes.len()).map(|station| air.count(station));
        aggregates += counts.filter(|c| c.sent > c.attempts - c.failed).count();
    }
    assert!(packets > 1_500 && aggregates > 5, "{packets} {aggregates}");
}

/// The same arrivals, read in other portions: the same air.
#[test]
fn the_air_does_not_depend_on_when_it_is_read() {
    for seed in 0..40 {
        let setup = setup(seed);
        let (_, outcomes) = run(&setup, || 20 * MS);
        let mut random = Random(seed);
        let (_, again) = run(&setup, || 1 + random.below(3 * MS));
        assert_eq!(outcomes, again, "{seed}");
    }
}
