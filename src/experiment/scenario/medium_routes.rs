// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes of a medium: between its stations, and across its border to nodes behind wires or on other
//! media, by nodes that have both.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::medium::{Medium, RouteChoice, Station};
use super::plan::{Node, Plan, Route};

impl Medium {
    /// Returns the routes of each station, neighbours first: the gateways of the others. `nodes`: those
    /// of the plan.
    pub fn routes(&self, nodes: &[Node]) -> Vec<Vec<Route>> {
        let count = self.stations.len();
        let route = |to: usize, via: Option<usize>| Route {
            to: self.stations[to].address,
            via: via.map(|via| self.stations[via].address.addr()),
            interface: self.interface.clone(),
        };
        let neighbours = match self.table.routes {
            RouteChoice::None => return vec![Vec::new(); count],
            RouteChoice::OnLink => vec![(0..count).collect(); count],
            RouteChoice::Static => self.matrix().neighbours(&self.modes()),
        };
        let mut routes: Vec<Vec<Route>> = Vec::with_capacity(count);
        for (station, own) in neighbours.iter().enumerate() {
            let others = own.iter().filter(|other| **other != station);
            routes.push(others.map(|other| route(*other, None)).collect());
        }
        if self.table.routes == RouteChoice::Static {
            let forwards = |station: &Station| {
                let mut nodes = nodes.iter();
                nodes.any(|node| node.name == station.node && node.forwards())
            };
            let forwards: Vec<bool> = self.stations.iter().map(forwards).collect();
            for to in 0..count {
                let next = next_hops(&neighbours, &forwards, to);
                for (station, next) in next.into_iter().enumerate() {
                    let via = next.filter(|next| station != to && *next != to);
                    routes[station].extend(via.map(|via| route(to, Some(via))));
                }
            }
        }
        routes
    }
}

/// Returns each station's next hop of a shortest path through stations that forward, of equal ones the
/// first station.
fn next_hops(neighbours: &[Vec<usize>], forwards: &[bool], to: usize) -> Vec<Option<usize>> {
    let mut next = vec![None; neighbours.len()];
    let mut distance = vec![usize::MAX; neighbours.len()];
    distance[to] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(station) = queue.pop_front() {
        if station != to && !forwards[station] {
            continue;
        }
        for other in &neighbours[station] {
            if distance[*other] == usize::MAX {
                distance[*other] = distance[station] + 1;
                next[*other] = Some(station);
                queue.push_back(*other);
            }
        }
    }
    next
}

/// A step to a neighbour.
struct Hop {
    to: usize,
    via: Ipv4Addr,
    interface: String,
    medium: Option<usize>,
}

/// An address of a node; none: of a wire.
#[derive(PartialEq)]
struct Own {
    node: usize,
    address: Ipv4Addr,
    medium: Option<usize>,
}

/// Adds routes to every address that neither wires alone nor a single medium reach: shortest paths
/// by hops through nodes that forward, over wires and over stations that decode each other. Media
/// without static routes have no part in it.
pub(crate) fn join(plan: &mut Plan) {
    let (hops, own) = neighbours(plan);
    if !has_gateway(&hops) {
        return;
    }
    let forwards: Vec<bool> = plan.nodes.iter().map(|node| node.forwards()).collect();
    for target in 0..plan.nodes.len() {
        let any = distances(&hops, &forwards, target, |_| true);
        let wired = distances(&hops, &forwards, target, |hop| hop.medium.is_none());
        for own in own.iter().filter(|own| own.node == target) {
            // Within its medium, or without any.
            let inside = match own.medium {
                None => &wired,
                Some(_) => &distances(&hops, &forwards, target, |hop| hop.medium == own.medium),
            };
            for (node, hops) in hops.iter().enumerate() {
                let Some(distance) = any[node].filter(|d| *d > 0 && inside[node].is_none()) else {
                    continue;
                };
                let nearer = |hop: &&Hop| {
                    any[hop.to] == Some(distance - 1) && (hop.to == target || forwards[hop.to])
                };
                if let Some(hop) = hops.iter().find(nearer) {
                    plan.nodes[node].routes.push(Route {
                        to: Ipv4Net::from(own.address),
                        via: Some(hop.via),
                        interface: hop.interface.clone(),
                    });
                }
            }
        }
    }
}

/// Returns each node's neighbours, those over wires first, and all addresses.
fn neighbours(plan: &Plan) -> (Vec<Vec<Hop>>, Vec<Own>) {
    let number = |name: &str| plan.nodes.iter().position(|node| node.name == name);
    let mut hops: Vec<Vec<Hop>> = plan.nodes.iter().map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    for wire in &plan.wires {
        let end = |n: usize| {
            let end = &wire.ends[n];
            let node = number(end.node.as_deref()?)?;
            // A port of a star has the address of its bridge.
            let bridge = plan.nodes[node].bridge.as_ref();
            let bridge = bridge.filter(|bridge| bridge.ports.contains(&end.interface));
            let (address, interface) = match bridge {
                Some(bridge) => (bridge.address?, &bridge.interface),
                None => (end.address?, &end.interface),
            };
            Some((node, address.addr(), interface))
        };
        let (Some(first), Some(second)) = (end(0), end(1)) else {
            continue;
        };
        for ((node, address, interface), (to, via, _)) in [(first, second), (second, first)] {
            hops[node].push(Hop {
                to,
                via,
                interface: interface.clone(),
                medium: None,
            });
            let own = Own {
                node,
                address,
                medium: None,
            };
            if !all.contains(&own) {
                all.push(own);
            }
        }
    }
    for (n, medium) in plan.media.iter().enumerate() {
        if medium.table.routes != RouteChoice::Static {
            continue;
        }
        let stations = medium.stations.iter();
        let nodes: Vec<_> = stations.map(|station| number(&station.node)).collect();
        let neighbours = medium.matrix().neighbours(&medium.modes());
        for (station, others) in neighbours.iter().enumerate() {
            let Some(node) = nodes[station] else { continue };
            all.push(Own {
                node,
                address: medium.stations[station].address.addr(),
                medium: Some(n),
            });
            for other in others {
                let Some(to) = nodes[*other] else { continue };
                hops[node].push(Hop {
                    to,
                    via: medium.stations[*other].address.addr(),
                    interface: medium.interface.clone(),
                    medium: Some(n),
                });
            }
        }
    }
    (hops, all)
}

/// Returns whether a node has neighbours on a medium, and others.
fn has_gateway(hops: &[Vec<Hop>]) -> bool {
    hops.iter().any(|hops| {
        let of = |hop: &Hop| hop.medium;
        let first = hops.first().map(of);
        hops.iter().any(|hop| Some(of(hop)) != first)
    })
}

/// Returns each node's hops to a target, over some of the steps.
fn distances(
    hops: &[Vec<Hop>],
    forwards: &[bool],
    target: usize,
    counts: impl Fn(&Hop) -> bool,
) -> Vec<Option<usize>> {
    let mut distances = vec![None; hops.len()];
    distances[target] = Some(0);
    let mut queue = VecDeque::from([(target, 0)]);
    while let Some((node, distance)) = queue.pop_front() {
        if distance > 0 && !forwards[node] {
            continue;
        }
        for hop in hops[node].iter().filter(|hop| counts(hop)) {
            if distances[hop.to].is_none() {
                distances[hop.to] = Some(distance + 1);
                queue.push_back((hop.to, distance + 1));
            }
        }
    }
    distances
}
