// SPDX-License-Identifier: MIT OR Apache-2.0
//! The complete plan of an experiment: nodes, wires between them with addresses, emulated links,
//! and commands. Carrying it out requires no further decision.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use super::kinds::{
    Command, Lasting, Names, NodeNames, Plain, Plains, Point, Program, Waypoints, Weight,
};
use super::medium::Medium;
use crate::profile::Profile;
use crate::profile::kinds::Flag;
use crate::text::table;

/// An experiment's network and its programs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the scenario, or of the profile of a single link.
    pub name: String,
    /// The scenario file's text, for the log; `None`: not from a file.
    pub text: Option<String>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All veth pairs.
    pub wires: Vec<Wire>,
    /// All links.
    pub links: Vec<Link>,
    /// All media.
    pub media: Vec<Medium>,
    /// Time limit of the preparation.
    pub ready_within: Duration,
    /// Time limit of a command of the clean-up, which is ended after it.
    pub clean_up_within: Duration,
    /// Longest duration of the measured phase; `None`: until its commands have ended.
    pub measure_for: Option<Duration>,
    /// Lines of `/etc/hosts` about nodes on other hosts; empty without.
    pub elsewhere: String,
    /// MTU of all wires; `None`: the kernel's default.
    pub mtu: Option<u32>,
}

table! {
    /// A namespace and the commands in it. What is skipped, a host of a fleet does not need.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct Node {
        /// what runs: a string for `sh -c`, or an array as argument vector. Default: nothing
        command: Option<Program> = None, "command" as Command;
        /// `true`: a server. It starts during the preparation and emud ends it after all other
        /// commands, without waiting for its end
        service: bool = false, "service" as Flag;
        /// of a service: a shell command that succeeds once the service is usable; emud repeats it
        /// until then. Default: ready when started
        ready: Option<String> = None, "ready" as Plain;
        /// delay of the command from the beginning of the measured phase, or from the end of what
        /// it waits for
        start: Duration = Duration::ZERO, "start" as Lasting;
        /// names of nodes whose commands must have ended first (services: be ready). A service
        /// waits for services only
        waits_for: NodeNames = NodeNames::default(), "waits-for" as Names;
        /// shell commands of the preparation, in order; each must succeed
        prepare: Vec<String> = Vec::new(), "prepare" as Plains;
        /// shell commands at the end, in every case, in reverse order: the last one of the last node first
        clean_up: Vec<String> = Vec::new(), "clean-up" as Plains;
        /// files to keep: shell patterns, relative to the node's folder or absolute
        /// ([run.md](run.md#artefacts))
        #[serde(skip)]
        artefacts: Vec<String> = Vec::new(), "artefacts" as Plains;
        /// whether the node forwards packets of others. Default: `true` with more than one link and
        /// on a medium, otherwise `false`
        forwards: Option<bool> = None, "forwards" as Flag;
        /// the node reaches what the host reaches, through the host. At most one node per scenario;
        /// other nodes do not get outside through it
        outside: bool = false, "outside" as Flag;
        /// position on a [medium](medium.md) in m, `[x, y]`; without it that of the topology, or the
        /// origin
        #[serde(skip)]
        position: Option<[f64; 2]> = None, "at" as Point;
        /// instead of `at`, positions over time: `[{ at = [0, 0] }, { at = [60, 0], after =
        /// "60s" }]`; straight lines between them
        #[serde(skip)]
        path: Option<Vec<(u64, [f64; 2])>> = None, "path" as Waypoints;
        /// `true`: the node receives the frames on a medium for others, too
        #[serde(skip)]
        promiscuous: bool = false, "promiscuous" as Flag;
        /// for [`emud fleet`](fleet.md), ignored by `emud run`: the host that has the node.
        /// Default: placed by emud
        #[serde(skip)]
        host: Option<String> = None, "host" as Plain;
        /// for [`emud fleet`](fleet.md): share of a host that the node needs, relative to others,
        /// above 0
        weight: f64 = 1.0, "weight" as Weight;
    }
    beside {
        name: String = String::new();
        /// A bridge between wires of this node, if any.
        bridge: Option<Bridge> = None;
        routes: Vec<Route> = Vec::new();
        /// Environment of every command of this node, besides `EMUD_NODE`.
        env: Vec<(String, String)> = Vec::new();
    }
    struct NodeDraft {}
}

impl Node {
    /// Returns whether the node forwards packets of others.
    pub fn forwards(&self) -> bool {
        self.forwards == Some(true)
    }
}

/// A device that connects several ends of wires on the link layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// Name of the bridge.
    pub interface: String,
    /// Its address, if it has one.
    pub address: Option<Ipv4Net>,
    /// Interfaces of this node that are its ports.
    pub ports: Vec<String>,
}

/// A veth pair, or the end of a tunnel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wire {
    /// The two ends.
    pub ends: [PlannedEnd; 2],
    /// Only the first end is on this host; `None`: both are.
    pub tunnel: Option<Tunnel>,
}

/// One end of a VXLAN between two hosts: a point-to-point Ethernet wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunnel {
    /// VXLAN network identifier, 24 bits.
    pub vni: u32,
    /// Address of this host.
    pub local: IpAddr,
    /// Address of the other host.
    pub remote: IpAddr,
    /// UDP port of both.
    pub port: u16,
    /// Largest packet in bytes in the tunnel, without the link header.
    pub mtu: u32,
}

/// One end of a wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedEnd {
    /// Name of a node; `None`: the host, to which at most one wire leads.
    pub node: Option<String>,
    /// Name of the interface.
    pub interface: String,
    /// `None` for a port of a bridge.
    pub address: Option<Ipv4Net>,
}

/// A route; on-link without a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destination network.
    pub to: Ipv4Net,
    /// Address of the gateway; `None`: on-link.
    pub via: Option<Ipv4Addr>,
    /// Interface of the node.
    pub interface: String,
}

/// A device on which a profile is attached.
#[derive(Debug, Clone)]
pub struct Link {
    /// Name in the scenario; "link" for a single one.
    pub name: String,
    /// Name of the node.
    pub node: String,
    /// Interface of the node.
    pub interface: String,
    /// The profile in the direction of the device: `up` is what the device sends.
    pub profile: Profile,
    /// Name or path as requested, for the log.
    pub asked: String,
    /// Whether up and down are exchanged, because the device is at the other end of the link.
    pub reversed: bool,
    /// Position among the links of the whole experiment, from which its seed is derived.
    pub number: usize,
}

impl Plan {
    /// Returns `/etc/hosts` of every node: each node by its name, at its first address.
    pub fn hosts(&self) -> String {
        let mut out = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for node in &self.nodes {
            if let Some(address) = self.addresses(&node.name).first() {
                out += &format!("{} {}\n", address.addr(), node.name);
            }
        }
        out + &self.elsewhere
    }

    /// Returns the network of the wire to the host, if there is one.
    pub fn host_network(&self) -> Option<Ipv4Net> {
        let mut ends = self.wires.iter().flat_map(|wire| &wire.ends);
        let host = ends.find(|end| end.node.is_none())?;
        host.address.map(|address| address.trunc())
    }

    /// Returns the ends that send to the device of a link: the other end of its wire; for a bridge
    /// those of the wires of all ports.
    pub fn opposite<'a>(&'a self, link: &'a Link) -> impl Iterator<Item = &'a PlannedEnd> {
        let node = self.nodes.iter().find(|node| node.name == link.node);
        let bridge = node.and_then(|node| node.bridge.as_ref());
        let own = move |end: &PlannedEnd| {
            let port = |bridge: &&Bridge| {
                bridge.interface == link.interface && bridge.ports.contains(&end.interface)
            };
            end.node.as_ref() == Some(&link.node)
                && (end.interface == link.interface || bridge.as_ref().is_some_and(port))
        };
        self.wires.iter().filter_map(move |wire| match &wire.ends {
            [one, other] if own(one) => Some(other),
            [other, one] if own(one) => Some(other),
            _ => None,
        })
    }

    /// Returns the addresses of a node: the bridge's, then those of its ends of wires in their
    /// order, then those on media.
    pub fn addresses(&self, node: &str) -> Vec<Ipv4Net> {
        let of_bridge = self.nodes.iter().filter(|n| n.name == node);
        let of_bridge = of_bridge.filter_map(|n| n.bridge.as_ref()?.address);
        let ends = self.wires.iter().flat_map(|wire| &wire.ends);
        let of_ends = ends.filter(|end| end.node.as_deref() == Some(node));
        let stations = self.media.iter().flat_map(|medium| &medium.stations);
        let on_air = stations.filter(|station| station.node == node);
        of_bridge
            .chain(of_ends.filter_map(|end| end.address))
            .chain(on_air.map(|station| station.address))
            .collect()
    }
}

/// Returns 0.0.0.0/0.
pub(crate) fn everywhere() -> Ipv4Net {
    Ipv4Net::default()
}
