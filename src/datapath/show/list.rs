// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud list --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::Report;
use crate::datapath::engine::Engine;

/// The number increases when a key is removed or changes its meaning.
pub const LIST_SCHEMA: &str = "emud-list/1";

/// The interfaces with an emulated link, in one network namespace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List<'a> {
    /// Version of the format.
    #[schemars(extend("const" = LIST_SCHEMA))]
    schema: &'static str,
    /// The interfaces.
    interfaces: Vec<Listed<'a>>,
}

/// An interface with an emulated link.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed<'a> {
    /// Name of the interface in its network namespace.
    #[schemars(length(min = 1))]
    interface: &'a str,
    /// Index of the interface.
    #[schemars(range(min = 1))]
    ifindex: u32,
    /// Name of the profile.
    profile: &'a str,
    /// Where packets wait for their departure time.
    engine: Engine,
    /// What the interface sends is emulated.
    up: bool,
    /// What the interface receives is emulated.
    down: bool,
    /// Sentences on the parts of the link that another process deleted or changed; empty: none.
    tampered: &'a [String],
    /// Sentences on the attach and on later failures.
    notes: &'a [String],
}

impl<'a> List<'a> {
    /// Lists these interfaces.
    pub fn of(reports: &'a [Report]) -> Self {
        let one = |r: &'a Report| Listed {
            interface: &r.interface,
            ifindex: r.ifindex,
            profile: &r.profile,
            engine: r.engine,
            up: r.up.is_some(),
            down: r.down.is_some(),
            tampered: &r.tampered,
            notes: &r.notes,
        };
        Self {
            schema: LIST_SCHEMA,
            interfaces: reports.iter().map(one).collect(),
        }
    }
}
