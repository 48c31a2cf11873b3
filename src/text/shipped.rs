// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files, or of something that is shipped with emud.

use super::closest;

/// Returns whether it has a `/` or ends in `.toml`.
pub(crate) fn is_file(what: &str) -> bool {
    what.contains('/') || what.ends_with(".toml")
}

/// Lists the shipped names for a user who requested an unknown one.
pub(crate) fn not_shipped(what: &str, names: &[&'static str]) -> String {
    let near = closest(what, names.iter().copied())
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    format!(
        "help: {near}the shipped ones are {}; a file needs a `/` or `.toml` in its name",
        names.join(", ")
    )
}
