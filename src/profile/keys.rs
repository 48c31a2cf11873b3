// SPDX-License-Identifier: GPL-2.0-only
//! The keys there are, and what an unknown one was probably meant to be.

use super::error::{Located, Mistake};
use super::units::closest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Top,
    Link,
    Delay,
}

pub(super) const TOP: &[&str] = &[
    "name",
    "description",
    "source",
    "seed",
    "offload",
    "neighbours",
    "link",
    "up",
    "down",
];
pub(super) const LINK: &[&str] = &["rate", "overhead", "queue", "delay", "loss", "neighbours"];
pub(super) const DELAY: &[&str] = &[
    "mean",
    "jitter",
    "sd",
    "distribution",
    "reorder",
    "coherence",
];

/// Other names for the same things.
const ALIASES: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("buffer", "queue"),
    ("correlation", "coherence"),
    ("download", "down"),
    ("downlink", "down"),
    ("downstream", "down"),
    ("drop", "loss"),
    ("egress", "up"),
    ("ingress", "down"),
    ("latency", "delay"),
    ("limit", "queue"),
    ("sigma", "sd"),
    ("speed", "rate"),
    ("stddev", "sd"),
    ("upload", "up"),
    ("uplink", "up"),
    ("upstream", "up"),
    ("variation", "jitter"),
];

impl Section {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Top => TOP,
            Self::Link => LINK,
            Self::Delay => DELAY,
        }
    }

    fn place(self) -> &'static str {
        match self {
            Self::Top => "at the top of a profile",
            Self::Link => "of a link",
            Self::Delay => "of a delay",
        }
    }

    /// Where else a key belongs.
    fn belongs(self) -> &'static str {
        match self {
            Self::Top => "at the top of the file, above the first [header]",
            Self::Link => "under [link], [up] or [down]",
            Self::Delay => "inside `delay`, as in delay = { mean = \"50ms\", jitter = \"5ms\" }",
        }
    }
}

pub(super) fn unknown(key: &Located<String>, section: Section) -> Mistake {
    let word = key.value.as_str();
    let all = || format!("the keys are {}", section.keys().join(", "));
    let help = if let Some(other) = elsewhere(word, section) {
        format!("`{word}` belongs {}", other.belongs())
    } else if let Some((_, meant)) = ALIASES.iter().find(|(alias, _)| *alias == word) {
        match elsewhere(meant, section).filter(|_| !section.keys().contains(meant)) {
            Some(other) => format!("did you mean `{meant}`? It belongs {}", other.belongs()),
            None => format!("did you mean `{meant}`? {}", all()),
        }
    } else if let Some(near) = closest(word, section.keys().iter().copied()) {
        format!("did you mean `{near}`? {}", all())
    } else {
        all()
    };
    Mistake::new(
        &key.at,
        format!("there is no key `{word}` {}", section.place()),
        help,
    )
}

fn elsewhere(word: &str, section: Section) -> Option<Section> {
    [Section::Top, Section::Link, Section::Delay]
        .into_iter()
        .find(|other| *other != section && other.keys().contains(&word))
}
