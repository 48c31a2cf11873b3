// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profiles that come with emud, inside the binary.

use std::path::Path;

use super::{Profile, ProfileError};
use crate::text::{is_file, not_shipped};

/// A shipped profile.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// What `--profile` takes.
    pub name: &'static str,
    /// The file with its comments.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../profiles/", $name, ".toml")),
        }),*]
    };
}

/// All of them, in the order to list them.
pub const SHIPPED: &[Shipped] = shipped![
    "5g",
    "adsl24",
    "badnet-latency",
    "badnet-loss",
    "cable",
    "datacentre",
    "diffserv-fair",
    "diffserv-priority",
    "diffserv-tbf",
    "diffserv-weights",
    "dscp-bands",
    "dsl",
    "fibre",
    "geo",
    "hsdpa",
    "lte",
    "pinger-eu-na",
    "pinger-europe",
    "pinger-na-eu",
    "pinger-north-america",
    "starlink",
    "tiainen-landline",
    "tiainen-mobile",
    "tiainen-tree",
    "transatlantic",
    "umts",
    "wifi",
];

impl Shipped {
    /// # Errors
    /// None, as the tests see to.
    pub fn parse(&self) -> Result<Profile, ProfileError> {
        Profile::parse(self.text, &format!("profiles/{}.toml", self.name))
    }
}

/// The profile `what`: a file if it has a `/` or ends in `.toml`, else a shipped one by its name.
///
/// # Errors
/// As [`Profile::load`], and where no shipped profile has that name.
pub fn find(what: &str) -> Result<Profile, ProfileError> {
    if is_file(what) {
        return Profile::load(Path::new(what));
    }
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == what) {
        return shipped.parse();
    }
    let names: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    Err(ProfileError::UnknownName {
        name: what.to_owned(),
        help: not_shipped(what, &names),
    })
}
