// SPDX-License-Identifier: MIT OR Apache-2.0
//! The complete plan of an experiment: nodes, wires between them with addresses, emulated links,
//! and commands. Carrying it out requires no further decision.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

use crate::profile::Profile;

/// An experiment's network and its programs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the scenario, or of the profile of a single link.
    pub name: String,
    /// The scenario file's text, for the log; `None`: not from a file.
    pub text: Option<String>,
    pub nodes: Vec<Node>,
    pub wires: Vec<Wire>,
    pub links: Vec<Link>,
    /// Time limit of the preparation.
    pub ready_within: Duration,
    /// Time limit of a command of the clean-up, which is ended after it.
    pub clean_up_within: Duration,
    /// Longest duration of the measured phase; `None`: until its commands have ended.
    pub measure_for: Option<Duration>,
}

/// A namespace and the commands in it.
#[derive(Debug, Clone, Default)]
pub struct Node {
    pub name: String,
    /// Whether it forwards packets of others.
    pub forwards: bool,
    /// A bridge between wires of this node, if any.
    pub bridge: Option<Bridge>,
    pub routes: Vec<Route>,
    /// Whether it reaches the outside through the host, if the host has a default route.
    pub outside: bool,
    /// Shell commands of the preparation phase, in order; each must succeed.
    pub prepare: Vec<String>,
    /// Environment of every command of this node, besides `EMUD_NODE`.
    pub env: Vec<(String, String)>,
    /// Command of the measured phase, or of a service; `None`: a router.
    pub command: Option<Program>,
    /// Whether the command runs until everything else has ended: a server, started in the
    /// preparation.
    pub service: bool,
    /// A shell command that succeeds once the service is ready; `None`: ready when started.
    pub ready: Option<String>,
    /// Delay after the beginning of the measured phase, or after the end of the wait.
    pub start: Duration,
    /// Nodes whose command must have ended before (services: must be ready).
    pub waits_for: Vec<String>,
    /// Shell commands at the end, in any case; failures are reported.
    pub clean_up: Vec<String>,
    /// Files to keep, as shell patterns relative to the working directory or absolute.
    pub artefacts: Vec<String>,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Arguments as given on the command line.
    Argv(Vec<String>),
    /// A command for `sh -c`.
    Shell(String),
    /// The user's shell, at the terminal.
    Interactive,
}

/// A device that connects several ends of wires on the link layer.
#[derive(Debug, Clone)]
pub struct Bridge {
    pub interface: String,
    pub address: Option<Ipv4Net>,
    /// Interfaces of this node that are its ports.
    pub ports: Vec<String>,
}

/// A veth pair.
#[derive(Debug, Clone)]
pub struct Wire {
    pub ends: [End; 2],
}

/// One end of a wire.
#[derive(Debug, Clone)]
pub struct End {
    /// Name of a node; `None`: the host, to which at most one wire leads.
    pub node: Option<String>,
    pub interface: String,
    /// `None` for a port of a bridge.
    pub address: Option<Ipv4Net>,
}

/// A route; on-link without a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub to: Ipv4Net,
    pub via: Option<Ipv4Addr>,
    pub interface: String,
}

/// A device on which a profile is attached.
#[derive(Debug, Clone)]
pub struct Link {
    /// Name in the scenario; "link" for a single one.
    pub name: String,
    pub node: String,
    pub interface: String,
    /// The profile in the direction of the device: `up` is what the device sends.
    pub profile: Profile,
    /// Name or path as requested, for the log.
    pub asked: String,
    /// Whether up and down are exchanged, because the device is at the other end of the link.
    pub reversed: bool,
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
        out
    }

    /// Returns the ends that send to the device of a link: the other end of its wire; for a bridge
    /// those of the wires of all ports.
    pub fn opposite<'a>(&'a self, link: &'a Link) -> impl Iterator<Item = &'a End> {
        let node = self.nodes.iter().find(|node| node.name == link.node);
        let bridge = node.and_then(|node| node.bridge.as_ref());
        let own = move |end: &End| {
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
    /// order.
    pub fn addresses(&self, node: &str) -> Vec<Ipv4Net> {
        let of_bridge = self.nodes.iter().filter(|n| n.name == node);
        let of_bridge = of_bridge.filter_map(|n| n.bridge.as_ref()?.address);
        let ends = self.wires.iter().flat_map(|wire| &wire.ends);
        let of_ends = ends.filter(|end| end.node.as_deref() == Some(node));
        of_bridge
            .chain(of_ends.filter_map(|end| end.address))
            .collect()
    }
}

/// 0.0.0.0/0.
pub(crate) fn everywhere() -> Ipv4Net {
    Ipv4Net::default()
}
