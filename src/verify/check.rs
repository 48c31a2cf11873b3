// SPDX-License-Identifier: MIT OR Apache-2.0
//! A check: what was configured, what was measured, and whether both agree.
//!
//! Each check has the same small probability of a false alarm on a correct link; all together have
//! at most [`FALSE_ALARM`] (Bonferroni). Errors of the machine are separate from chance and covered
//! by a stated resolution.

use schemars::JsonSchema;
use serde::Serialize;

use super::binomial::{clopper_pearson, most};
use crate::profile::quantile::normal_quantile;

/// Largest probability that a correct link is reported as wrong.
pub const FALSE_ALARM: f64 = 1e-3;
/// Maximum number of checks that are subject to chance: mean, sd, distribution, loss, rate and, with
/// `reorder = "jitter"`, order, in both directions. The distance of a distribution can only be too
/// large, not too small, so half of its probability is free; the losses of the train use that.
const CHECKS: f64 = 12.0;
pub const PER_CHECK: f64 = FALSE_ALARM / CHECKS;
/// Probability with which a deviation that is stated as detectable is detected.
const POWER: f64 = 0.99;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// The measured value is as configured.
    Agrees,
    /// The measured value differs from the configured one.
    Disagrees,
    /// The value could not be measured.
    NotMeasured,
    /// The link has something for which this check has no theory.
    NotJudged,
}

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Mean of the delay.
    DelayMean,
    /// Standard deviation of the delay.
    DelaySd,
    /// Kolmogorov distance of the delay; of a constant delay the share of probes that differ by more
    /// than the resolution.
    DelayDistribution,
    /// Share of lost probes.
    Loss,
    /// Share of duplicated probes.
    Duplicates,
    /// Share of probes that arrived after a later one.
    Overtaken,
    /// Rate; of a round trip that of the slower direction.
    Rate,
}

impl What {
    /// All quantities.
    pub const ALL: [Self; 7] = [
        Self::DelayMean,
        Self::DelaySd,
        Self::DelayDistribution,
        Self::Loss,
        Self::Duplicates,
        Self::Overtaken,
        Self::Rate,
    ];
}

/// Unit of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bits per second.
    BitS,
    /// A share, 0 to 1.
    Share,
}

/// A configured and a measured value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    /// "up" is what the interface sends, "down" what it receives, "both" there and back.
    #[schemars(extend("enum" = ["up", "down", "both"]))]
    pub direction: &'static str,
    /// The quantity that is compared.
    pub what: What,
    /// Unit of the values.
    pub unit: Unit,
    /// Configured value; a delay includes the serialisation of the probe.
    pub asked: f64,
    /// Measured value; null: not measured.
    pub measured: Option<f64>,
    /// Confidence interval of the value of the link. Of `delay_distribution`, and of `duplicates` and
    /// `overtaken` if none is configured: 0 and the largest value that agrees. null: not measured or
    /// not judged.
    pub interval: Option<(f64, f64)>,
    /// A link with this value, or one farther off, disagrees in 99 of 100 runs; null: there is no such
    /// value, or the check was not measured or not judged.
    pub notices: Option<f64>,
    /// Result of the check.
    pub verdict: CheckVerdict,
    /// Why the check was not measured or not judged; null otherwise.
    pub why: Option<String>,
}

impl Check {
    pub(super) fn decide(&mut self, measured: f64, interval: (f64, f64)) {
        let agrees = (interval.0..=interval.1).contains(&self.asked);
        self.set(measured, interval, agrees);
    }

    pub(super) fn decide_up_to(&mut self, measured: f64, most: f64) {
        self.set(measured, (0.0, most), measured <= most);
    }

    fn set(&mut self, measured: f64, interval: (f64, f64), agrees: bool) {
        self.measured = Some(measured);
        self.interval = Some(interval);
        self.verdict = if agrees {
            CheckVerdict::Agrees
        } else {
            CheckVerdict::Disagrees
        };
    }
}

/// Returns the standard normal value of the power of a check.
pub fn z_power() -> f64 {
    normal_quantile(POWER)
}

/// Returns the smallest loss above the requested one that is detected.
pub fn noticed_loss(asked: f64, n: u64) -> Option<f64> {
    // The first count that disagrees.
    let (mut low, mut high) = ((asked * n as f64) as u64, n + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if clopper_pearson(middle.min(n), n, PER_CHECK).0 > asked {
            high = middle;
        } else {
            low = middle;
        }
    }
    if high > n {
        return None;
    }
    Some(most(high - 1, n, 1.0 - POWER))
}
