// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped scenarios, which are part of the binary.

use std::path::Path;

use super::{Scenario, ScenarioError};
use crate::text::{Shipped, is_file, shipped, shipped_text};

/// All shipped scenarios, in the order in which they are listed.
pub const SHIPPED: &[Shipped] = shipped!["../../../scenarios/":
    "air-chain",
    "broch",
    "c-air-tos",
    "c-diffserv",
    "c-no-sight",
    "c-red",
    "c-sight",
    "c-tos",
    "chain",
    "dumbbell",
    "hidden",
    "m-adhoc",
    "m-chain",
    "m-contention",
    "m-switch",
    "m-updates",
    "mesh",
    "s-choke",
    "s-overhead",
    "s-ring",
    "s-snake",
    "s-window",
    "segment",
    "star",
    "t-links",
    "t-p2p",
    "t-scale",
    "t-star",
    "t-tree",
    "two-cells",
    "v-badnet",
    "walk",
];

/// Loads the scenario `what`: a file if it has a `/` or ends in `.toml`, otherwise a shipped one by
/// its name.
///
/// # Errors
/// As [`Scenario::load`], and if no shipped scenario has that name.
pub fn find(what: &str) -> Result<Scenario, ScenarioError> {
    match is_file(what) {
        true => Scenario::load(Path::new(what)),
        false => Scenario::parse(
            text(what)?,
            &format!("scenarios/{what}.toml"),
            Path::new(""),
        ),
    }
}

fn text(name: &str) -> Result<&'static str, ScenarioError> {
    shipped_text(name, SHIPPED).map_err(|help| ScenarioError::UnknownName {
        name: name.to_owned(),
        help,
    })
}
