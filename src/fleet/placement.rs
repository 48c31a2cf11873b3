// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the nodes of a plan among hosts.
//!
//! Nodes stay together if the wire between them cannot be that between hosts: a plain or fast one
//! (the underlay needs time), one whose delay cannot be reduced by the underlay's, and a medium. The
//! groups are then given to the hosts in the order of a breadth-first walk, so that neighbours share
//! a host, until each has its share by weight; exchanges bring them to nodes with a `host` of the file.

use std::collections::{BTreeSet, VecDeque};

use super::FleetError;
use super::underlay::{Crossing, crossing};
use crate::experiment::scenario::Plan;

/// A host that takes part.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Name of the host in the fleet.
    pub name: String,
    /// Share, relative to the others.
    pub weight: f64,
}

/// Returns for each node of the plan the number of its host. Wires with a delay below `fast_ns` stay
/// on one host unless the nodes' `host` separate them.
///
/// # Errors
/// [`FleetError::Placement`]: a `host` that does not take part, or nodes with different ones that
/// have to be together.
pub fn place(plan: &Plan, hosts: &[Host], fast_ns: u64) -> Result<Vec<usize>, FleetError> {
    let pins = plan
        .nodes
        .iter()
        .map(|node| pin(&node.name, node.host.as_deref(), hosts));
    let pins = pins.collect::<Result<Vec<_>, _>>()?;
    let wires = wires(plan);
    let mut groups = Groups::new(pins);
    for medium in &plan.media {
        let stations: Vec<_> = (medium.stations.iter())
            .filter_map(|station| number(plan, &station.node))
            .collect();
        for pair in stations.windows(2) {
            groups.join(pair[0], pair[1]).map_err(|[a, b]| {
                apart(
                    plan,
                    hosts,
                    [a, b],
                    &format!("the {} {}", medium.word(), medium.interface),
                    &format!("a {} is on one host", medium.word()),
                )
            })?;
        }
    }
    for wire in &wires {
        if let Crossing::Never(why) = &wire.crossing {
            let [a, b] = wire.ends;
            groups.join(a, b).map_err(|ends| {
                apart(plan, hosts, ends, &format!("the link {}", wire.name), why)
            })?;
        }
    }
    for wire in &wires {
        if let Crossing::Delay(delay_ns) = wire.crossing
            && delay_ns < fast_ns
        {
            // Separated by the file; what the underlay adds is checked when it is measured.
            let _ = groups.join(wire.ends[0], wire.ends[1]);
        }
    }
    let order = order(plan.nodes.len(), &wires);
    Ok(shares(plan, hosts, &mut groups, &order, &wires))
}

/// A wire between two nodes.
struct Between {
    name: String,
    ends: [usize; 2],
    crossing: Crossing,
}

fn wires(plan: &Plan) -> Vec<Between> {
    let both = |wire: &crate::experiment::scenario::Wire| {
        let [a, b] = wire.ends.each_ref().map(|end| end.node.as_deref());
        Some([number(plan, a?)?, number(plan, b?)?])
    };
    let of = |wire| {
        Some(Between {
            name: crate::experiment::scenario::Wire::clone(wire).ends[0]
                .interface
                .clone(),
            ends: both(wire)?,
            crossing: crossing(plan, wire),
        })
    };
    plan.wires.iter().filter_map(of).collect()
}

fn number(plan: &Plan, name: &str) -> Option<usize> {
    plan.nodes.iter().position(|node| node.name == name)
}

fn pin(node: &str, host: Option<&str>, hosts: &[Host]) -> Result<Option<usize>, FleetError> {
    let Some(wanted) = host else {
        return Ok(None);
    };
    let found = hosts.iter().position(|host| host.name == wanted);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
        FleetError::Placement(format!(
            "node {node}: host = \"{wanted}\" does not take part; the hosts are {} (start \
             `emud agent --host {wanted}` there, or change `host`)",
            names.join(", ")
        ))
    })
}

fn apart(plan: &Plan, hosts: &[Host], ends: [usize; 2], what: &str, why: &str) -> FleetError {
    let [a, b] = ends.map(|node| {
        let node = &plan.nodes[node];
        let host = node.host.as_deref().unwrap_or(&hosts[0].name);
        format!("{} (host = \"{host}\")", node.name)
    });
    FleetError::Placement(format!(
        "{what} cannot be between {a} and {b}: {why}; give both the same `host`, or remove one of them"
    ))
}

/// Nodes that stay together.
struct Groups {
    parent: Vec<usize>,
    /// A node with a host, of each root.
    pins: Vec<Option<(usize, usize)>>,
}

impl Groups {
    fn new(pins: Vec<Option<usize>>) -> Self {
        Self {
            parent: (0..pins.len()).collect(),
            pins: (0..).zip(pins).map(|(n, pin)| Some((n, pin?))).collect(),
        }
    }

    fn root(&mut self, node: usize) -> usize {
        let mut at = node;
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// Fails with two nodes that have different hosts.
    fn join(&mut self, a: usize, b: usize) -> Result<(), [usize; 2]> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        match (self.pins[a], self.pins[b]) {
            (Some((first, one)), Some((second, other))) if one != other => {
                return Err([first, second]);
            }
            (None, pin) => self.pins[a] = pin,
            _ => {}
        }
        self.parent[b] = a;
        Ok(())
    }
}

/// Returns the nodes of a breadth-first walk from the first one; parts that are not connected follow
/// one after the other.
fn order(nodes: usize, wires: &[Between]) -> Vec<usize> {
    let mut beside = vec![Vec::new(); nodes];
    for wire in wires {
        let [a, b] = wire.ends;
        beside[a].push(b);
        beside[b].push(a);
    }
    let (mut seen, mut order) = (vec![false; nodes], Vec::new());
    for first in 0..nodes {
        let mut next = VecDeque::from([first]);
        while let Some(node) = next.pop_front() {
            if !std::mem::replace(&mut seen[node], true) {
                order.push(node);
                next.extend(&beside[node]);
            }
        }
    }
    order
}

/// Groups of nodes, and which host has each of them. A group is named by its root.
struct Deal {
    weight: Vec<f64>,
    /// Those without a `host`, in the order of the walk.
    free: Vec<usize>,
    /// Share of each host without the nodes whose `host` it is.
    room: Vec<f64>,
    /// The group at the other end of each wire.
    beside: Vec<Vec<usize>>,
    host_of: Vec<usize>,
}

/// Groups without a host follow one after the other, each host taking those that lie in its share. Which host
/// is next, and which of two groups a host has, is changed as long as that cuts fewer wires.
fn shares(
    plan: &Plan,
    hosts: &[Host],
    groups: &mut Groups,
    order: &[usize],
    wires: &[Between],
) -> Vec<usize> {
    let nodes = plan.nodes.len();
    let mut weight = vec![0.0; nodes];
    for (n, node) in plan.nodes.iter().enumerate() {
        weight[groups.root(n)] += node.weight;
    }
    let mut beside = vec![Vec::new(); nodes];
    for wire in wires {
        let [a, b] = wire.ends.map(|node| groups.root(node));
        if a != b {
            beside[a].push(b);
            beside[b].push(a);
        }
    }
    let mut roots = Vec::new();
    let mut known = BTreeSet::new();
    for node in order {
        let root = groups.root(*node);
        if known.insert(root) {
            roots.push(root);
        }
    }
    let all: f64 = weight.iter().sum();
    let of_hosts: f64 = hosts.iter().map(|host| host.weight).sum();
    let mut room: Vec<f64> = (hosts.iter())
        .map(|host| host.weight / of_hosts * all)
        .collect();
    let mut host_of = vec![0; nodes];
    let mut pinned = BTreeSet::new();
    for root in &roots {
        if let Some((_, host)) = groups.pins[*root] {
            host_of[*root] = host;
            room[host] -= weight[*root];
            pinned.insert(host);
        }
    }
    room.iter_mut().for_each(|room| *room = room.max(0.0));
    roots.retain(|root| groups.pins[*root].is_none());
    let free: f64 = roots.iter().map(|root| weight[*root]).sum();
    // A host with more than its share leaves less room than is needed.
    let scale = free / room.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    room.iter_mut().for_each(|room| *room *= scale);
    let mut deal = Deal {
        weight,
        free: roots,
        room,
        beside,
        host_of,
    };
    deal.deal_out(&pinned);
    deal.exchange();
    (0..nodes)
        .map(|node| deal.host_of[groups.root(node)])
        .collect()
}

impl Deal {
    /// Gives the groups to the hosts in that order of these which cuts the fewest wires, as far as it is found by
    /// exchanging two of them: a host with nodes of the file, and any other one.
    fn deal_out(&mut self, pinned: &BTreeSet<usize>) {
        let mut hosts: Vec<usize> = (0..self.room.len()).collect();
        self.in_order(&hosts);
        let mut least = self.cut();
        let mut is_better = true;
        while std::mem::take(&mut is_better) {
            for one in 0..hosts.len() {
                for other in 0..hosts.len() {
                    if !pinned.contains(&hosts[one]) {
                        continue;
                    }
                    hosts.swap(one, other);
                    self.in_order(&hosts);
                    let cut = self.cut();
                    if cut < least {
                        (least, is_better) = (cut, true);
                    } else {
                        hosts.swap(one, other);
                    }
                }
            }
        }
        self.in_order(&hosts);
    }

    fn in_order(&mut self, hosts: &[usize]) {
        let (mut at, mut end, mut begin) = (0, self.room[hosts[0]], 0.0);
        for group in &self.free {
            let weight = self.weight[*group];
            while begin + weight / 2.0 > end + 1e-9 && at + 1 < hosts.len() {
                at += 1;
                end += self.room[hosts[at]];
            }
            self.host_of[*group] = hosts[at];
            begin += weight;
        }
    }

    /// Returns how many wires are between hosts, counted at both ends.
    fn cut(&self) -> usize {
        let of = |(group, others): (usize, &Vec<usize>)| {
            let apart = |other: &&usize| self.host_of[**other] != self.host_of[group];
            others.iter().filter(apart).count()
        };
        self.beside.iter().enumerate().map(of).sum()
    }

    /// Exchanges groups of one weight between hosts.
    fn exchange(&mut self) {
        let mut is_better = true;
        while std::mem::take(&mut is_better) {
            for n in 0..self.free.len() {
                let one = self.free[n];
                if let Some(other) = self.partner(one) {
                    self.host_of.swap(one, other);
                    is_better = true;
                }
            }
        }
    }

    /// Returns a group in exchange for which this one has fewer wires to other hosts, both together.
    fn partner(&self, one: usize) -> Option<usize> {
        let own = self.host_of[one];
        let near = |group: usize, host: usize| {
            let is_there = |other: &&usize| self.host_of[**other] == host;
            self.beside[group].iter().filter(is_there).count()
        };
        // One of both groups has more wires there.
        let hosts = self.beside[one].iter().map(|other| self.host_of[*other]);
        let hosts: BTreeSet<usize> = hosts
            .filter(|host| near(one, *host) > near(one, own))
            .collect();
        let is_better = |other: &usize| {
            let host = self.host_of[*other];
            if !hosts.contains(&host) || self.weight[*other].total_cmp(&self.weight[one]).is_ne() {
                return false;
            }
            let between = self.beside[one].iter().filter(|group| *group == other);
            near(one, host) + near(*other, own)
                > near(one, own) + near(*other, host) + 2 * between.count()
        };
        self.free.iter().copied().find(is_better)
    }
}
