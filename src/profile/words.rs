// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that are one of a few names.

use super::{Distribution, Shape};
use crate::text::Word;

/// Values of `distribution` besides a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ShapeWord {
    Named(Distribution),
    LogNormal,
}

impl Word for ShapeWord {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("uniform", Self::Named(Distribution::Uniform)),
        ("normal", Self::Named(Distribution::Normal)),
        ("pareto", Self::Named(Distribution::Pareto)),
        ("paretonormal", Self::Named(Distribution::ParetoNormal)),
        ("lognormal", Self::LogNormal),
    ];
}

impl From<ShapeWord> for Shape {
    fn from(word: ShapeWord) -> Self {
        match word {
            ShapeWord::Named(distribution) => distribution.into(),
            ShapeWord::LogNormal => Self::LogNormal,
        }
    }
}
