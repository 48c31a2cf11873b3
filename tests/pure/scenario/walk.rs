// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a packet through a plan, as the kernel would send it.

use std::net::Ipv4Addr;

use emud::experiment::scenario::{Plan, PlannedEnd};
use ipnet::Ipv4Net;

/// Returns the nodes that a packet from `from` to `to` passes, or the reason why it does not
/// arrive.
pub fn walk(plan: &Plan, from: &str, to: Ipv4Addr) -> Result<Vec<String>, String> {
    let mut at = from.to_owned();
    let mut way = vec![at.clone()];
    while !has(plan, &at, to) {
        let node = plan.nodes.iter().find(|node| node.name == at).unwrap();
        if at != from && !node.forwards() {
            return Err(format!("{at} does not forward: {way:?}"));
        }
        if way.len() > plan.nodes.len() {
            return Err(format!("in circles: {way:?}"));
        }
        let (gateway, interface) = look_up(plan, &at, to).ok_or(format!("no route at {at}"))?;
        let next = neighbours(plan, &at, &interface);
        let next = next.into_iter().find(|node| has(plan, node, gateway));
        at = next.ok_or(format!("{at} finds no {gateway} on {interface}"))?;
        way.push(at.clone());
    }
    Ok(way)
}

fn has(plan: &Plan, node: &str, address: Ipv4Addr) -> bool {
    plan.addresses(node).iter().any(|net| net.addr() == address)
}

/// The longest prefix wins.
fn look_up(plan: &Plan, node: &str, to: Ipv4Addr) -> Option<(Ipv4Addr, String)> {
    let routes = plan.nodes.iter().find(|n| n.name == node)?.routes.iter();
    let routes = routes.map(|route| (route.to, route.via, route.interface.clone()));
    let ends = plan.wires.iter().flat_map(|wire| &wire.ends);
    let own = ends.filter(|end| end.node.as_deref() == Some(node));
    let connected = own.filter_map(|end| Some((end.address?, None, end.interface.clone())));
    let mut all: Vec<(Ipv4Net, Option<Ipv4Addr>, String)> = routes.chain(connected).collect();
    all.retain(|(net, ..)| net.contains(&to));
    let longest = all.into_iter().max_by_key(|(net, ..)| net.prefix_len())?;
    Some((longest.1.unwrap_or(to), longest.2))
}

/// Returns the interfaces on the same link layer as a node's interface.
fn neighbours(plan: &Plan, node: &str, interface: &str) -> Vec<String> {
    let bridge = plan
        .nodes
        .iter()
        .find_map(|n| Some((&n.name, n.bridge.as_ref()?)));
    let is_port = |end: &PlannedEnd| {
        bridge.is_some_and(|(hub, b)| {
            end.node.as_ref() == Some(hub) && b.ports.contains(&end.interface)
        })
    };
    let at_ports = || {
        let wires = plan.wires.iter().filter(|wire| is_port(&wire.ends[1]));
        wires.filter_map(|wire| wire.ends[0].node.clone())
    };
    if let Some((hub, b)) = bridge
        && hub == node
        && b.interface == interface
    {
        return at_ports().collect();
    }
    if let Some(medium) = plan
        .media
        .iter()
        .find(|medium| medium.interface == interface)
    {
        let (matrix, modes) = (medium.matrix(), medium.modes());
        let own = medium
            .stations
            .iter()
            .position(|station| station.node == node)
            .unwrap();
        let near = |other: &usize| {
            let decodes = |from: usize, to: usize| {
                let reach = matrix.reach(from as u16, to as u16);
                reach.is_some_and(|reach| reach.decodes(modes[from]))
            };
            decodes(own, *other) && decodes(*other, own)
        };
        let near = (0..medium.stations.len()).filter(near);
        return near
            .map(|other| medium.stations[other].node.clone())
            .collect();
    }
    let is_here =
        |end: &PlannedEnd| end.node.as_deref() == Some(node) && end.interface == interface;
    let wire = plan.wires.iter().find(|wire| wire.ends.iter().any(is_here));
    let Some(wire) = wire else { return Vec::new() };
    let other = wire.ends.iter().find(|end| !is_here(end)).unwrap();
    let mut all: Vec<_> = other.node.iter().cloned().collect();
    if is_port(other) {
        all.extend(at_ports());
    }
    all
}
