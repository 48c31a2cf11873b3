// SPDX-License-Identifier: MIT OR Apache-2.0
//! What theory says of every moment: the wire is never idle for nothing, no class gets more than
//! its ceil or less than its guarantee, and nobody waits for longer than a round.

use emud::bottleneck::{Class, Plan, QUANTUM, Schedule};

use super::random;
use super::traffic::{Outcome, Packet, Random, SECOND, serve};

const FRAME: u32 = 1514;

/// Bytes of classes above what a rate carries, in the interval where that is most. What is sent
/// in an interval counts with its share of the packets at both ends.
fn excess(outcome: &Outcome, packets: &[Packet], within: &[usize], rate: u64) -> f64 {
    let (mut sent, mut least, mut most) = (0.0, f64::MAX, f64::MIN);
    for served in outcome.served.iter().filter(|s| within.contains(&s.class)) {
        let above = |at: u64, sent: f64| sent - at as f64 * rate as f64 / 8e9;
        least = above(served.start_ns, sent).min(least);
        sent += f64::from(packets[served.token].bytes);
        most = (above(served.finish_ns, sent) - least).max(most);
    }
    most
}

/// Bytes that a rate carries above those of a class, since the start and in the interval where
/// that is most.
fn shortage(outcome: &Outcome, packets: &[Packet], class: usize, rate: u64, to: u64) -> [f64; 2] {
    let (mut sent, mut most, mut worst) = (0.0, 0.0, [f64::MIN; 2]);
    let of = outcome.served.iter().filter(|s| s.class == class);
    for served in of.filter(|s| s.finish_ns <= to) {
        let above = |at: u64, sent: f64| sent - at as f64 * rate as f64 / 8e9;
        let behind = -above(served.start_ns, sent);
        worst = [behind.max(worst[0]), (most + behind).max(worst[1])];
        sent += f64::from(packets[served.token].bytes);
        most = above(served.finish_ns, sent).max(most);
    }
    worst
}

fn leaves_below(plan: &Plan, class: usize) -> Vec<usize> {
    let is_below = |leaf: &usize| {
        std::iter::successors(Some(*leaf), |c| plan.classes[*c].parent).any(|c| c == class)
    };
    (0..plan.classes.len()).filter(is_below).collect()
}

#[test]
fn the_wire_is_idle_only_when_nothing_waits() {
    let mut random = Random(11);
    for _ in 0..100 {
        let mut plan = random::plan(&mut random);
        for class in &mut plan.classes {
            class.ceil = None;
        }
        let packets = random::packets(&mut random, &plan, 500);
        let outcome = serve(&plan, &packets);
        let mut free = 0;
        for (at, served) in outcome.served.iter().enumerate() {
            let idle = free.max(served.arrival_ns);
            assert!(served.start_ns >= free);
            if served.start_ns > free {
                // Then all that is yet to be sent has only just arrived.
                for later in &outcome.served[at..] {
                    assert!(later.arrival_ns >= served.start_ns, "{served:?}, {later:?}");
                }
                assert_eq!(served.start_ns, idle);
            }
            free = served.finish_ns;
        }
    }
}

#[test]
fn no_class_is_above_its_ceil_by_more_than_a_packet() {
    let mut random = Random(12);
    let mut checked = 0;
    for _ in 0..200 {
        let plan = random::plan(&mut random);
        let packets = random::packets(&mut random, &plan, 500);
        let longest = packets.iter().map(|p| p.bytes).max().unwrap();
        let outcome = serve(&plan, &packets);
        for (class, figures) in plan.classes.iter().enumerate() {
            let Some(ceil) = figures.ceil else { continue };
            let within = leaves_below(&plan, class);
            let excess = excess(&outcome, &packets, &within, ceil);
            // A ns of rounding at either end.
            let rounding = 2.0 * plan.rate as f64 / 8e9;
            assert!(
                excess <= f64::from(longest) + rounding + 0.01,
                "{excess} of {longest}: {class}, {plan:?}"
            );
            checked += usize::from(excess > 0.0);
        }
    }
    assert!(checked > 100, "{checked} classes with a ceil");
}

/// Packets of random sizes, more than the wire can carry.
fn greedy(random: &mut Random, class: usize, rate: u64, to: u64) -> Vec<Packet> {
    let mut at = 0;
    std::iter::from_fn(|| {
        let bytes = 64 + random.below(1451) as u32;
        at += 8 * u64::from(bytes) * SECOND / rate / 2;
        (at < to).then_some(Packet { at, class, bytes })
    })
    .collect()
}

#[test]
fn guaranteed_rates_are_met_in_every_interval() {
    let mut random = Random(13);
    for round in 0..40 {
        let rate = 10_000_000;
        let count = 2 + random.below(6) as usize;
        let shares: Vec<u64> = (0..count).map(|_| 1 + random.below(20)).collect();
        let all: u64 = shares.iter().sum();
        let rates: Vec<u64> = shares.iter().map(|share| rate * share / all).collect();
        let priorities = round % 2 == 1;
        let class = |(index, rate): (usize, &u64)| Class {
            rate: Some(*rate),
            priority: if priorities { index as u8 } else { 0 },
            ..Class::default()
        };
        let plan = Plan {
            rate,
            schedule: Schedule::Htb,
            seed: 0,
            classes: rates.iter().enumerate().map(class).collect(),
        };
        let to = 2 * SECOND;
        let packets = super::traffic::merge((0..count).map(|c| greedy(&mut random, c, rate, to)));
        let outcome = serve(&plan, &packets);
        for (class, rate) in rates.iter().enumerate() {
            let quantum = quantum(&rates, class);
            let [lag, shortage] = shortage(&outcome, &packets, class, *rate, to);
            // Those of better priority may be in front with a packet each.
            let beside = if priorities { class as f64 } else { 0.0 };
            let packet = f64::from(FRAME);
            let most = quantum + beside * packet;
            assert!(
                lag <= most,
                "{lag} behind, at most {most}: {class} of {rates:?}"
            );
            // An interval may begin where it is ahead by a packet.
            assert!(
                shortage <= most + packet,
                "{shortage} of {most}: {class} of {rates:?}"
            );
        }
    }
}

fn quantum(rates: &[u64], class: usize) -> f64 {
    QUANTUM as f64 * rates[class] as f64 / *rates.iter().min().unwrap() as f64
}

/// A packet that finds its class empty waits for a packet on the wire and a turn of every other
/// class: its quantum, and the packet that begins within it.
#[test]
fn a_round_of_drr_is_bounded() {
    let mut random = Random(14);
    for _ in 0..20 {
        let rate = 10_000_000;
        let weights: Vec<u32> = (0..4).map(|_| 1 + random.below(8) as u32).collect();
        let class = |weight: &u32| Class {
            weight: *weight,
            ..Class::default()
        };
        let plan = Plan {
            rate,
            schedule: Schedule::Drr,
            seed: 0,
            classes: weights.iter().map(class).collect(),
        };
        let to = 2 * SECOND;
        let mut parts: Vec<_> = (1..4).map(|c| greedy(&mut random, c, rate, to)).collect();
        let alone = |n: u64| Packet {
            at: 100_003_000 * n,
            class: 0,
            bytes: FRAME,
        };
        parts.push((1..18).map(alone).collect());
        let packets = super::traffic::merge(parts);
        let outcome = serve(&plan, &packets);
        let least = *weights.iter().min().unwrap();
        let turns: u64 = weights[1..]
            .iter()
            .map(|weight| QUANTUM * u64::from(*weight) / u64::from(least) + u64::from(FRAME))
            .sum();
        let bound = 8 * (turns + u64::from(FRAME)) * SECOND / rate;
        let waits = outcome.served.iter().filter(|s| s.class == 0);
        let longest = waits.map(|s| s.start_ns - s.arrival_ns).max().unwrap();
        assert!(
            longest <= bound,
            "{longest} ns, at most {bound}: {weights:?}"
        );
        assert!(
            longest > bound / 8,
            "{longest} ns, the bound {bound} says nothing"
        );
    }
}

/// A class whose ceil is below its share gets its ceil, although it waits for others each time: the
/// rounds of the others go on while it is closed.
#[test]
fn a_ceil_below_the_share_is_reached() {
    let mut random = Random(15);
    let rate = 10_000_000;
    let to = 10 * SECOND;
    for (others, share, least) in [
        (1, 0.9, 0.999),
        (3, 0.6, 0.999),
        (7, 0.4, 0.999),
        (7, 0.8, 0.93),
    ] {
        let ceil = (rate as f64 / (others + 1) as f64 * share) as u64;
        let capped = Class {
            ceil: Some(ceil),
            ..Class::default()
        };
        let plan = Plan {
            rate,
            schedule: Schedule::Drr,
            seed: 0,
            classes: [vec![capped], vec![Class::default(); others]].concat(),
        };
        let packets = (0..=others).map(|class| greedy(&mut random, class, rate, to));
        let packets = super::traffic::merge(packets);
        let got = serve(&plan, &packets).rate(&packets, 0, 0, to) / ceil as f64;
        assert!(
            (least..1.001).contains(&got),
            "{got} of the ceil, {share} of a share among {others} others"
        );
    }
}
