// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment consists of, worked out to the last address: nodes, wires between
//! them, where links are emulated, what runs when. Whoever carries it out decides nothing.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

use crate::profile::Profile;

/// An experiment's network and its programs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Of the scenario; that of the profile for a single link.
    pub name: String,
    /// The scenario file's text, for the log; none: not from a file.
    pub text: Option<String>,
    pub nodes: Vec<Node>,
    pub wires: Vec<Wire>,
    pub links: Vec<Link>,
    /// Until when the preparation must have led to readiness.
    pub ready_within: Duration,
    /// A command of the clean-up that goes on for longer is ended.
    pub clean_up_within: Duration,
    /// The measured phase ends after this at the latest; none: when its commands have ended.
    pub measure_for: Option<Duration>,
}

/// A namespace of its own, with what runs in it.
#[derive(Debug, Clone, Default)]
pub struct Node {
    pub name: String,
    /// Routes packets of others.
    pub forwards: bool,
    /// A bridge of the ends of wires that are in this node and named here; none: no bridge.
    pub bridge: Option<Bridge>,
    pub routes: Vec<Route>,
    /// Gets to the outside through the host, where the host has one.
    pub outside: bool,
    /// Shell commands of the preparation phase, in order; each must succeed.
    pub prepare: Vec<String>,
    /// For every command of this node, beside `EMUD_NODE`.
    pub env: Vec<(String, String)>,
    /// Of the measured phase, or, of a service, of the preparation; none: a router.
    pub command: Option<Program>,
    /// Runs until everything else has ended: a server. Started in the preparation.
    pub service: bool,
    /// A shell command that succeeds once the service is ready; none: ready when started.
    pub ready: Option<String>,
    /// After the beginning of the measured phase, or after what it waits for.
    pub start: Duration,
    /// Nodes whose command has to have ended before (of a service: to be ready).
    pub waits_for: Vec<String>,
    /// Shell commands at the end, whatever happened before; failures are said.
    pub clean_up: Vec<String>,
    /// Files to keep, as shell patterns relative to the working directory or absolute.
    pub artefacts: Vec<String>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// As given on the command line.
    Argv(Vec<String>),
    /// By `sh -c`.
    Shell(String),
    /// The user's own shell, at the terminal.
    Interactive,
}

/// A device that joins several ends of wires on the link layer.
#[derive(Debug, Clone)]
pub struct Bridge {
    pub interface: String,
    pub address: Option<Ipv4Net>,
    /// Interfaces of this node.
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
    /// Name of a node; none: the host itself, to which one wire at most leads.
    pub node: Option<String>,
    pub interface: String,
    /// None: a port of a bridge.
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
    /// As in the scenario; "link" for a single one.
    pub name: String,
    pub node: String,
    pub interface: String,
    /// Already the right way round: `up` is what the device sends.
    pub profile: Profile,
    /// As asked for, by name or path, for the log.
    pub asked: String,
    /// Up and down have been exchanged, because the device is the other end of the link.
    pub reversed: bool,
}

impl Plan {
    /// What `/etc/hosts` has in every node: each node by its name, at its first address.
    pub fn hosts(&self) -> String {
        let mut out = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for node in &self.nodes {
            if let Some(address) = self.addresses(&node.name).first() {
                out += &format!("{} {}\n", address.addr(), node.name);
            }
        }
        out
    }

    /// What sends to the device of a link: the other end of its wire; of a bridge those of all
    /// its ports' wires.
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

    /// The addresses of a node: its bridge's, then those of its ends of wires in their order.
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
