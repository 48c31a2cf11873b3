// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud list --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::Report;
use crate::datapath::engine::Engine;
use crate::datapath::host_wide::Space;

/// The number increases when a key is removed or changes its meaning.
pub const LIST_SCHEMA: &str = "emud-list/1";

/// The interfaces with an emulated link, in one network namespace or, with `--all`, in all.
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
    /// Network namespace of the interface; null without `--all`: that in which emud acted.
    namespace: Option<&'a Space>,
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
    /// Time in s until the link ends by itself; 0: it has ended, and packets pass unchanged; null:
    /// it does not.
    #[schemars(range(min = 0))]
    ends_in_s: Option<f64>,
    /// Sentences on the parts of the link that another process deleted or changed; empty: none.
    tampered: &'a [String],
    /// Sentences on the attach and on later failures.
    notes: &'a [String],
}

impl<'a> List<'a> {
    /// Lists these interfaces, which are in the namespace in which emud acted.
    pub fn of(reports: &'a [Report]) -> Self {
        Self::of_all(reports.iter().map(|report| (None, report)))
    }

    /// Lists interfaces of several namespaces.
    pub fn of_all(reports: impl Iterator<Item = (Option<&'a Space>, &'a Report)>) -> Self {
        let one = |(namespace, r): (Option<&'a Space>, &'a Report)| Listed {
            namespace,
            interface: &r.interface,
            ifindex: r.ifindex,
            profile: &r.profile,
            engine: r.engine,
            up: r.up.is_some(),
            down: r.down.is_some(),
            ends_in_s: r.ends_in_s,
            tampered: &r.tampered,
            notes: &r.notes,
        };
        Self {
            schema: LIST_SCHEMA,
            interfaces: reports.map(one).collect(),
        }
    }
}
