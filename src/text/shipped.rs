// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files, or of something that is shipped with emud, inside the binary.

use super::closest;

/// A shipped file.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// What stands for its path.
    pub name: &'static str,
    /// The file with its comments.
    pub text: &'static str,
}

macro_rules! shipped {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$($crate::text::Shipped {
            name: $name,
            text: include_str!(concat!($folder, $name, ".toml")),
        }),*]
    };
}
pub(crate) use shipped;

/// Returns whether it has a `/` or ends in `.toml`.
pub(crate) fn is_file(what: &str) -> bool {
    what.contains('/') || what.ends_with(".toml")
}

/// Returns the text of a shipped file.
///
/// # Errors
/// There is none of that name: what to say about it.
pub(crate) fn shipped_text(name: &str, all: &[Shipped]) -> Result<&'static str, String> {
    if let Some(shipped) = all.iter().find(|shipped| shipped.name == name) {
        return Ok(shipped.text);
    }
    let names: Vec<_> = all.iter().map(|shipped| shipped.name).collect();
    let near = closest(name, names.iter().copied())
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    Err(format!(
        "help: {near}the shipped ones are {}; a file needs a `/` or `.toml` in its name",
        names.join(", ")
    ))
}
