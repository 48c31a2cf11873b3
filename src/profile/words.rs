// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that are one of a few names.

use std::sync::Arc;

use super::quantile::Table;
use crate::text::{Word, words};

/// The distribution of a delay, but for its mean and standard deviation.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// One of netem's, or one of a mean and a standard deviation.
    Named(Distribution),
    /// The logarithm is normal; mean and standard deviation say how skewed it is.
    LogNormal,
    /// From a file. Where the table's own mean m and standard deviation s are not
    /// 0 and 1, the delay's mean is `mean_ns + sd_ns * m / s`, as tc-netem's.
    Table(Arc<Table>),
}

impl Shape {
    /// Returns the name in files; `table` for a distribution from a file.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Named(distribution) => distribution.word(),
            Self::LogNormal => "lognormal",
            Self::Table(_) => "table",
        }
    }
}

impl Shape {
    /// Returns the standard deviation of a jitter: the half-width of a uniform distribution, a factor of
    /// the values of a table, and of others the deviation itself.
    pub(crate) fn sd_of(&self, jitter: f64) -> f64 {
        match self {
            Self::Named(Distribution::Uniform) => jitter / 3f64.sqrt(),
            Self::Table(table) => jitter * table.sd(),
            Self::Named(_) | Self::LogNormal => jitter,
        }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Distribution::default().into()
    }
}

impl From<Distribution> for Shape {
    fn from(distribution: Distribution) -> Self {
        Self::Named(distribution)
    }
}

words! {
    /// The distributions whose standardised form is always the same.
    #[derive(Default)]
    pub enum Distribution {
        #[default]
        Uniform = "uniform",
        Normal = "normal",
        /// Shape 3, as tc-netem's table.
        Pareto = "pareto",
        /// A quarter normal, three quarters pareto, as tc-netem's table.
        ParetoNormal = "paretonormal",
    }
}

words! {
    #[derive(Default)]
    pub enum Reorder {
        /// The jitter is a process in time; packets stay in order.
        #[default]
        Never = "never",
        /// Each packet draws its own; packets overtake.
        Jitter = "jitter",
    }
}

words! {
    /// Treatment of ARP, ICMPv6 neighbour discovery and PTP event messages.
    #[derive(Default)]
    pub enum Neighbours {
        #[default]
        Pass = "pass",
        Emulate = "emulate",
    }
}

words! {
    /// Treatment of packets longer than the wire's.
    #[derive(Default)]
    pub enum Offload {
        /// Cap segmentation on the device while attached.
        #[default]
        Auto = "auto",
        /// Leave it as it is.
        Keep = "keep",
    }
}

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
