// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario's file says, each with its place, before anybody knows how many nodes that is.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::plan::Program;
use crate::profile::Profile;
use crate::text::{At, Located, words};

/// A scenario as it was written: good in itself, not yet worked out ([`Scenario::plan`]).
#[derive(Debug)]
pub struct Scenario {
    /// The file's, where it says none.
    pub name: String,
    pub description: String,
    /// The file with its comments.
    pub text: String,
    /// What messages call the text.
    pub(crate) origin: String,
    /// Where the addresses are from.
    pub(crate) network: Located<Ipv4Net>,
    pub(crate) measure: Option<Duration>,
    pub(crate) ready_within: Duration,
    pub(crate) clean_up_within: Duration,
    pub(crate) topology: Option<Topology>,
    /// In the order of the file.
    pub(crate) nodes: Vec<NodeDraft>,
    pub(crate) links: Vec<LinkDraft>,
}

/// `[node.NAME]`: one node, or all whose names begin like a pattern; what was not said is none.
#[derive(Debug)]
pub(crate) struct NodeDraft {
    /// With a `*` at its end: a pattern.
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
    /// What all names that are meant begin with; none: it is one name.
    pub fn pattern(&self) -> Option<&str> {
        self.name.value.strip_suffix('*')
    }
}

/// `[link.NAME]`.
#[derive(Debug)]
pub(crate) struct LinkDraft {
    pub name: Located<String>,
    /// The first has the link as a user has it.
    pub between: [Located<String>; 2],
    /// None: a bare wire.
    pub profile: Option<Asked>,
}

/// A profile that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub profile: Profile,
    /// By its name or path; "inline".
    pub asked: String,
    pub at: At,
}

/// `[topology]`: nodes and links that need not be written.
#[derive(Debug)]
pub(crate) struct Topology {
    pub at: At,
    pub kind: Kind,
    /// Routers, nodes or pairs; of a star as many peers as its classes have.
    pub count: u32,
    /// Of every hop, of every pair, of the bottleneck.
    pub profile: Option<Asked>,
    /// Of the senders' and receivers' own links.
    pub access: Option<Asked>,
    /// Of the peers of a star.
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

/// Peers of a star with links alike.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub name: Located<String>,
    pub peers: u32,
    /// None: their packets are not touched.
    pub profile: Option<Asked>,
}
