// SPDX-License-Identifier: MIT OR Apache-2.0
//! A qdisc or a class in text that users paste, and tc's abbreviations.

use super::shell::{Word, Words};
use crate::text::{Mistake, clipped};

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
    /// The network namespace, container or host of the device, as the text names it.
    pub place: String,
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

    /// Returns whether both are on one device.
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.place, self.device) == (&other.place, other.device)
    }
}

/// Removes what is not where those are that count, and returns where that is.
///
/// # Errors
/// They are in several network namespaces, containers or hosts.
pub(super) fn in_one_place(
    all: &mut Vec<Made>,
    counts: impl Fn(&Made) -> bool,
    what: &str,
) -> Result<String, Mistake> {
    let mut counted: Vec<&Made> = Vec::new();
    for made in all.iter().filter(|made| counts(made)) {
        if !counted.iter().any(|other| other.is_beside(made)) {
            counted.push(made);
        }
    }
    let place = counted.first().map(|made| made.place.clone());
    let place = place.unwrap_or_default();
    if let Some(second) = counted.iter().find(|made| made.place != place) {
        let name = |made: &&Made| {
            let device = made.device.unwrap_or("a device");
            match made.place.as_str() {
                "" => device.to_owned(),
                place => format!("{device} of {}", clipped(place)),
            }
        };
        let names: Vec<_> = counted.iter().map(name).collect();
        let title = format!("{what} on {}", names.join(", "));
        let help = "import the commands of one network namespace, container or host";
        return Err(Mistake::new(&second.kind.at, title, help));
    }
    all.retain(|made| made.place == place);
    Ok(place)
}
