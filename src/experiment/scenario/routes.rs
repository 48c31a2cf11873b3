// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes routes: shortest paths by the number of hops through nodes that forward. Of equal paths
//! the one over the link that is first in the file is used, so a scenario always has the same
//! routes.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::graph::Graph;
use super::layout::{Layout, OUTSIDE};
use super::plan::{Route, everywhere};
use super::star::BRIDGE;

/// Addresses that are reachable at the same nodes.
struct Destination {
    prefix: Ipv4Net,
    /// The edge of each node towards it; `None`: the node has it, or there is no path.
    next: Vec<Option<usize>>,
}

/// Returns the routes of all nodes, in their order. `network` contains all addresses: most paths of
/// a node have the same next hop, for which one route to the network suffices. But two nodes that do not
/// reach an address must not send its packets to each other. `joined`: stations of media are in the network,
/// and only one route for each leads to them.
pub(crate) fn routes(
    graph: &Graph,
    layout: &Layout,
    network: Ipv4Net,
    joined: bool,
) -> Vec<Vec<Route>> {
    let (destinations, mut reaches_all) = destinations(graph, layout);
    if joined {
        reaches_all.fill(false);
    }
    if let Some((outside, _)) = layout.outside {
        // Its default route would take them to the host. Its neighbours have none to them.
        reaches_all[outside] = true;
    }
    let edges_of = graph.edges_of();
    (0..graph.nodes.len())
        .map(|node| {
            let mut routes = on_link(graph, layout, node, &edges_of[node]);
            let merged = reaches_all[node].then_some(network);
            routes.extend(through(graph, layout, merged, node, &destinations));
            if let Some((_, [_, host])) = layout.outside.filter(|(outside, _)| *outside == node) {
                routes.push(Route {
                    to: everywhere(),
                    via: Some(host.addr()),
                    interface: OUTSIDE.to_owned(),
                });
            }
            routes
        })
        .collect()
}

/// Routes that no interface's prefix implies: those to a star's peers.
fn on_link(graph: &Graph, layout: &Layout, node: usize, edges: &[usize]) -> Vec<Route> {
    let Some(star) = &graph.star else {
        return Vec::new();
    };
    let route = |to, interface: &str| Route {
        to,
        via: None,
        interface: interface.to_owned(),
    };
    if node == star.hub {
        return layout
            .classes
            .iter()
            .map(|class| route(*class, BRIDGE))
            .collect();
    }
    let ports = edges.iter().filter(|edge| graph.edges[**edge].port);
    ports
        .map(|edge| {
            route(
                Ipv4Net::from(layout.addresses[*edge][1]),
                &graph.edges[*edge].name,
            )
        })
        .collect()
}

/// Routes through other nodes, as few as possible; `merged`: what one of them may be to.
fn through(
    graph: &Graph,
    layout: &Layout,
    merged: Option<Ipv4Net>,
    node: usize,
    destinations: &[Destination],
) -> Vec<Route> {
    let mut by_edge: BTreeMap<usize, Vec<Ipv4Net>> = BTreeMap::new();
    for destination in destinations {
        if let Some(edge) = destination.next[node] {
            by_edge.entry(edge).or_default().push(destination.prefix);
        }
    }
    for prefixes in by_edge.values_mut() {
        *prefixes = Ipv4Net::aggregate(prefixes);
    }
    let most = by_edge
        .iter()
        .max_by_key(|(edge, all)| (all.len(), std::cmp::Reverse(**edge)));
    if let (Some(most), Some(network)) = (most.map(|(edge, _)| *edge), merged) {
        by_edge.insert(most, vec![network]);
    }
    let route = |edge: usize, to: Ipv4Net| Route {
        to,
        via: Some(layout.address(graph, edge, graph.edges[edge].other(node))),
        interface: graph.edges[edge].name.clone(),
    };
    let all = by_edge.into_iter();
    all.flat_map(|(edge, prefixes)| prefixes.into_iter().map(move |to| (edge, to)))
        .map(|(edge, to)| route(edge, to))
        .collect()
}

/// Returns all destinations, and whether a node reaches each of them.
fn destinations(graph: &Graph, layout: &Layout) -> (Vec<Destination>, Vec<bool>) {
    let edges_of = graph.edges_of();
    let mut reaches_all = vec![true; graph.nodes.len()];
    let towards = |targets: &[usize]| next_hops(graph, &edges_of, targets);
    let mut out = Vec::new();
    for (number, edge) in graph.edges.iter().enumerate() {
        if edge.port {
            continue;
        }
        // An address is reachable at its own node, and across the wire if that other node forwards.
        let forwards = edge.ends.map(|end| graph.nodes[end].node.forwards());
        let at = |own: usize| match forwards[1 - own] {
            true => edge.ends.to_vec(),
            false => vec![edge.ends[own]],
        };
        let next = [0, 1].map(|own| towards(&at(own)));
        for (node, all) in reaches_all.iter_mut().enumerate() {
            *all &= edge.ends.contains(&node) || next.iter().all(|next| next[node].is_some());
        }
        let (network, addresses) = (layout.networks[number], layout.addresses[number]);
        out.extend(of_wire(network, addresses, next, edge.ends));
    }
    if let Some(star) = &graph.star {
        let next = towards(&[star.hub]);
        for (node, all) in reaches_all.iter_mut().enumerate() {
            *all &= node == star.hub || next[node].is_some();
        }
        out.extend(layout.classes.iter().map(|class| Destination {
            prefix: *class,
            next: next.clone(),
        }));
        out.push(hub(graph, layout, &next));
    }
    (out, reaches_all)
}

/// Returns a wire as one destination if both ends have the same next hops, otherwise the two ends.
fn of_wire(
    network: Ipv4Net,
    addresses: [Ipv4Addr; 2],
    next: [Vec<Option<usize>>; 2],
    ends: [usize; 2],
) -> Vec<Destination> {
    let here = |node: usize| ends.contains(&node);
    let whole: Vec<_> = (0..next[0].len())
        .map(|node| next[0][node].filter(|_| next[0][node] == next[1][node] && !here(node)))
        .collect();
    let apart = |own: usize| Destination {
        prefix: Ipv4Net::from(addresses[own]),
        next: (0..whole.len())
            .map(|node| next[own][node].filter(|_| whole[node].is_none() && !here(node)))
            .collect(),
    };
    let (first, second) = (apart(0), apart(1));
    let whole = Destination {
        prefix: network,
        next: whole,
    };
    vec![whole, first, second]
}

/// Returns the address of the hub, which its peers reach on-link.
fn hub(graph: &Graph, layout: &Layout, next: &[Option<usize>]) -> Destination {
    let is_port = |edge: &usize| graph.edges[*edge].port;
    let address = graph
        .edges
        .iter()
        .zip(&layout.addresses)
        .find(|(edge, _)| edge.port);
    Destination {
        prefix: address
            .map(|(_, ends)| Ipv4Net::from(ends[1]))
            .unwrap_or_default(),
        next: next
            .iter()
            .map(|edge| edge.filter(|edge| !is_port(edge)))
            .collect(),
    }
}

/// Returns the first edge of each node's shortest path to one of `targets`.
fn next_hops(graph: &Graph, edges_of: &[Vec<usize>], targets: &[usize]) -> Vec<Option<usize>> {
    let mut distance = vec![None; graph.nodes.len()];
    let mut next = vec![None; graph.nodes.len()];
    let mut queue: VecDeque<_> = targets.iter().copied().collect();
    for target in targets {
        distance[*target] = Some(0_usize);
    }
    while let Some(node) = queue.pop_front() {
        let Some(hops) = distance[node] else { continue };
        if hops > 0 && !graph.nodes[node].node.forwards() {
            continue;
        }
        for edge in &edges_of[node] {
            let other = graph.edges[*edge].other(node);
            match distance[other] {
                None => {
                    distance[other] = Some(hops + 1);
                    next[other] = Some(*edge);
                    queue.push_back(other);
                }
                Some(known) if known == hops + 1 => {
                    next[other] = next[other].min(Some(*edge));
                }
                Some(_) => {}
            }
        }
    }
    next
}
