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
    let title = format!("there is no key `{word}` {}", section.place());
    let all = format!("the keys are {}", section.keys().join(", "));
    let help = match (meant(word, section), elsewhere(word, section)) {
        (_, Some(other)) => format!("`{word}` belongs {}", other.belongs()),
        (Some(meant), None) => match elsewhere(meant, section) {
            Some(other) => format!("did you mean `{meant}`? It belongs {}", other.belongs()),
            None => format!("did you mean `{meant}`? ({all})"),
        },
        (None, None) => all,
    };
    Mistake::new(&key.at, title, help)
}

/// The key that `word` stands for: by another name, or misspelt, here first.
fn meant(word: &str, section: Section) -> Option<&'static str> {
    let by_alias = |word: &str| {
        ALIASES
            .iter()
            .find(|(alias, _)| *alias == word)
            .map(|(_, key)| *key)
    };
    let others = || [TOP, LINK, DELAY].into_iter().flatten().copied();
    by_alias(word)
        .or_else(|| closest(word, section.keys().iter().copied()))
        .or_else(|| closest(word, others()))
        .or_else(|| by_alias(closest(word, ALIASES.iter().map(|(alias, _)| *alias))?))
}

/// Another section where `word` is a key, unless it is one here.
fn elsewhere(word: &str, section: Section) -> Option<Section> {
    [section, Section::Top, Section::Link, Section::Delay]
        .into_iter()
        .find(|other| other.keys().contains(&word))
        .filter(|other| *other != section)
}
