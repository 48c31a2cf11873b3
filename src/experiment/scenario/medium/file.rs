// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a medium refers to.

use std::path::Path;

use crate::text::{read_up_to, utf8_up_to};

/// `setdest` writes a line for each change of a route between any two nodes, too.
const MOST_BYTES: usize = 64 << 20;

/// Reads a file relative to the folder of the scenario, as `read` does.
///
/// # Errors
/// A sentence that begins with the path.
pub(super) fn load<T, E: std::fmt::Display>(
    folder: &Path,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, String> {
    let path = folder.join(name);
    let origin = path.display().to_string();
    let bytes = read_up_to(&path, MOST_BYTES).map_err(|error| format!("{origin}: {error}"))?;
    let source = utf8_up_to(&bytes, &origin, MOST_BYTES).map_err(|error| error.to_string())?;
    read(&source.text).map_err(|error| format!("{origin}: {error}"))
}
