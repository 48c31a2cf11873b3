// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud list --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::Report;
use crate::datapath::engine::Engine;
use crate::datapath::saved::Saved;
use crate::datapath::space::Space;
use crate::netlink::Link;

/// The number increases when a key is removed or changes its meaning.
pub const LIST_SCHEMA: &str = "emud-list/1";

/// The interfaces with an emulated link, in one network namespace or, with `--all`, in all.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List {
    /// Version of the format.
    #[schemars(extend("const" = LIST_SCHEMA))]
    schema: &'static str,
    /// One entry for each interface with an emulated link.
    interfaces: Vec<Listed>,
}

impl List {
    /// Lists these interfaces.
    pub fn of(interfaces: Vec<Listed>) -> Self {
        let schema = LIST_SCHEMA;
        Self { schema, interfaces }
    }
}

/// An interface with an emulated link.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// Network namespace of the interface; null without `--all`: that in which emud acted.
    pub namespace: Option<Space>,
    /// Name of the interface in its network namespace.
    #[schemars(length(min = 1))]
    pub interface: String,
    /// Index of the interface.
    #[schemars(range(min = 1))]
    pub ifindex: u32,
    /// Name of the profile; empty if every part of the link was deleted.
    pub profile: String,
    /// Where packets wait for their departure time.
    pub engine: Engine,
    /// What the interface sends is emulated.
    pub up: bool,
    /// What the interface receives is emulated.
    pub down: bool,
    /// Time in s until the link ends by itself; 0: it has ended, and packets pass unchanged; null:
    /// it does not.
    #[schemars(range(min = 0))]
    pub ends_in_s: Option<f64>,
    /// Sentences on the parts of the link that another process deleted or changed; empty: none.
    pub tampered: Vec<String>,
    /// Sentences on the attach and on later failures.
    pub notes: Vec<String>,
}

impl Listed {
    /// Lists a link all of whose parts other processes have deleted; detach restores the state before attach.
    pub(crate) fn deleted(link: &Link, saved: &Saved) -> Self {
        let [up, down] = saved.directions;
        Self {
            namespace: None,
            interface: link.name.clone(),
            ifindex: link.index,
            profile: String::new(),
            engine: saved.engine,
            up,
            down,
            ends_in_s: None,
            tampered: vec!["every part of the link was deleted".to_owned()],
            notes: vec![],
        }
    }
}

impl From<Report> for Listed {
    fn from(report: Report) -> Self {
        Self {
            namespace: None,
            interface: report.interface,
            ifindex: report.ifindex,
            profile: report.profile,
            engine: report.engine,
            up: report.up.is_some(),
            down: report.down.is_some(),
            ends_in_s: report.ends_in_s,
            tampered: report.tampered,
            notes: report.notes,
        }
    }
}
