// SPDX-License-Identifier: GPL-2.0-only
//! The values that are one word of a few.

use super::{Distribution, Neighbours, Offload, Reorder};
use crate::text::Word;

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
