// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each host's part of a plan.
//!
//! Longer than 400 lines: the wire format of a host's plan beside the only code that fills it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use super::FleetError;
use super::facts::Facts;
use super::underlay::{Crossing, crossing};
use crate::experiment::scenario::{Link, Node, Plan, PlannedEnd, Tunnel, Wire, beyond_a_host};
use crate::host::nanoseconds;

/// Default UDP port of tunnels, IANA's of VXLAN.
pub const PORT: u16 = 4789;
/// Tunnels of a run: 12 bits of a VXLAN network identifier.
const VNIS: usize = 1 << 12;
/// MTU of a node's interfaces on one host.
pub const MTU: u32 = 1500;

/// Options of a run, the same for all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Seed of the experiment.
    pub seed: u64,
    /// Size of a topology, in place of the file's.
    pub size: Option<u32>,
    /// UDP port of tunnels.
    pub port: u16,
    /// MTU of all wires; of tunnels, inside.
    pub mtu: u32,
    /// Tolerated excess of the underlay's delay over the configured one, in ns.
    pub tolerance_ns: u64,
    /// Largest error of the clocks in ns.
    pub clock_bound_ns: u64,
    /// Interval of samples of the links' counters in ns; `None`: none.
    pub sample_ns: Option<u64>,
    /// Thresholds of contention: the text of a file; `None`: those of `emud run`.
    pub monitor: Option<String>,
}

/// Another host as a host's plan names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Address in the underlay.
    pub address: IpAddr,
    /// UDP port of probes.
    pub probe_port: u16,
    /// Token that a probe must carry, in hexadecimal.
    pub probe_token: String,
}

/// One host's part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostPlan {
    /// Version of what is exchanged.
    pub version: String,
    /// Name of the host.
    pub host: String,
    /// Options of the run.
    pub options: Options,
    /// Name of the scenario.
    pub name: String,
    /// Text of the scenario as TOML.
    pub text: String,
    /// Whether nodes of this host have a medium, which is read from the text.
    pub has_media: bool,
    /// Nodes of this host.
    pub nodes: Vec<Node>,
    /// Wires with an end on this host.
    pub wires: Vec<Wire>,
    /// Links that are attached on this host.
    pub links: Vec<LinkPlan>,
    /// The other hosts of tunnels, and the reference of the clock.
    pub peers: BTreeMap<String, Peer>,
    /// The host whose clock counts; `None`: this one.
    pub reference: Option<String>,
    /// Tunnels of this host.
    pub tunnels: Vec<TunnelPlan>,
    /// VXLAN network identifier of the tunnel for probes to each host of tunnels.
    pub probe_vnis: BTreeMap<String, u32>,
    /// Lines of `/etc/hosts` about nodes on other hosts.
    pub elsewhere: String,
    /// Nodes of this host for which others wait.
    pub awaited: BTreeSet<String>,
    /// Time limit of the preparation in ns.
    pub ready_within_ns: u64,
    /// Time limit of a command of the clean-up in ns.
    pub clean_up_within_ns: u64,
    /// Longest measured phase in ns; `None`: until the programs have ended.
    pub measure_ns: Option<u64>,
}

/// A link that is attached on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Name in the scenario.
    pub name: String,
    /// Node of the interface.
    pub node: String,
    /// Interface of the link.
    pub interface: String,
    /// Canonical TOML.
    pub profile: String,
    /// Name or path of the profile, for the log.
    pub asked: String,
    /// Whether up and down are exchanged.
    pub reversed: bool,
    /// Position among the links of the whole experiment.
    pub number: usize,
    /// The host of the other end, if it is another one.
    pub across: Option<String>,
    /// With a bridge, other hosts with peers, and the addresses of these.
    pub peers: BTreeMap<String, Vec<Ipv4Net>>,
}

/// A tunnel of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPlan {
    /// Name of the link.
    pub name: String,
    /// Name of the host.
    pub host: String,
    /// Smallest one-way delay that the scenario configures on it, in ns.
    pub asked_ns: u64,
}

/// Checks that the hosts with nodes can reach each other, if there are several.
///
/// # Errors
/// [`FleetError::Plan`]: one has a loopback address, because it reaches etcd there.
pub fn reachable(host_of: &[usize], hosts: &[(String, Facts)]) -> Result<(), FleetError> {
    let used: BTreeSet<usize> = host_of.iter().copied().collect();
    let mut used = used.iter().filter_map(|number| hosts.get(*number));
    let local = |(_, facts): &&(String, Facts)| {
        facts.address.is_loopback() || facts.address.is_unspecified()
    };
    if used.clone().count() < 2 {
        return Ok(());
    }
    used.find(local).map_or(Ok(()), |(host, facts)| {
        Err(FleetError::Plan(format!(
            "{host} has the address {}, at which other hosts do not reach it: start its agent with \
             --address and one of the network between the hosts",
            facts.address
        )))
    })
}

/// Returns the part of each host; hosts without nodes have none.
///
/// # Errors
/// [`FleetError::Plan`]: the hosts do not have addresses of one family.
pub fn divide(
    plan: &Plan,
    host_of: &[usize],
    hosts: &[(String, Facts)],
    options: &Options,
    id: u32,
) -> Result<BTreeMap<String, HostPlan>, FleetError> {
    let of_node: BTreeMap<&str, usize> = (plan.nodes.iter().zip(host_of))
        .map(|(node, host)| (node.name.as_str(), *host))
        .collect();
    let used: BTreeSet<usize> = host_of.iter().copied().collect();
    let reference = used.first().copied().unwrap_or(0);
    let on = |end: &PlannedEnd| of_node.get(end.node.as_deref()?).copied();
    let pair = |wire: &Wire| {
        let [one, other] = [on(&wire.ends[0])?, on(&wire.ends[1])?];
        (one != other).then_some([one.min(other), one.max(other)])
    };
    let pairs: BTreeSet<_> = plan.wires.iter().filter_map(pair).collect();
    if plan.wires.len() + pairs.len() > VNIS {
        return Err(FleetError::Plan(format!(
            "{} links and {} pairs of hosts with links between them: both together are up to {VNIS}; use fewer \
             hosts",
            plan.wires.len(),
            pairs.len()
        )));
    }
    let mut out = BTreeMap::new();
    for number in &used {
        let part = Part {
            plan,
            of_node: &of_node,
            pairs: &pairs,
            hosts,
            options,
            id,
            own: *number,
        };
        let (host, own) = (&hosts[*number].0, part.host_plan(reference)?);
        if let Some(why) = beyond_a_host(own.nodes.len(), own.wires.len()) {
            return Err(FleetError::Plan(format!("{host}: {why}")));
        }
        out.insert(host.clone(), own);
    }
    Ok(out)
}

struct Part<'a> {
    plan: &'a Plan,
    of_node: &'a BTreeMap<&'a str, usize>,
    /// Hosts with wires between them.
    pairs: &'a BTreeSet<[usize; 2]>,
    hosts: &'a [(String, Facts)],
    options: &'a Options,
    id: u32,
    own: usize,
}

impl Part<'_> {
    fn host_plan(&self, reference: usize) -> Result<HostPlan, FleetError> {
        let (wires, tunnels) = self.wires()?;
        let reference = (reference != self.own).then(|| self.hosts[reference].0.clone());
        let named = tunnels.iter().map(|tunnel| tunnel.host.clone());
        let named: BTreeSet<String> = named.chain(reference.clone()).collect();
        let here = |node: &&Node| self.is_here(&node.name);
        Ok(HostPlan {
            version: super::facts::VERSION.to_owned(),
            host: self.hosts[self.own].0.clone(),
            options: self.options.clone(),
            name: self.plan.name.clone(),
            text: self.plan.text.clone().unwrap_or_default(),
            has_media: self.has_media(),
            nodes: self.plan.nodes.iter().filter(here).cloned().collect(),
            wires,
            links: self.links(),
            peers: (self.hosts.iter())
                .filter(|(name, _)| named.contains(name))
                .map(|(name, facts)| (name.clone(), peer(facts)))
                .collect(),
            reference,
            tunnels,
            probe_vnis: self.probe_vnis(),
            elsewhere: self.elsewhere(),
            awaited: self.awaited(),
            ready_within_ns: nanoseconds(self.plan.ready_within),
            clean_up_within_ns: nanoseconds(self.plan.clean_up_within),
            measure_ns: self.plan.measure_for.map(nanoseconds),
        })
    }

    fn host(&self, node: &str) -> usize {
        self.of_node.get(node).copied().unwrap_or(0)
    }

    fn is_here(&self, node: &str) -> bool {
        self.host(node) == self.own
    }

    fn has_media(&self) -> bool {
        let mut stations = self.plan.media.iter().flat_map(|medium| &medium.stations);
        stations.any(|station| self.is_here(&station.node))
    }

    /// Wires with at least one end here, that end first if the other one is elsewhere.
    fn wires(&self) -> Result<(Vec<Wire>, Vec<TunnelPlan>), FleetError> {
        let (mut wires, mut tunnels) = (Vec::new(), Vec::new());
        for (number, wire) in self.plan.wires.iter().enumerate() {
            let hosts = (wire.ends)
                .each_ref()
                .map(|end| end.node.as_deref().map(|n| self.host(n)));
            let (near, far) = match hosts {
                [Some(a), Some(b)] if a != b && a == self.own => (0, b),
                [Some(a), Some(b)] if a != b && b == self.own => (1, a),
                [Some(a), Some(b)] if a != b => continue,
                [Some(a), _] | [None, Some(a)] if a == self.own => {
                    wires.push(wire.clone());
                    continue;
                }
                _ => continue,
            };
            let [local, remote] = [self.own, far].map(|host| self.hosts[host].1.address);
            if local.is_ipv4() != remote.is_ipv4() {
                return Err(FleetError::Plan(format!(
                    "{local} and {remote} are addresses of different families; set --address of the \
                     agents"
                )));
            }
            let ends = [near, 1 - near].map(|n: usize| wire.ends[n].clone());
            tunnels.push(TunnelPlan {
                name: ends[0].interface.clone(),
                host: self.hosts[far].0.clone(),
                asked_ns: match crossing(self.plan, wire) {
                    Crossing::Delay(delay_ns) => delay_ns,
                    Crossing::Never(_) => 0,
                },
            });
            wires.push(Wire {
                ends,
                tunnel: Some(Tunnel {
                    vni: self.vni(number),
                    local,
                    remote,
                    port: self.options.port,
                    mtu: self.options.mtu,
                }),
            });
        }
        Ok((wires, tunnels))
    }

    /// Returns the VNI of a wire: 12 bits of the run, 12 of the wire. Tunnels of an earlier run, which its host
    /// has not removed yet, have others.
    fn vni(&self, number: usize) -> u32 {
        (self.id & 0xfff) << 12 | (number % VNIS) as u32
    }

    /// Returns the VNIs of the tunnels for probes, after those of the wires.
    fn probe_vnis(&self) -> BTreeMap<String, u32> {
        let of = |(number, pair): (usize, &[usize; 2])| {
            let other = match *pair {
                [own, other] | [other, own] if own == self.own => other,
                _ => return None,
            };
            let vni = self.vni(self.plan.wires.len() + number);
            Some((self.hosts[other].0.clone(), vni))
        };
        self.pairs.iter().enumerate().filter_map(of).collect()
    }

    fn links(&self) -> Vec<LinkPlan> {
        let here = self
            .plan
            .links
            .iter()
            .filter(|link| self.is_here(&link.node));
        here.map(|link| self.link(link)).collect()
    }

    fn link(&self, link: &Link) -> LinkPlan {
        let others: Vec<_> = (self.plan.opposite(link))
            .filter_map(|end| {
                let host = self.host(end.node.as_deref()?);
                (host != self.own).then(|| (self.hosts[host].0.clone(), end.address))
            })
            .collect();
        let node = self.plan.nodes.iter().find(|node| node.name == link.node);
        let bridge = node.and_then(|node| node.bridge.as_ref());
        let is_bridge = bridge.is_some_and(|bridge| bridge.interface == link.interface);
        let mut peers = BTreeMap::<String, Vec<Ipv4Net>>::new();
        let mut across = None;
        for (host, address) in others {
            match (is_bridge, address) {
                (true, Some(address)) => peers.entry(host).or_default().push(address),
                (true, None) => {}
                (false, _) => across = Some(host),
            }
        }
        LinkPlan {
            name: link.name.clone(),
            node: link.node.clone(),
            interface: link.interface.clone(),
            profile: link.profile.to_toml(),
            asked: link.asked.clone(),
            reversed: link.reversed,
            number: link.number,
            across,
            peers: (peers.into_iter())
                .map(|(host, all)| (host, Ipv4Net::aggregate(&all)))
                .collect(),
        }
    }

    /// Returns the hosts file of other hosts' nodes, in the order of the plan: the first address of a name counts.
    fn elsewhere(&self) -> String {
        let mut out = String::new();
        for node in self
            .plan
            .nodes
            .iter()
            .filter(|node| !self.is_here(&node.name))
        {
            if let Some(address) = self.plan.addresses(&node.name).first() {
                out += &format!("{} {}\n", address.addr(), node.name);
            }
        }
        out
    }

    fn awaited(&self) -> BTreeSet<String> {
        let elsewhere = self
            .plan
            .nodes
            .iter()
            .filter(|node| !self.is_here(&node.name));
        elsewhere
            .flat_map(|node| node.waits_for.iter())
            .filter(|name| self.is_here(name))
            .map(str::to_owned)
            .collect()
    }
}

fn peer(facts: &Facts) -> Peer {
    Peer {
        address: facts.address,
        probe_port: facts.probe_port,
        probe_token: facts.probe_token.clone(),
    }
}
