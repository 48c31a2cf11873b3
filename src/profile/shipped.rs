// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profiles that come with emud, inside the binary.

use std::path::Path;

use super::{Profile, ProfileError};
use crate::text::{Shipped, is_file, shipped, shipped_text};

/// All of them, in the order to list them.
pub const SHIPPED: &[Shipped] = shipped!["../../profiles/":
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

/// Returns the profile `what`: a file if it has a `/` or ends in `.toml`, else a shipped one by its name.
///
/// # Errors
/// As [`Profile::load`], and where no shipped profile has that name.
pub fn find(what: &str) -> Result<Profile, ProfileError> {
    match is_file(what) {
        true => Profile::load(Path::new(what)),
        false => Profile::parse(text(what)?, &format!("profiles/{what}.toml")),
    }
}

pub(super) fn text(name: &str) -> Result<&'static str, ProfileError> {
    shipped_text(name, SHIPPED).map_err(|help| ProfileError::UnknownName {
        name: name.to_owned(),
        help,
    })
}
