// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of a scenario file with positions, before it is expanded to nodes.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::plan::Program;
use crate::profile::Profile;
use crate::text::{At, Located, words};

/// A scenario as written: valid, but not yet expanded ([`Scenario::plan`]).
#[derive(Debug)]
pub struct Scenario {
    /// Name; the default is the file's name.
    pub name: String,
    pub description: String,
    /// Text of the file with its comments.
    pub text: String,
    /// Name of the text in messages.
    pub(crate) origin: String,
    /// The network from which addresses are assigned.
    pub(crate) network: Located<Ipv4Net>,
    pub(crate) measure: Option<Duration>,
    pub(crate) ready_within: Duration,
    pub(crate) clean_up_within: Duration,
    pub(crate) topology: Option<Topology>,
    /// In the order of the file.
    pub(crate) nodes: Vec<NodeDraft>,
    pub(crate) links: Vec<LinkDraft>,
}

/// `[node.NAME]`: one node, or all nodes that match a pattern; keys that are not set are `None`.
#[derive(Debug)]
pub(crate) struct NodeDraft {
    /// Name of a node; a `*` at the end makes it a pattern.
    pub name: Located<String>,
    pub command: Option<Located<Program>>,
    pub service: Option<Located<bool>>,
    pub ready: Option<Located<String>>,
    pub start: Option<Located<Duration>>,
    pub waits_for: Option<Located<Vec<Located<String>>>>,
    pub prepare: Option<Located<Vec<String>>>,
    pub clean_up: Option<Located<Vec<String>>>,
    pub artefacts: Option<Located<Vec<String>>>,
    pub forwards: Option<Located<bool>>,
    pub outside: Option<Located<bool>>,
}

impl NodeDraft {
    /// Returns the prefix of a pattern; `None` for the name of a node.
    pub fn pattern(&self) -> Option<&str> {
        self.name.value.strip_suffix('*')
    }
}

/// `[link.NAME]`.
#[derive(Debug)]
pub(crate) struct LinkDraft {
    pub name: Located<String>,
    /// The ends; the profile's `up` is what the first one sends.
    pub between: [Located<String>; 2],
    /// `None`: a plain wire.
    pub profile: Option<Asked>,
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
    /// Number of routers, nodes or pairs; for a star the number of peers of all classes.
    pub count: u32,
    /// Profile of every hop, of every pair, or of the bottleneck.
    pub profile: Option<Asked>,
    /// Profile of the senders' and receivers' access links.
    pub access: Option<Asked>,
    /// Classes of a star's peers.
    pub classes: Vec<Class>,
}

words! {
    pub(crate) enum Kind {
        Chain = "chain",
        Star = "star",
        Mesh = "mesh",
        Dumbbell = "dumbbell",
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
