// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random trees of classes and random packets.

use emud::bottleneck::{Cause, Class, Decision, Limits, Plan, Schedule, Server, Signals};

use super::reference::{Fate, run};
use super::traffic::{Packet, Random, SECOND, decisions};

const SCHEDULES: [Schedule; 4] = [
    Schedule::Fifo,
    Schedule::Priority,
    Schedule::Drr,
    Schedule::Htb,
];

fn limits(random: &mut Random, rate: u64) -> Limits {
    Limits {
        packets: (!random.one_in(4)).then(|| 1 + random.below(60) as u32),
        bytes: random.one_in(3).then(|| 2000 + random.below(80_000)),
        // Up to the time of some 60 packets.
        time_ns: random
            .one_in(3)
            .then(|| 1 + random.below(60 * 12_000 * SECOND / rate)),
    }
}

pub fn plan(random: &mut Random) -> Plan {
    let schedule = SCHEDULES[random.below(4) as usize];
    let rate =
        [64_000, 999_983, 10_000_000, 1_000_000_007, 99_999_999_977][random.below(5) as usize];
    let count = 1 + random.below(12) as usize;
    // Below some classes nothing is guaranteed.
    let mut lends_all: Vec<bool> = Vec::new();
    let classes = (0..count).map(|index| {
        let nested = index > 0 && schedule != Schedule::Fifo && !random.one_in(3);
        let parent = nested.then(|| random.below(index as u64) as usize);
        let shares = parent.is_some_and(|parent| lends_all[parent]);
        lends_all.push(shares || random.one_in(3));
        Class {
            parent,
            priority: random.below(3) as u8,
            weight: 1 + random.below(20) as u32,
            rate: (schedule == Schedule::Htb && !shares).then(|| 1 + rate / (1 + random.below(30))),
            ceil: (schedule != Schedule::Fifo && random.one_in(3))
                .then(|| 1 + rate / (1 + random.below(8))),
            limits: limits(random, rate),
            signals: Signals::None,
        }
    });
    Plan {
        rate,
        schedule,
        seed: 7,
        classes: classes.collect(),
    }
}

/// Bursts and gaps about the rate of the wire, some packets at the same moment.
pub fn packets(random: &mut Random, plan: &Plan, count: usize) -> Vec<Packet> {
    let inner = |class: usize| plan.classes.iter().any(|c| c.parent == Some(class));
    let leaves: Vec<usize> = (0..plan.classes.len()).filter(|c| !inner(*c)).collect();
    let load = 5 + random.below(20); // tenths
    let mut at = random.below(SECOND);
    let packet = |_| {
        let sizes = [1514, 64, 9000, 40 + random.below(1500)];
        let bytes = sizes[random.below(20).min(3) as usize] as u32;
        let wire = 8 * u64::from(bytes) * SECOND / plan.rate;
        at += match random.below(8) {
            0..=2 => 0,
            7 if random.one_in(40) => 200 * wire,
            _ => random.below(1 + 32 * wire / load),
        };
        let class = leaves[random.below(leaves.len() as u64) as usize];
        Packet { at, class, bytes }
    };
    (0..count).map(packet).collect()
}

/// A decision as the reference has it.
fn fate(decision: &Decision<usize>) -> (usize, Fate) {
    match decision {
        Decision::Served(s) => (s.token, Fate::Sent(s.start_ns, s.finish_ns)),
        Decision::Dropped(d) => match d.cause {
            Cause::Full => (d.token, Fate::Full),
            Cause::Expired => (d.token, Fate::Expired),
            Cause::Managed => panic!("there is no manager"),
        },
    }
}

#[test]
fn service_is_that_of_the_reference() {
    let mut random = Random(1);
    let (mut sent, mut dropped) = (0, 0);
    for round in 0..200 {
        let plan = plan(&mut random);
        let packets = packets(&mut random, &plan, 500);
        let got: Vec<_> = decisions(&plan, &packets).iter().map(fate).collect();
        let want = run(&plan, &packets);
        let differs = got.iter().zip(&want).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let (a, b) = (got[at], want[at]);
            panic!("round {round}, {at}: {a:?}, reference {b:?}; {plan:?}");
        }
        assert_eq!(got.len(), want.len());
        let starts = got
            .iter()
            .filter(|(_, f)| matches!(f, Fate::Sent(..)))
            .count();
        (sent, dropped) = (sent + starts, dropped + got.len() - starts);
    }
    assert!(
        sent > 40_000 && dropped > 5_000,
        "{sent} sent, {dropped} dropped"
    );
}

/// The first packet of a class above others is not known, so its deadline is that of a quantum: packets have this length.
#[test]
fn a_class_without_a_rate_is_the_class_above_it() {
    let mut random = Random(5);
    let mut sent = 0;
    for round in 0..200 {
        let mut plan = plan(&mut random);
        plan.schedule = Schedule::Htb;
        plan.classes.retain(|class| class.parent.is_none());
        for class in &mut plan.classes {
            class.rate.get_or_insert(1 + plan.rate / 9);
        }
        let leaf = random.below(plan.classes.len() as u64) as usize;
        let packets = packets(&mut random, &plan, 500);
        let packets: Vec<_> = (packets.iter())
            .map(|packet| Packet {
                bytes: 1600,
                ..*packet
            })
            .collect();
        let mut nested = plan.clone();
        nested.classes.push(Class {
            parent: Some(leaf),
            limits: plan.classes[leaf].limits,
            priority: random.below(3) as u8,
            ..Class::default()
        });
        let below = nested.classes.len() - 1;
        let to_below = |packet: &Packet| match packet.class == leaf {
            true => Packet {
                class: below,
                ..*packet
            },
            false => *packet,
        };
        let lower: Vec<_> = packets.iter().map(to_below).collect();
        let got: Vec<_> = decisions(&nested, &lower).iter().map(fate).collect();
        let want: Vec<_> = decisions(&plan, &packets).iter().map(fate).collect();
        assert!(got == want, "round {round}: {nested:?}");
        sent += got.len();
    }
    assert_eq!(sent, 100_000);
}

/// A holder reads late, and in batches of any size.
#[test]
fn the_time_of_reading_changes_nothing() {
    let mut random = Random(2);
    for _ in 0..5 {
        let mut plan = plan(&mut random);
        super::managers::manage(&mut random, &mut plan);
        let packets = packets(&mut random, &plan, 400);
        let whole = decisions(&plan, &packets);
        for _ in 0..100 {
            let mut server = Server::new(&plan);
            let mut got = Vec::new();
            let mut read = 0;
            while read < packets.len() {
                let batch = 1 + random.below(50) as usize;
                let end = (read + batch).min(packets.len());
                for (index, packet) in packets.iter().enumerate().take(end).skip(read) {
                    assert!(server.arrive(packet.arrival(index), index));
                }
                read = end;
                // All up to here has been read, as long as the next one is later.
                let next = packets.get(end).map_or(u64::MAX, |next| next.at);
                let until = match random.one_in(3) {
                    true => packets[end - 1].at.saturating_sub(random.below(SECOND)),
                    false => next - 1,
                };
                if until < next {
                    got.extend(std::iter::from_fn(|| server.decide(until)));
                }
            }
            got.extend(std::iter::from_fn(|| server.decide(u64::MAX)));
            assert_eq!(got, whole);
        }
    }
}

/// Each `emud set` hands out the figures again: no class gets or loses a turn, a guarantee or a ceil.
#[test]
fn a_change_of_something_else_changes_no_service() {
    let mut random = Random(4);
    for _ in 0..100 {
        let mut plan = plan(&mut random);
        super::managers::manage(&mut random, &mut plan);
        let packets = packets(&mut random, &plan, 400);
        let mut server = Server::new(&plan);
        for (index, packet) in packets.iter().enumerate() {
            server.arrive(packet.arrival(index), index);
        }
        let mut got = Vec::new();
        let mut other = plan.clone();
        while let Some(decision) = server.decide(u64::MAX) {
            got.push(decision);
            if random.one_in(3) {
                // Of a server that has begun the seed says nothing.
                other.seed += 1;
                server.change(&other, random.below(SECOND));
            }
        }
        assert!(got == decisions(&plan, &packets), "{plan:?}");
    }
}

/// Without classes a bottleneck is the clock of `queue`: what it admits, and when that is sent.
#[test]
fn one_class_is_the_clock_of_a_queue() {
    let mut random = Random(3);
    for _ in 0..100 {
        let rate = 1 + random.below(1_000_000_000);
        let mut limits = limits(&mut random, rate);
        if random.one_in(2) {
            // What is to expire takes room until it does.
            (limits.packets, limits.bytes) = (None, None);
        } else {
            limits.time_ns = None;
        }
        let class = Class {
            limits,
            ..Class::default()
        };
        let plan = Plan {
            rate,
            schedule: SCHEDULES[random.below(3) as usize],
            seed: 0,
            classes: vec![class],
        };
        let packets = packets(&mut random, &plan, 300);
        let mut got: Vec<_> = decisions(&plan, &packets).iter().map(fate).collect();
        got.sort_by_key(|(index, _)| *index);
        let mut sent: Vec<u128> = Vec::new();
        let rate = u128::from(plan.rate);
        let work = |bytes: u64| u128::from(bytes) * 8_000_000_000;
        for (packet, (_, fate)) in packets.iter().zip(got) {
            // Times rate.
            let at = u128::from(packet.at) * rate;
            let last = sent.last().copied().unwrap_or(0);
            let start = match last / rate < u128::from(packet.at) {
                true => at,
                false => last,
            };
            let end = start + work(packet.bytes.into());
            let behind = sent
                .iter()
                .rev()
                .take_while(|t| **t / rate > packet.at.into())
                .count();
            let wait = (start / rate) as u64 - packet.at;
            let full = limits.packets.is_some_and(|n| behind >= n as usize)
                || limits.bytes.is_some_and(|bytes| end - at > work(bytes));
            if full || limits.time_ns.is_some_and(|most| wait > most) {
                let want = [Fate::Full, Fate::Expired];
                assert!(want.contains(&fate), "{fate:?}");
            } else {
                assert_eq!(fate, Fate::Sent((start / rate) as u64, (end / rate) as u64));
                sent.push(end);
            }
        }
    }
}
