// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggests thresholds from recordings, after the empirical method of S. D. Maier, "Scalable
//! Computer Network Emulation Using Node Virtualization and Resource Monitoring" (2011): values
//! that occur under known good load are not contention.

use schemars::JsonSchema;
use serde::Serialize;

use super::Measure;
use crate::criteria::Measured;
use crate::criteria::table::Kind;
use crate::event::Watched;

/// Default margin on top of the largest good value, as a share of it.
pub const DEFAULT_MARGIN: f64 = 0.25;

/// A threshold that the recordings suggest. Values are ns, bit/s over the window, or pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suggestion {
    /// Suggested threshold; null: none.
    pub theta: Option<u64>,
    /// How the threshold was found, or why there is none.
    #[serde(rename = "rule")]
    pub outcome: Outcome,
    /// Largest value of all good recordings; null: there is no value.
    pub largest_good: Option<u64>,
    /// It may have been larger, because the recording began or ended during it.
    pub largest_good_is_open: bool,
    /// Smallest of the largest values of those contended recordings that exceed `largest_good`; null:
    /// none does.
    #[serde(rename = "smallest_contended")]
    pub smallest_bad: Option<u64>,
    /// Number of contended recordings.
    pub contended: usize,
    /// Number of contended recordings that exceed `largest_good`.
    pub contended_above: usize,
}

/// How a threshold was found, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The largest good value and the margin; there is no contended recording.
    Margin,
    /// The geometric mean of `largest_good` and `smallest_contended`; every contended recording
    /// exceeds the good ones.
    Between,
    /// The same, but some contended recordings do not exceed the good ones: this criterion alone does
    /// not detect them.
    PartlyBetween,
    /// The largest good value and the margin; no contended recording exceeds the good ones.
    Overlap,
    /// The good recordings have no value.
    NothingSeen,
    /// At least one recording does not show this criterion.
    Unknown,
}

/// Suggests a threshold for one criterion from its measures in good and in contended recordings.
/// `margin` is a share of the largest good value.
pub fn suggest(
    criterion: &Measured,
    good: &[&Measure],
    contended: &[&Measure],
    margin: f64,
) -> Suggestion {
    let values = |measures: &[&Measure]| -> Vec<Option<u64>> {
        measures.iter().map(|m| largest(criterion, m)).collect()
    };
    let largest_good = values(good).into_iter().flatten().max();
    let floor = largest_good.unwrap_or(0);
    let bad = values(contended);
    let above = || bad.iter().flatten().filter(|v| **v > floor);
    let mut suggestion = Suggestion {
        theta: None,
        outcome: Outcome::Unknown,
        largest_good,
        largest_good_is_open: good
            .iter()
            .any(|m| m.total.distribution.max_is_open() && largest(criterion, m) == largest_good),
        smallest_bad: above().min().copied(),
        contended: bad.len(),
        contended_above: above().count(),
    };
    let known = |m: &&Measure| m.watched == Watched::Yes;
    if good.is_empty() || !good.iter().chain(contended).all(known) {
        return suggestion;
    }
    (suggestion.theta, suggestion.outcome) = place(criterion, &suggestion, margin);
    suggestion
}

fn place(criterion: &Measured, seen: &Suggestion, margin: f64) -> (Option<u64>, Outcome) {
    if let Some(bad) = seen.smallest_bad {
        let outcome = if seen.contended_above == seen.contended {
            Outcome::Between
        } else {
            Outcome::PartlyBetween
        };
        let good = seen.largest_good.unwrap_or(0);
        return (Some(limited(criterion, between(good, bad))), outcome);
    }
    let outcome = if seen.contended > 0 {
        Outcome::Overlap
    } else {
        Outcome::Margin
    };
    match seen.largest_good {
        Some(good) => (Some(limited(criterion, above(good, margin))), outcome),
        // A host that does not page under good load has no reason to page.
        None if criterion.none_is_usual => (Some(1), outcome),
        None => (None, Outcome::NothingSeen),
    }
}

/// Returns the largest value in the unit of a threshold: the kernel judges bytes, users configure rates.
fn largest(criterion: &Measured, measure: &Measure) -> Option<u64> {
    let max = measure.total.distribution.max()?;
    Some(in_threshold_unit(criterion, max, measure.window_ns))
}

/// Converts a value of `criterion` to the unit of its threshold: bytes in a window to bit/s.
pub fn in_threshold_unit(criterion: &Measured, value: u64, window_ns: Option<u64>) -> u64 {
    match (criterion.key.kind, window_ns) {
        (Kind::Rate, Some(window_ns)) => {
            let bits = u128::from(value) * 8_000_000_000;
            let rate = bits.div_ceil(u128::from(window_ns.max(1)));
            u64::try_from(rate).unwrap_or(u64::MAX)
        }
        _ => value,
    }
}

/// Adds the margin and rounds up to two digits; the result is above `good`.
fn above(good: u64, margin: f64) -> u64 {
    let wanted = (good as f64 * (1.0 + margin)).ceil() as u64;
    let step = step(wanted);
    let rounded = wanted.div_ceil(step).saturating_mul(step);
    rounded.max(good.saturating_add(1))
}

/// Returns the geometric mean, rounded to two digits if the result stays between both values.
fn between(good: u64, bad: u64) -> u64 {
    let middle = (good.max(1) as f64 * bad as f64).sqrt().round() as u64;
    let step = step(middle);
    let rounded = ((middle + step / 2) / step).saturating_mul(step);
    let inside = |v: &u64| *v > good && *v <= bad;
    [rounded, middle].into_iter().find(inside).unwrap_or(bad)
}

/// Returns the step of the second digit.
fn step(value: u64) -> u64 {
    10u64.pow(value.max(1).ilog10().saturating_sub(1))
}

/// Limits a threshold to the range of a monitor; rates up to 1 Tbit/s.
fn limited(criterion: &Measured, theta: u64) -> u64 {
    match criterion.key.kind {
        Kind::Time(least, most) | Kind::Share(least, most) => theta.clamp(least, most),
        Kind::Rate => theta.min(1_000_000_000_000),
        _ => theta,
    }
}
