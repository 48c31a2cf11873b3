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
    Ok(find_text(what)?.0)
}

/// As [`find`]; also returns the text.
///
/// # Errors
/// As [`find`].
pub fn find_text(what: &str) -> Result<(Profile, String), ProfileError> {
    if is_file(what) {
        return Profile::load_text(Path::new(what));
    }
    let text = text(what)?;
    let profile = Profile::parse(text, &format!("profiles/{what}.toml"))?;
    Ok((profile, text.to_owned()))
}

pub(super) fn text(name: &str) -> Result<&'static str, ProfileError> {
    shipped_text(name, SHIPPED).map_err(|help| ProfileError::UnknownName {
        name: name.to_owned(),
        help,
    })
}
