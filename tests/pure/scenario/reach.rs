// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every node reaches every other one, with few routes.

use std::collections::HashSet;
use std::fmt::Write;

use emud::experiment::scenario::{Overrides, Plan, shipped};
use proptest::prelude::*;
use support::chance::same_cases;
use support::full;

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
        ("kind = \"ring\"\nnodes = 3", 40, 22),
        ("kind = \"tandem\"\nnodes = 2", 40, 14),
        ("kind = \"switches\"\nnodes = 1", 12, 14),
        ("kind = \"switches\"\nnodes = 1\nswitches = 5\n", 6, 14),
        (
            "kind = \"star\"\nclass.a.peers = 1\nclass.b.peers = 1",
            40,
            3,
        ),
    ] {
        let text = format!("[topology]\n{text}\n");
        // That of all pairs took 12 s of the usual run.
        let most = if full() { most } else { most.min(16) };
        for nodes in [2, 3, 7, most] {
            // Two nodes have one link.
            let nodes = if text.contains("ring") {
                nodes.max(3)
            } else {
                nodes
            };
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
    // A daemon finds the routes of these.
    let routed = |name: &str| !["broch", "m-adhoc"].contains(&name);
    for shipped in shipped::SHIPPED.iter().filter(|s| routed(s.name)) {
        let scenario = shipped::find(shipped.name).unwrap();
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

/// A packet takes the shorter of the two directions of a ring; of equal ones that over the first link.
#[test]
fn neighbours_of_a_ring_have_one_hop() {
    let plan = plan("[topology]\nkind = \"ring\"\nnodes = 6\n[node.n1]\ncommand = \"true\"\n");
    let ends =
        |wire: &emud::experiment::scenario::Wire| wire.ends.clone().map(|end| end.node.unwrap());
    let links: Vec<_> = plan.wires.iter().map(ends).collect();
    let expected = ["n1 n2", "n2 n3", "n3 n4", "n4 n5", "n5 n6", "n6 n1"];
    let expected = expected.map(|pair| pair.split_once(' ').unwrap());
    assert_eq!(links, expected.map(|(a, b)| [a.to_owned(), b.to_owned()]));
    for (from, to, hops) in [
        ("n1", "n2", 1),
        ("n1", "n6", 1),
        ("n6", "n1", 1),
        ("n2", "n6", 2),
        ("n1", "n4", 3),
    ] {
        let way = walk(&plan, from, plan.addresses(to)[0].addr()).unwrap();
        assert_eq!(way.len(), hops + 1, "{from} to {to}: {way:?}");
    }
}

#[test]
fn nodes_of_two_switches_meet_over_one_link() {
    let plan = plan("[topology]\nkind = \"switches\"\nnodes = 4\n[node.n1]\ncommand = \"true\"\n");
    let way = |from, to| walk(&plan, from, plan.addresses(to)[0].addr()).unwrap();
    assert_eq!(way("n1", "n4"), ["n1", "s1", "n4"]);
    assert_eq!(way("n4", "n5"), ["n4", "s1", "s2", "n5"]);
    assert_eq!(way("n8", "n2"), ["n8", "s2", "s1", "n2"]);
    assert_eq!(plan.wires.len(), 9);
    let env = |name: &str| {
        plan.nodes
            .iter()
            .find(|node| node.name == name)
            .unwrap()
            .env
            .clone()
    };
    let of = |index: &str, count: &str| {
        [("EMUD_INDEX", index), ("EMUD_COUNT", count)].map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    assert_eq!(env("n8"), of("8", "8"));
    assert_eq!(env("s2"), of("2", "2"));
}

/// Routes of many nodes are still few and found soon.
#[test]
fn many_nodes() {
    for (text, most) in [
        ("kind = \"tandem\"\nnodes = 1792", 32),
        ("kind = \"switches\"\nnodes = 895", 904),
    ] {
        let plan = plan(&format!(
            "[topology]\n{text}\n[node.n1]\ncommand = \"true\"\n"
        ));
        assert_eq!(plan.nodes.len(), 1792);
        apart(&plan);
        let found = plan.nodes.iter().map(|node| node.routes.len()).max();
        assert!(found.unwrap() <= most, "{found:?} routes of a node");
        walk(&plan, "n1000", plan.addresses("n960")[0].addr()).unwrap();
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

/// Neither r2 nor r3 reaches the server: neither has a route, to the other one.
#[test]
fn what_cannot_be_reached_has_no_route() {
    let plan = plan(
        "[node.client]\ncommand = \"true\"\n[node.r1]\n[node.r2]\n[node.r3]\n\
         [node.proxy]\nforwards = false\n[node.server]\n\
         [link.l1]\nbetween = [\"client\", \"r1\"]\n[link.l2]\nbetween = [\"r1\", \"r2\"]\n\
         [link.l3]\nbetween = [\"r2\", \"r3\"]\n[link.l4]\nbetween = [\"r3\", \"proxy\"]\n\
         [link.l5]\nbetween = [\"proxy\", \"server\"]\n",
    );
    let server = plan.addresses("server")[0].addr();
    for from in ["client", "r1", "r2", "r3"] {
        let way = walk(&plan, from, server);
        assert_eq!(way, Err(format!("no route at {from}")));
    }
    walk(&plan, "client", plan.addresses("proxy")[0].addr()).unwrap();
    walk(&plan, "proxy", server).unwrap();
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
    #![proptest_config(same_cases(256))]

    #[test]
    fn whoever_can_be_reached_is(graph in random()) {
        let plan = plan(&graph.text());
        apart(&plan);
        for (number, from) in plan.nodes.iter().enumerate() {
            for (other, to) in plan.nodes.iter().enumerate().filter(|(other, _)| *other != number) {
                let joined = graph.joined(number, other);
                for address in plan.addresses(&to.name) {
                    let way = walk(&plan, &from.name, address.addr());
                    let none = Err(format!("no route at {}", from.name));
                    prop_assert!(if joined { way.is_ok() } else { way == none }, "{} to {}: {way:?}\n{}", from.name, to.name, plan.to_text());
                }
            }
        }
    }
}
