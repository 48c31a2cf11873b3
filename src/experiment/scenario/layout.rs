// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns addresses: a /30 per wire, a /32 per peer of a star in the /24 of its class.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::graph::{Graph, Star};
use super::plan::{Bridge, PlannedEnd, Wire};
use super::star::BRIDGE;
use crate::text::{At, Mistake};

/// A wire has two addresses, besides those of the network and of broadcast.
const WIRE_BITS: u8 = 30;
/// Enough for the maximum number of peers, and easy to read.
const CLASS_BITS: u8 = 24;
/// Name of the interface in the node that leads to the host.
pub(crate) const OUTSIDE: &str = "outside";

/// The addresses of a scenario.
#[derive(Debug)]
pub(crate) struct Layout {
    /// In the order of the edges; for peers that of their class.
    pub networks: Vec<Ipv4Net>,
    /// The addresses of both ends of the edges.
    pub addresses: Vec<[Ipv4Addr; 2]>,
    /// In the order of the star's classes.
    pub classes: Vec<Ipv4Net>,
    /// The wire to the host: the node, its address, the host's address.
    pub outside: Option<(usize, [Ipv4Net; 2])>,
}

/// Assigns addresses of `network`, which the file sets at `at`. The wire to the host has none of
/// `taken`: only this wire meets other networks of the host.
///
/// # Errors
/// It has too few of them.
pub(crate) fn lay_out(
    graph: &Graph,
    network: Ipv4Net,
    at: &At,
    taken: &[Ipv4Net],
) -> Result<Layout, Mistake> {
    let too_small = |what: String| {
        let title = format!("the network {} is too small for {what}", network);
        let help = "use a larger one at the top of the file, such as network = \"10.77.0.0/16\"";
        Mistake::new(at, title, help)
    };
    let classes = match &graph.star {
        Some(star) => {
            let classes = of_classes(star, network);
            classes.ok_or_else(|| too_small(format!("{} classes of peers", star.classes.len())))?
        }
        None => Vec::new(),
    };
    let hub = classes.first().map(|_| network.addr());
    let hub = hub.map(|base| Ipv4Addr::from(u32::from(base) + 1));
    let wires = subnets(network, WIRE_BITS);
    let behind = classes.last().map(Ipv4Net::broadcast);
    let mut wires = wires.filter(|wire| behind.is_none_or(|behind| wire.addr() > behind));
    let mut layout = Layout {
        networks: Vec::new(),
        addresses: Vec::new(),
        classes,
        outside: None,
    };
    for (number, edge) in graph.edges.iter().enumerate() {
        let (net, ends) = match (edge.port, hub) {
            // A /30 is in no class: nothing would emulate the peer, or reach it.
            (true, Some(hub)) => peer(graph, &layout.classes, edge.ends[0], hub),
            _ => wires.next().map(of_wire),
        }
        .ok_or_else(|| too_small(format!("more than {number} links")))?;
        layout.networks.push(net);
        layout.addresses.push(ends);
    }
    if let Some(node) = graph.nodes.iter().position(|spot| spot.node.outside) {
        let mut other = None;
        let is_free = |wire: &Ipv4Net| {
            let by = taken.iter().find(|taken| overlap(**taken, *wire));
            other = other.or(by);
            by.is_none()
        };
        let net = wires.find(is_free).ok_or_else(|| match other {
            Some(other) => in_use(network, *other, at),
            None => too_small("the wire to the host".to_owned()),
        })?;
        let (_, [host, own]) = of_wire(net);
        let with_bits = |address| Ipv4Net::new(address, WIRE_BITS).unwrap_or(net);
        layout.outside = Some((node, [with_bits(own), with_bits(host)]));
    }
    Ok(layout)
}

fn in_use(network: Ipv4Net, other: Ipv4Net, at: &At) -> Mistake {
    let title = format!(
        "no /30 of the network {network} is left for the wire of `outside`: this host or another \
         run uses {other}"
    );
    let help = "set a network that the host does not use at the top of the file, such as \
                network = \"172.30.0.0/16\"; `ip address` and `ip route show table all` list what \
                it uses";
    Mistake::new(at, title, help)
}

/// Returns whether two networks have an address in common.
pub(crate) fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b.network()) || b.contains(&a.network())
}

/// Returns the networks of the classes. The first address belongs to the hub.
fn of_classes(star: &Star, network: Ipv4Net) -> Option<Vec<Ipv4Net>> {
    let classes: Vec<_> = subnets(network, CLASS_BITS)
        .skip(1)
        .take(star.classes.len())
        .collect();
    (classes.len() == star.classes.len()).then_some(classes)
}

fn subnets(network: Ipv4Net, bits: u8) -> impl Iterator<Item = Ipv4Net> {
    network.subnets(bits).into_iter().flatten()
}

fn of_wire(net: Ipv4Net) -> (Ipv4Net, [Ipv4Addr; 2]) {
    let first = u32::from(net.network());
    (net, [first + 1, first + 2].map(Ipv4Addr::from))
}

/// Returns the network and addresses of a peer and its hub.
fn peer(
    graph: &Graph,
    classes: &[Ipv4Net],
    node: usize,
    hub: Ipv4Addr,
) -> Option<(Ipv4Net, [Ipv4Addr; 2])> {
    let of = graph.star.as_ref()?.classes.iter().zip(classes);
    let mut of = of.filter(|(class, _)| class.peers.contains(&node));
    let (class, net) = of.next()?;
    let address = net.hosts().nth(node - class.peers.start)?;
    Some((*net, [address, hub]))
}

impl Layout {
    /// Returns the address of `node`'s end of an edge.
    pub fn address(&self, graph: &Graph, edge: usize, node: usize) -> Ipv4Addr {
        let [first, second] = self.addresses[edge];
        match graph.edges[edge].ends[0] == node {
            true => first,
            false => second,
        }
    }

    /// Returns all wires, the one to the host last.
    pub fn wires(&self, graph: &Graph, host_interface: &str) -> Vec<Wire> {
        let name = |node: usize| Some(graph.nodes[node].node.name.clone());
        let mut wires: Vec<_> = (0..graph.edges.len())
            .map(|number| {
                let edge = &graph.edges[number];
                let bits = if edge.port { 32 } else { WIRE_BITS };
                let end = |place: usize| PlannedEnd {
                    node: name(edge.ends[place]),
                    interface: edge.name.clone(),
                    address: Ipv4Net::new(self.addresses[number][place], bits).ok(),
                };
                let (first, second) = (end(0), end(1));
                let address = second.address.filter(|_| !edge.port);
                Wire {
                    ends: [first, PlannedEnd { address, ..second }],
                    tunnel: None,
                }
            })
            .collect();
        wires.extend(self.outside.map(|(node, [own, host])| Wire {
            ends: [
                PlannedEnd {
                    node: name(node),
                    interface: OUTSIDE.to_owned(),
                    address: Some(own),
                },
                PlannedEnd {
                    node: None,
                    interface: host_interface.to_owned(),
                    address: Some(host),
                },
            ],
            tunnel: None,
        }));
        wires
    }

    /// Returns the bridge of the star, with the hub's address.
    pub fn bridge(&self, graph: &Graph) -> Option<Bridge> {
        let ports = graph.edges.iter().filter(|edge| edge.port);
        let first = graph.edges.iter().position(|edge| edge.port)?;
        Some(Bridge {
            interface: BRIDGE.to_owned(),
            address: Ipv4Net::new(self.addresses[first][1], 32).ok(),
            ports: ports.map(|edge| edge.name.clone()).collect(),
        })
    }
}
