// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every node reaches every other one, with few routes.

use std::collections::HashSet;
use std::fmt::Write;

use emud::experiment::scenario::{Overrides, Plan, shipped};
use proptest::prelude::*;

use super::walk::walk;
use super::{plan, with};

/// All addresses and interfaces exist once, and all nodes reach all addresses of all others.
fn everybody_meets(plan: &Plan) {
    apart(plan);
    for from in &plan.nodes {
        for to in plan.nodes.iter().filter(|to| to.name != from.name) {
            for address in plan.addresses(&to.name) {
                walk(plan, &from.name, address.addr())
                    .unwrap_or_else(|why| panic!("{} to {}: {why}", from.name, to.name));
            }
        }
    }
}

fn apart(plan: &Plan) {
    let mut addresses = HashSet::new();
    let mut interfaces = HashSet::new();
    for node in &plan.nodes {
        for net in plan.addresses(&node.name) {
            assert!(addresses.insert(net.addr()), "{net} twice");
        }
    }
    for end in plan.wires.iter().flat_map(|wire| &wire.ends) {
        assert!(end.interface.len() <= 15, "{}", end.interface);
        assert!(interfaces.insert((&end.node, &end.interface)), "{end:?}");
    }
}

#[test]
fn every_topology_of_every_size_is_connected() {
    for (text, most, routes) in [
        ("kind = \"chain\"\nrouters = 1", 40, 14),
        ("kind = \"mesh\"\nnodes = 2", 16, 64),
        ("kind = \"dumbbell\"\npairs = 1", 12, 8),
        (
            "kind = \"star\"\nclass.a.peers = 1\nclass.b.peers = 1",
            40,
            3,
        ),
    ] {
        let text = format!("[topology]\n{text}\n");
        for nodes in [2, 3, 7, most] {
            let overrides = Overrides {
                nodes: Some(nodes),
                command: Some(emud::experiment::scenario::Program::Shell(
                    "true".to_owned(),
                )),
                ..Overrides::default()
            };
            let plan = with(&text, &overrides);
            everybody_meets(&plan);
            let found = plan
                .nodes
                .iter()
                .map(|node| node.routes.len())
                .max()
                .unwrap();
            assert!(found <= routes, "{found} routes of a node\n{text}");
        }
    }
}

#[test]
fn the_shipped_ones_are_connected() {
    // A daemon finds the routes of broch.
    for shipped in shipped::SHIPPED.iter().filter(|s| s.name != "broch") {
        let scenario = shipped.parse().unwrap();
        everybody_meets(&scenario.plan(&Overrides::default()).unwrap());
    }
}

#[test]
fn a_wire_beside_a_topology_is_reached_from_all_of_it() {
    for topology in [
        "kind = \"chain\"\nrouters = 3\n[link.more]\nbetween = [\"extra\", \"r2\"]",
        "kind = \"star\"\nclass.a.peers = 5\n[link.more]\nbetween = [\"extra\", \"hub\"]",
        "kind = \"star\"\nclass.a.peers = 5\n[link.more]\nbetween = [\"extra\", \"a3\"]",
    ] {
        everybody_meets(&plan(&format!(
            "[node.extra]\ncommand = \"true\"\n[topology]\n{topology}\n"
        )));
    }
}

#[test]
fn of_ways_alike_the_one_over_the_link_written_first_is_taken() {
    for [first, last] in [["r1", "r2"], ["r2", "r1"]] {
        let plan = plan(&format!(
            "[node.a]\ncommand = \"true\"\n[node.b]\n[node.c]\n[node.r1]\n[node.r2]\n\
             [link.l1]\nbetween = [\"a\", \"{first}\"]\n[link.l2]\nbetween = [\"{first}\", \"b\"]\n\
             [link.l3]\nbetween = [\"{last}\", \"b\"]\n[link.l4]\nbetween = [\"a\", \"{last}\"]\n\
             [link.l5]\nbetween = [\"b\", \"c\"]\n"
        ));
        let way = walk(&plan, "a", plan.addresses("c")[0].addr());
        assert_eq!(way, Ok(["a", first, "b", "c"].map(str::to_owned).to_vec()));
    }
}

/// A graph: for each node except the first, an earlier node, more links, and the nodes that do not
/// forward.
#[derive(Debug, Clone)]
struct Random {
    before: Vec<usize>,
    more: Vec<(usize, usize)>,
    silent: Vec<bool>,
}

impl Random {
    fn edges(&self) -> Vec<(usize, usize)> {
        let nodes = self.before.len() + 1;
        let tree = (1..)
            .zip(&self.before)
            .map(|(node, before)| (before % node, node));
        let more = self.more.iter().map(|(a, b)| (a % nodes, b % nodes));
        tree.chain(more.filter(|(a, b)| a != b)).collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for node in 0..=self.before.len() {
            let _ = writeln!(text, "[node.n{node}]\ncommand = \"true\"");
            if self.silent[node] {
                text += "forwards = false\n";
            }
        }
        for (number, (a, b)) in self.edges().iter().enumerate() {
            let _ = writeln!(text, "[link.l{number}]\nbetween = [\"n{a}\", \"n{b}\"]");
        }
        text
    }

    /// Returns whether nodes that forward connect the two.
    fn joined(&self, from: usize, to: usize) -> bool {
        let mut seen = HashSet::from([from]);
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if node != from && self.silent[node] {
                continue;
            }
            for (a, b) in self.edges() {
                for (here, there) in [(a, b), (b, a)] {
                    if here == node && seen.insert(there) {
                        next.push(there);
                    }
                }
            }
        }
        seen.contains(&to)
    }
}

fn random() -> impl Strategy<Value = Random> {
    (1..10_usize).prop_flat_map(|nodes| {
        (
            prop::collection::vec(0..64_usize, nodes),
            prop::collection::vec((0..64_usize, 0..64_usize), 0..8),
            prop::collection::vec(prop::bool::weighted(0.2), nodes + 1),
        )
            .prop_map(|(before, more, silent)| Random {
                before,
                more,
                silent,
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_can_be_reached_is(graph in random()) {
        let plan = plan(&graph.text());
        apart(&plan);
        for (number, from) in plan.nodes.iter().enumerate() {
            for (other, to) in plan.nodes.iter().enumerate().filter(|(other, _)| *other != number) {
                if !graph.joined(number, other) {
                    continue;
                }
                for address in plan.addresses(&to.name) {
                    let way = walk(&plan, &from.name, address.addr());
                    prop_assert!(way.is_ok(), "{} to {}: {way:?}\n{}", from.name, to.name, plan.to_text());
                }
            }
        }
    }
}
