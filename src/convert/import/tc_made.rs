// SPDX-License-Identifier: MIT OR Apache-2.0
//! A qdisc or a class in text that users paste, and tc's abbreviations.

use super::shell::{Word, Words};

/// Returns whether `word` abbreviates `whole`: tc accepts every abbreviation, and the first match in its list wins.
pub(crate) fn begins(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

/// A qdisc or a class that a command creates, or that `tc qdisc show` prints.
#[derive(Clone)]
pub(crate) struct Made<'a> {
    /// `netem`, `tbf`, `htb`.
    pub kind: Word<'a>,
    pub is_class: bool,
    /// Whether tc printed it.
    pub shown: bool,
    /// Whether the command changes what is there already.
    pub changes: bool,
    /// Whether the command names it by its handle or id alone.
    pub by_id: bool,
    /// Names of options that come from the command before.
    pub kept: Vec<&'static str>,
    pub device: Option<&'a str>,
    /// `None`: the root.
    pub parent: Option<String>,
    /// Id of a class.
    pub handle: Option<String>,
    /// The tokens after the kind.
    pub options: Words<'a>,
}

impl Made<'_> {
    /// Returns the class that it is, or that it is in.
    pub fn class(&self) -> Option<&str> {
        let id = if self.is_class {
            &self.handle
        } else {
            &self.parent
        };
        id.as_deref()
    }
}
