// SPDX-License-Identifier: GPL-2.0-only
//! Values that are one word of a few.

use super::{Distribution, Neighbours, Offload, Reorder};

/// A value written as a word.
pub trait Word: Copy + PartialEq + 'static {
    /// What there is to choose from.
    const WORDS: &'static [(&'static str, Self)];

    fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }
}

impl Word for Distribution {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("uniform", Self::Uniform),
        ("normal", Self::Normal),
        ("pareto", Self::Pareto),
        ("paretonormal", Self::ParetoNormal),
    ];
}

impl Word for Reorder {
    const WORDS: &'static [(&'static str, Self)] =
        &[("never", Self::Never), ("jitter", Self::Jitter)];
}

impl Word for Neighbours {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pass", Self::Pass), ("emulate", Self::Emulate)];
}

impl Word for Offload {
    const WORDS: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("keep", Self::Keep)];
}
