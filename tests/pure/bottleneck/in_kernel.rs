// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server of emud's qdisc (bpf/server.h), compiled for this machine, decides as that of engine hold.

use std::fmt::Write;

use emud::bottleneck::{Cause, Decision, Plan, Server};
use emud::datapath::stage::service;

use super::random::{packets, plan};
use super::traffic::{Packet, Random, SECOND};
use crate::program::answers;

/// Another plan from a time on, when all up to `until` is decided.
struct Change {
    at: u64,
    until: u64,
    plan: Plan,
}

/// Packets, each with the change before it.
type Round = (Plan, Vec<(Option<Change>, Packet)>);

fn put(out: &mut String, number: impl Into<u64>) {
    write!(out, "{} ", number.into()).unwrap();
}

fn put_plan(out: &mut String, plan: &Plan) {
    let plan = service::encode(plan);
    put(out, plan.rate);
    for number in [plan.schedule, plan.nodes, plan.leaves] {
        put(out, number);
    }
    for node in &plan.node[1..plan.nodes as usize] {
        for number in [
            node.rate,
            node.ceil,
            node.quantum,
            node.limit_bytes,
            node.limit_ns,
        ] {
            put(out, number);
        }
        put(out, node.limit_packets);
        put(out, node.parent);
        put(out, node.level);
        put(out, node.priority);
        put(out, node.is_leaf);
    }
}

fn input(rounds: &[Round]) -> String {
    let mut out = String::new();
    put(&mut out, rounds.len() as u64);
    for (plan, packets) in rounds {
        put_plan(&mut out, plan);
        put(&mut out, packets.len() as u64);
        for (change, packet) in packets {
            put(&mut out, change.is_some());
            if let Some(change) = change {
                put(&mut out, change.at);
                put(&mut out, change.until);
                put_plan(&mut out, &change.plan);
            }
            put(&mut out, packet.at);
            put(&mut out, packet.class as u64);
            put(&mut out, packet.bytes);
        }
        out.push('\n');
    }
    out
}

/// What engine hold decides, as the program writes it.
fn expected(rounds: &[Round]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut note = |decision: Decision<usize>| {
        lines.push(match decision {
            Decision::Served(s) => format!("sent {} {} {}", s.token, s.start_ns, s.finish_ns),
            Decision::Dropped(d) => match d.cause {
                Cause::Full => format!("full {}", d.token),
                Cause::Expired => format!("expired {}", d.token),
                Cause::Managed => panic!("there is no manager"),
            },
        });
    };
    for (plan, packets) in rounds {
        let mut server = Server::new(plan);
        for (index, (change, packet)) in packets.iter().enumerate() {
            if let Some(change) = change {
                while let Some(decision) = server.decide(change.until) {
                    note(decision);
                }
                server.change(&change.plan, change.at);
            }
            server.arrive(packet.arrival(index), index);
        }
        while let Some(decision) = server.decide(u64::MAX - 1) {
            note(decision);
        }
    }
    lines
}

fn compare(rounds: &[Round]) -> usize {
    let want = expected(rounds);
    let got = answers("server", &[], &input(rounds));
    let got: Vec<&str> = got.lines().collect();
    if let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) {
        panic!("decision {at} is {}, not {}", got[at], want[at]);
    }
    assert_eq!(got.len(), want.len());
    want.iter().filter(|line| line.starts_with("sent")).count()
}

#[test]
fn service_is_that_of_engine_hold() {
    let mut random = Random(11);
    let rounds = (0..300).map(|_| {
        let plan = plan(&mut random);
        let packets = packets(&mut random, &plan, 500);
        (
            plan,
            packets.into_iter().map(|packet| (None, packet)).collect(),
        )
    });
    let sent = compare(&rounds.collect::<Vec<Round>>());
    assert!(sent > 60_000, "{sent}");
}

/// Rates, ceils, weights, priorities, limits and the schedule change while packets wait.
#[test]
fn changes_are_those_of_engine_hold() {
    let mut random = Random(12);
    let mut changes = 0;
    let rounds = (0..300).map(|_| {
        let first = plan(&mut random);
        let arrivals = packets(&mut random, &first, 300);
        let mut last = 0;
        let with_changes = arrivals.into_iter().map(|packet| {
            let gap = packet.at.saturating_sub(last + 1);
            let change = (gap > 0 && random.one_in(15)).then(|| {
                changes += 1;
                let until = last + random.below(gap);
                Change {
                    at: until + random.below(SECOND / 100),
                    until,
                    plan: like(&mut random, &first),
                }
            });
            last = packet.at;
            (change, packet)
        });
        let with_changes = with_changes.collect();
        (first, with_changes)
    });
    let sent = compare(&rounds.collect::<Vec<Round>>());
    assert!(
        sent > 30_000 && changes > 3_000,
        "{sent} sent, {changes} changes"
    );
}

/// Other figures for the same classes.
fn like(random: &mut Random, tree: &Plan) -> Plan {
    let other = plan(random);
    let classes = tree.classes.iter().enumerate().map(|(index, class)| {
        let figures = &other.classes[index % other.classes.len()];
        let mut changed = *class;
        changed.priority = figures.priority;
        changed.weight = figures.weight;
        changed.limits = figures.limits;
        changed.ceil = class.ceil.and(figures.ceil);
        changed.rate = class.rate.map(|rate| figures.rate.unwrap_or(rate));
        changed
    });
    Plan {
        rate: other.rate,
        schedule: if random.one_in(4) {
            other.schedule
        } else {
            tree.schedule
        },
        seed: tree.seed,
        classes: classes.collect(),
    }
}
