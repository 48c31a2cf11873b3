// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of a scenario file with positions, before it is expanded to nodes.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::kinds::{Later, Name, Network, Plain, SomeLasting, TwoNames};
use super::limits::{
    MAX_MESH, MAX_NODES, MAX_PAIRS, MAX_PEERS, MAX_PEERS_OF_CLASS, MAX_ROUTERS, MAX_STATIONS,
    MAX_SWITCHES, MIN_RING,
};
use super::medium::{MediumDraft, OnAir, Spacing};
use crate::profile::Profile;
use crate::profile::kinds::{Count, OneOf};
use crate::text::{At, Entry, Located, Value, table, words};

/// A scenario as written: valid, but not yet expanded ([`Scenario::plan`]).
#[derive(Debug)]
pub struct Scenario {
    /// The keys at the top of the file.
    pub top: Top,
    /// Text of the file with its comments.
    pub text: String,
    /// Name of the text in messages.
    pub(crate) origin: String,
    /// Where the file sets the network.
    pub(crate) network_at: At,
    pub(crate) topology: Option<Topology>,
    /// In the order of the file.
    pub(crate) nodes: Vec<NodeTable>,
    pub(crate) links: Vec<Link>,
    pub(crate) media: Vec<MediumDraft>,
}

table! {
    /// The keys at the top of a scenario.
    #[derive(Debug)]
    pub struct Top {
        /// one line, at most 64 bytes. Default: the file's name
        name: String = String::new(), "name" as Name;
        /// text. Default: empty
        description: String = String::new(), "description" as Plain;
        /// the IPv4 prefix of all addresses, 8 to 28 bits
        network: Ipv4Net = Ipv4Net::new_assert([10, 77, 0, 0].into(), 16), "network" as Network;
        /// maximum duration of the measured phase, above 0. Default: until its commands have ended
        measure: Option<Duration> = None, "measure" as SomeLasting;
        /// maximum duration of the preparation, above 0
        ready_within: Duration = Duration::from_secs(10), "ready-within" as SomeLasting;
        /// maximum duration of a `clean-up` command, above 0; then it receives SIGTERM, and after
        /// 5 s more SIGKILL
        clean_up_within: Duration = Duration::from_secs(30), "clean-up-within" as SomeLasting;
    }
    struct TopDraft {}
}

/// `[node.NAME]`: the keys of one node, or of all nodes that match a pattern.
#[derive(Debug)]
pub(crate) struct NodeTable {
    /// Name of a node; a `*` at the end makes it a pattern.
    pub name: Located<String>,
    pub keys: Vec<Entry>,
}

impl NodeTable {
    /// Returns whether it is for several nodes.
    pub fn is_pattern(&self) -> bool {
        self.name.value.ends_with('*')
    }
}

/// `[link.NAME]`.
#[derive(Debug)]
pub(crate) struct Link {
    pub name: Located<String>,
    /// The ends; the profile's `up` is what the first one sends.
    pub between: [Located<String>; 2],
    /// `None`: a plain wire.
    pub profile: Option<Asked>,
}

table! {
    #[derive(Debug)]
    pub struct LinkKeys {
        between: Option<[Located<String>; 2]> = None, "between" as TwoNames;
        profile: Option<Value> = None, "profile" as Later;
    }
    struct LinkDraft {}
}

/// A profile that the file refers to.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub profile: Profile,
    /// Its name or path; "inline" for one in the file.
    pub asked: String,
    pub at: At,
}

/// `[topology]`: generated nodes and links.
#[derive(Debug)]
pub(crate) struct Topology {
    pub at: At,
    pub kind: Kind,
    /// Number of routers, nodes or pairs; of switches the number of nodes of each; for a star the
    /// number of peers of all classes.
    pub count: u32,
    /// Number of switches.
    pub switches: u32,
    /// Profile of every hop, of every pair, of the bottleneck, or between switches.
    pub profile: Option<Asked>,
    /// Profile of the access links of a dumbbell or of switches.
    pub access: Option<Asked>,
    /// Classes of a star's peers.
    pub classes: Vec<Class>,
    /// Its nodes share a medium; it has no wires.
    pub on_air: Option<OnAir>,
}

impl Topology {
    /// Returns what it has a number of, the minimum and the maximum: each class of a star has
    /// at least one peer.
    pub fn limits(&self) -> (&'static str, u32, u32) {
        match self.kind {
            Kind::Chain if self.on_air.is_some() => ("routers", 1, MAX_STATIONS - 2),
            Kind::Mesh if self.on_air.is_some() => ("nodes", 2, MAX_STATIONS),
            Kind::Chain => ("routers", 1, MAX_ROUTERS),
            Kind::Mesh => ("nodes", 2, MAX_MESH),
            Kind::Dumbbell => ("pairs", 1, MAX_PAIRS),
            Kind::Ring => ("nodes", MIN_RING, MAX_NODES),
            Kind::Tandem => ("nodes", 2, MAX_NODES),
            Kind::Switches => ("nodes", 1, MAX_NODES / self.switches - 1),
            Kind::Star => {
                let classes = self.classes.len().max(1) as u32;
                (
                    "peers",
                    classes,
                    MAX_PEERS.min(MAX_PEERS_OF_CLASS * classes),
                )
            }
        }
    }
}

table! {
    #[derive(Debug)]
    pub struct TopologyKeys {
        kind: Option<Kind> = None, "kind" as OneOf<Kind>;
        routers: Option<u32> = None, "routers" as Count<1, MAX_ROUTERS>;
        nodes: Option<u32> = None, "nodes" as Count<1, MAX_NODES>;
        switches: u32 = 2, "switches" as Count<2, MAX_SWITCHES>;
        pairs: Option<u32> = None, "pairs" as Count<1, MAX_PAIRS>;
        profile: Option<Value> = None, "profile" as Later;
        access: Option<Value> = None, "access" as Later;
        class: Option<Value> = None, "class" as Later;
        medium: Option<String> = None, "medium" as Plain;
        spacing: Option<f64> = None, "spacing" as Spacing;
    }
    struct TopologyDraft {}
}

words! {
    pub enum Kind {
        Chain = "chain",
        Star = "star",
        Mesh = "mesh",
        Dumbbell = "dumbbell",
        Ring = "ring",
        Tandem = "tandem",
        Switches = "switches",
    }
}

/// Peers of a star with equal links.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub name: Located<String>,
    pub peers: u32,
    /// `None`: their packets are not emulated.
    pub profile: Option<Asked>,
}

table! {
    #[derive(Debug)]
    pub struct ClassKeys {
        peers: Option<u32> = None, "peers" as Count<1, MAX_PEERS_OF_CLASS>;
        profile: Option<Value> = None, "profile" as Later;
    }
    struct ClassDraft {}
}
