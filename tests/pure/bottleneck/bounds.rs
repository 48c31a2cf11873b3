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

/// Bytes that a rate carries above those of a class while packets wait in it: when one begins, since
/// the first arrival, and in the interval where that is most.
struct Shortage {
    /// Beyond `b + (longest - b) r / R`.
    beyond: f64,
    worst: f64,
}

fn shortage(outcome: &Outcome, packets: &[Packet], plan: &Plan, class: usize) -> Option<Shortage> {
    let rate = plan.classes[class].rate.unwrap() as f64;
    let longest = f64::from(packets.iter().map(|p| p.bytes).max().unwrap());
    let carried = |ns: u64| ns as f64 * rate / 8e9;
    let of: Vec<_> = (outcome.served.iter())
        .filter(|s| s.class == class)
        .collect();
    let mut shortage = Shortage {
        beyond: f64::MIN,
        worst: f64::MIN,
    };
    // Of a time without a gap in the queue: its start, bytes since, and where they were most ahead.
    let (mut begin, mut sent, mut ahead) = (of.first()?.arrival_ns, 0.0, 0.0f64);
    let mut is_first = true;
    for (at, served) in of.iter().enumerate() {
        if at > 0 && of[at - 1].start_ns < served.arrival_ns {
            is_first = false;
            begin = served.arrival_ns.max(of[at - 1].finish_ns);
            (sent, ahead) = (0.0, 0.0);
        }
        let bytes = f64::from(packets[served.token].bytes);
        let behind = carried(served.start_ns - begin) - sent;
        if is_first {
            let most = bytes + (longest - bytes) * rate / plan.rate as f64;
            shortage.beyond = shortage.beyond.max(behind - most);
        }
        shortage.worst = shortage.worst.max(behind + ahead);
        sent += bytes;
        ahead = ahead.max(sent - carried(served.finish_ns - begin));
    }
    Some(shortage)
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

/// Packets of random sizes up to one, with or without gaps, at about a load.
fn bursts(random: &mut Random, class: usize, longest: u32, load: u64, to: u64) -> Vec<Packet> {
    let (mut at, greedy) = (random.below(SECOND / 10), random.one_in(2));
    let constant = random.one_in(3);
    std::iter::from_fn(|| {
        let bytes = match constant {
            true => longest,
            false => 64 + random.below(u64::from(longest) - 63) as u32,
        };
        let wire = 8 * u64::from(bytes) * SECOND / load;
        at += match (greedy, random.below(4)) {
            (true, _) => wire / 2,
            (false, 0) => random.below(8 * wire),
            (false, _) => 0,
        };
        (at < to).then_some(Packet { at, class, bytes })
    })
    .collect()
}

/// A tree in which the rates of the classes with packets add up to the server's at most.
fn guaranteed(random: &mut Random, rate: u64, priorities: u64) -> (Plan, Vec<usize>) {
    let count = 2 + random.below(10) as usize;
    let mut classes: Vec<Class> = (0..count)
        .map(|index| Class {
            parent: (index > 0 && random.one_in(2)).then(|| random.below(index as u64) as usize),
            priority: random.below(priorities) as u8,
            rate: Some(1 + rate / (1 + random.below(20))),
            ..Class::default()
        })
        .collect();
    let is_leaf = |class: &usize| !classes.iter().any(|c| c.parent == Some(*class));
    let leaves: Vec<usize> = (0..count).filter(is_leaf).collect();
    let shares: Vec<u64> = leaves.iter().map(|_| 1 + random.below(20)).collect();
    let all = shares.iter().sum::<u64>() + random.below(2) * random.below(20);
    for (leaf, share) in leaves.iter().zip(shares) {
        classes[*leaf].rate = Some(rate * share / all);
    }
    let plan = Plan {
        rate,
        schedule: Schedule::Htb,
        seed: 0,
        classes,
    };
    (plan, leaves)
}

/// The bounds of docs/queues.md, over random trees and packets.
#[test]
fn guaranteed_rates_are_met_in_every_interval() {
    let mut random = Random(13);
    // What was reached of the bounds.
    let mut reached = [0.0f64; 2];
    for round in 0..support::count(300) {
        let rate = 10_000_000;
        let priorities = if round % 3 == 0 { 4 } else { 1 };
        let (plan, leaves) = guaranteed(&mut random, rate, priorities);
        let longest = [1514, 1514, 600, 9000][random.below(4) as usize];
        let to = 2 * SECOND;
        let packets = leaves.iter().map(|leaf| {
            let load = plan.classes[*leaf].rate.unwrap();
            bursts(&mut random, *leaf, longest, load, to)
        });
        let packets = super::traffic::merge(packets);
        let outcome = serve(&plan, &packets);
        let longest = f64::from(packets.iter().map(|p| p.bytes).max().unwrap());
        let share = |leaf: &usize| plan.classes[*leaf].rate.unwrap() as f64 / rate as f64;
        for leaf in &leaves {
            let own = plan.classes[*leaf].priority;
            let better = leaves.iter().filter(|l| plan.classes[**l].priority < own);
            let (r, better_share) = (share(leaf), better.clone().map(share).sum::<f64>());
            let blocked = longest * r * (1 + better.count()) as f64 / (1.0 - better_share);
            let most = 2.0 * longest * (1.0 - r) + blocked;
            let Some(got) = shortage(&outcome, &packets, &plan, *leaf) else {
                continue;
            };
            // Clocks are cut off to ns.
            let rounding = 4.0 * rate as f64 / 8e9;
            assert!(
                got.worst <= most + rounding,
                "{} in an interval, at most {most}: {leaf} of {plan:?}",
                got.worst
            );
            reached[0] = reached[0].max(got.worst / most);
            if priorities == 1 {
                assert!(got.beyond <= rounding, "{}: {leaf} of {plan:?}", got.beyond);
                reached[1] = reached[1].max(1.0 + got.beyond / longest);
            }
        }
    }
    assert!(reached.iter().all(|r| *r > 0.9), "{reached:?}");
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

/// Below another class, too, whose other classes have nothing to send.
#[test]
fn a_ceil_below_a_class_is_reached() {
    let mut random = Random(16);
    let (rate, ceil) = (10_000_000, 400_000);
    let to = 10 * SECOND;
    let class = |parent, weight, ceil| Class {
        parent,
        weight,
        ceil,
        ..Class::default()
    };
    let plan = Plan {
        rate,
        schedule: Schedule::Drr,
        seed: 0,
        classes: vec![
            class(None, 1, None),
            class(Some(0), 1, Some(ceil)),
            class(None, 10, None),
        ],
    };
    let packets = [1, 2].map(|class| greedy(&mut random, class, rate, to));
    let packets = super::traffic::merge(packets);
    let got = serve(&plan, &packets).rate(&packets, 1, 0, to) / ceil as f64;
    assert!((0.99..1.01).contains(&got), "{got} of the ceil");
}

/// Classes that are guaranteed more than the one above them use up its guarantee ahead of time, by a minute
/// at most.
#[test]
fn a_class_that_promises_too_much_lends_again() {
    let class = |parent, rate: u64| Class {
        parent,
        rate: Some(rate),
        ..Class::default()
    };
    let plan = Plan {
        rate: 10_000_000,
        schedule: Schedule::Htb,
        seed: 0,
        classes: vec![
            class(None, 2_000_000),
            class(Some(0), 5_000_000),
            class(Some(0), 1_000_000),
            class(None, 8_000_000),
        ],
    };
    // For 100 s the first one alone, which uses 5 of the 2 Mbit/s; then the second one beside another class.
    let (first, to) = (100 * SECOND, 240 * SECOND);
    let mut random = Random(17);
    let alone = greedy(&mut random, 1, 3_000_000, first);
    let later = [2, 3].map(|class| {
        let mut packets = greedy(&mut random, class, 5_000_000, to - first);
        packets.iter_mut().for_each(|packet| packet.at += first);
        packets
    });
    let packets = super::traffic::merge([alone].into_iter().chain(later));
    let served = serve(&plan, &packets);
    let got = served.rate(&packets, 2, to - 10 * SECOND, to);
    // All that the class above it is guaranteed.
    assert!(got > 1_900_000.0, "{got}");
}
