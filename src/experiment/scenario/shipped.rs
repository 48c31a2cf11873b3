// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped scenarios, which are part of the binary.

use std::path::Path;

use super::{Scenario, ScenarioError};
use crate::text::{is_file, not_shipped};

/// A shipped scenario.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// What `--scenario` takes.
    pub name: &'static str,
    /// The file with its comments.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),*]
    };
}

/// All shipped scenarios, in the order in which they are listed.
pub const SHIPPED: &[Shipped] = shipped![
    "air-chain",
    "broch",
    "c-diffserv",
    "c-red",
    "c-tos",
    "chain",
    "dumbbell",
    "hidden",
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

impl Shipped {
    /// Parses the scenario.
    ///
    /// # Errors
    /// None, as tests verify.
    pub fn parse(&self) -> Result<Scenario, ScenarioError> {
        let origin = format!("scenarios/{}.toml", self.name);
        Scenario::parse(self.text, &origin, Path::new(""))
    }
}

/// Loads the scenario `what`: a file if it has a `/` or ends in `.toml`, otherwise a shipped one by
/// its name.
///
/// # Errors
/// As [`Scenario::load`], and if no shipped scenario has that name.
pub fn load(what: &str) -> Result<Scenario, ScenarioError> {
    if is_file(what) {
        return Scenario::load(Path::new(what));
    }
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == what) {
        return shipped.parse();
    }
    let names: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    Err(ScenarioError::UnknownName {
        name: what.to_owned(),
        help: not_shipped(what, &names),
    })
}
