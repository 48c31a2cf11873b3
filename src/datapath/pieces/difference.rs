// SPDX-License-Identifier: MIT OR Apache-2.0
//! A difference of a link from what attach created.

/// A difference from what attach created.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tampering {
    /// Whether a part of the link is deleted, and not only changed: the rest is incomplete.
    pub gone: bool,
    /// Description, without the interface's name.
    pub what: String,
}

impl Tampering {
    pub(super) fn gone(what: impl Into<String>) -> Option<Self> {
        Some(Self {
            gone: true,
            what: what.into(),
        })
    }

    pub(super) fn changed(what: impl Into<String>) -> Option<Self> {
        Some(Self {
            gone: false,
            what: what.into(),
        })
    }
}

/// Returns the message on a device that does not exist.
pub(super) fn lost(name: &str) -> String {
    format!("device {name} was deleted, or moved to another network namespace")
}
