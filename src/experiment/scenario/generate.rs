// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the nodes and links of a `[topology]`.

use super::graph::Graph;
use super::model::{Kind, Topology};
use super::star;

impl Topology {
    /// Returns its nodes and links, with `count` instead of the file's number.
    pub(crate) fn generate(&self, count: u32) -> Graph {
        let mut graph = Graph::default();
        if let Some(on_air) = &self.on_air {
            self.on_air(&mut graph, count, on_air.spacing_m);
            return graph;
        }
        match self.kind {
            Kind::Chain => self.chain(&mut graph, count),
            Kind::Mesh => self.mesh(&mut graph, count),
            Kind::Dumbbell => self.dumbbell(&mut graph, count),
            Kind::Ring => self.row(&mut graph, count, true),
            Kind::Tandem => self.row(&mut graph, count, false),
            Kind::Switches => self.switches(&mut graph, count),
            Kind::Star => star::generate(self, &mut graph, count),
        }
        graph
    }

    /// Adds the same nodes without wires: a chain in a row, a mesh in rows of a square.
    fn on_air(&self, graph: &mut Graph, count: u32, spacing_m: f64) {
        let columns = match self.kind {
            Kind::Chain => {
                graph.add("client".to_owned(), &self.at);
                graph.add_many("r", count, &self.at);
                graph.add("server".to_owned(), &self.at);
                graph.nodes.len()
            }
            _ => {
                graph.add_many("n", count, &self.at);
                (1..)
                    .find(|columns| columns * columns >= count)
                    .unwrap_or(1) as usize
            }
        };
        for (number, spot) in graph.nodes.iter_mut().enumerate() {
            let [x, y] = [number % columns, number / columns];
            spot.position = [x, y].map(|steps| steps as f64 * spacing_m);
        }
    }

    /// Adds client - r1 - r2 ... - server.
    fn chain(&self, graph: &mut Graph, routers: u32) {
        let mut before = graph.add("client".to_owned(), &self.at);
        let routers = graph.add_many("r", routers, &self.at);
        let server = graph.add("server".to_owned(), &self.at);
        for (hop, next) in (1..).zip(routers.chain([server])) {
            let ends = [before, next];
            graph.join(format!("hop{hop}"), &self.at, ends, self.profile.as_ref());
            before = next;
        }
    }

    /// Links every node with every other one.
    fn mesh(&self, graph: &mut Graph, count: u32) {
        let nodes = graph.add_many("n", count, &self.at);
        for first in nodes.clone() {
            for second in first + 1..nodes.end {
                let name = format!("n{}-n{}", first + 1, second + 1);
                graph.join(name, &self.at, [first, second], self.profile.as_ref());
            }
        }
    }

    /// Senders - west - east - receivers.
    fn dumbbell(&self, graph: &mut Graph, pairs: u32) {
        let senders = graph.add_many("sender", pairs, &self.at);
        let west = graph.add("west".to_owned(), &self.at);
        let east = graph.add("east".to_owned(), &self.at);
        let receivers = graph.add_many("receiver", pairs, &self.at);
        let bottleneck = "bottleneck".to_owned();
        graph.join(bottleneck, &self.at, [west, east], self.profile.as_ref());
        for (nodes, router) in [(senders, west), (receivers, east)] {
            for node in nodes {
                let name = graph.nodes[node].node.name.clone();
                graph.join(name, &self.at, [node, router], self.access.as_ref());
            }
        }
    }

    /// Adds n1 - n2 - n3 ..., for a ring - n1.
    fn row(&self, graph: &mut Graph, count: u32, closed: bool) {
        let nodes = graph.add_many("n", count, &self.at);
        let next = nodes.clone().cycle().skip(1);
        let links = nodes.len() - usize::from(!closed);
        for ends in nodes.zip(next).take(links) {
            let name = format!("n{}-n{}", ends.0 + 1, ends.1 + 1);
            graph.join(name, &self.at, ends.into(), self.profile.as_ref());
        }
    }

    /// Adds s1 - s2 ..., with `each` nodes at each.
    fn switches(&self, graph: &mut Graph, each: u32) {
        let nodes = graph.add_many("n", each * self.switches, &self.at);
        let switches = graph.add_many("s", self.switches, &self.at);
        for node in nodes {
            let name = graph.nodes[node].node.name.clone();
            let ends = [node, switches.start + node / each as usize];
            graph.join(name, &self.at, ends, self.access.as_ref());
        }
        for (number, ends) in (1..).zip(switches.clone().zip(switches.skip(1))) {
            let name = format!("s{number}-s{}", number + 1);
            graph.join(name, &self.at, ends.into(), self.profile.as_ref());
        }
    }
}
