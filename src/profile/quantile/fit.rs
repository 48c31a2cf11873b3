// SPDX-License-Identifier: MIT OR Apache-2.0
//! A delay table with the configured mean and standard deviation.
//!
//! The table is max(0, shift + scale q(x)) with q a standardised quantile. Where nothing is cut off
//! at zero, shift and scale follow directly; where something is, cutting would raise the mean and
//! lower the spread, so the two are solved for with the cut in place.

use std::sync::OnceLock;

use super::moments::{cut_moments, fit, moments};
use super::{TABLE_LEN, TABLE_STEP, TABLE_STEPS, Table, density, quantile, standard, table_x};
use crate::profile::{Delay, Distribution, Nanoseconds, Shape, Time};

/// A spread that this distribution cannot have about this mean.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "a {} delay of {} on average cannot vary with a standard deviation of {}, only up to {}",
    .distribution, Time(*.mean_ns), Nanoseconds(*.sd_ns), Nanoseconds(*.largest_sd_ns)
)]
pub struct SpreadError {
    /// Name of the distribution.
    pub distribution: &'static str,
    /// The mean requested.
    pub mean_ns: u64,
    /// The standard deviation requested.
    pub sd_ns: f64,
    /// The largest one that is possible with delays >= 0.
    pub largest_sd_ns: f64,
}

/// Returns the largest standard deviation in ns that delays of this distribution and mean may have.
///
/// Zero may cut off the lower tail but not the likeliest delay: beyond that it would no longer be
/// that distribution. For uniform that is mean/sqrt(3) (nothing is cut off), for normal 1.46, for
/// pareto 1.73, for paretonormal 2.19 times the mean. A lognormal delay is never negative; beyond 3
/// times the mean one packet in thousands makes up its mean. Of a table the lower half may be cut
/// off.
pub fn largest_sd_ns(shape: impl Into<Shape>, mean_ns: u64) -> f64 {
    let mean = mean_ns as f64;
    match shape.into() {
        Shape::Named(distribution) => mean * largest_ratio(distribution),
        Shape::LogNormal => mean * 3.0,
        Shape::Table(table) => {
            let q = table.standard();
            let (cut_mean, cut_sd) = cut_moments(&q, -median(&q));
            // Samples that are mostly zero are at the bound themselves, but for rounding of their
            // least one: with one in a million far out, that is close to the mean.
            let least = (-q[0] - table.rounding()).max(f64::MIN_POSITIVE);
            let ratio = (1.001 * cut_sd / cut_mean).max(1.0 / least);
            // The mean to have is mean + sd * offset.
            match 1.0 - ratio * offset(&table) {
                rest if rest > 0.0 => mean * ratio / rest,
                _ => f64::INFINITY,
            }
        }
    }
}

/// Returns how many standard deviations the mean of `table` is above the mean that is written.
fn offset(table: &Table) -> f64 {
    table.mean() / table.sd()
}

fn median(q: &[f64]) -> f64 {
    q[TABLE_STEPS / 2]
}

/// Returns the absolute delays in ns at x = -8..=8 in steps of 1/256, never falling.
///
/// Mean and standard deviation, of linear interpolation under the standard normal density, are the
/// configured ones to 1e-6 or to the rounding of a point to whole ns, whichever is more; those of the
/// delays before the longest are cut to `max_ns`.
///
/// # Errors
/// The standard deviation is above [`largest_sd_ns`], or is not a number.
pub fn delay_table(delay: &Delay) -> Result<Vec<u64>, SpreadError> {
    let Some(jitter) = delay.jitter.as_ref().filter(|j| j.sd_ns != 0.0) else {
        return Ok(vec![delay.mean_ns; TABLE_LEN]);
    };
    let (mean, sd) = (delay.mean_ns as f64, jitter.sd_ns);
    let largest_sd_ns = largest_sd_ns(jitter.distribution.clone(), delay.mean_ns);
    // The bound itself must pass, whichever way it was rounded.
    if !(sd > 0.0 && sd <= largest_sd_ns * (1.0 + 1e-9)) {
        return Err(SpreadError {
            distribution: jitter.distribution.word(),
            mean_ns: delay.mean_ns,
            sd_ns: sd,
            largest_sd_ns,
        });
    }
    let mut table = match &jitter.distribution {
        Shape::Named(distribution) => fitted(
            standard(*distribution),
            lowest_shift(*distribution),
            mean,
            sd,
        ),
        Shape::LogNormal => log_normal(mean, sd),
        Shape::Table(table) => {
            let q = table.standard();
            fitted(&q, -median(&q), mean + sd * offset(table), sd)
        }
    };
    if let Some(max) = delay.max_ns {
        table.iter_mut().for_each(|ns| *ns = (*ns).min(max));
    }
    Ok(table)
}

fn fitted(q: &[f64], lowest: f64, mean: f64, sd: f64) -> Vec<u64> {
    let (shift, scale) = fit(q, lowest, mean, sd);
    q.iter()
        .map(|q| (shift + scale * q).max(0.0).round() as u64)
        .collect()
}

/// Returns exp(m + s x), with s^2 = ln(1 + (sd/mean)^2) and m = ln(mean) - s^2/2.
fn log_normal(mean: f64, sd: f64) -> Vec<u64> {
    let variance = (sd / mean).powi(2).ln_1p();
    let at = |i| (variance.sqrt() * table_x(i) - 0.5 * variance).exp();
    let relative: Vec<f64> = (0..TABLE_LEN).map(at).collect();
    // Interpolation lies above the curve.
    let (interpolated, _) = moments(relative.iter().copied());
    relative
        .iter()
        .map(|v| (mean * v / interpolated).round() as u64)
        .collect()
}

/// Returns the least shift/scale: the likeliest delay is zero there.
fn lowest_shift(distribution: Distribution) -> f64 {
    match distribution {
        // All are as likely; none may be cut off.
        Distribution::Uniform => 3f64.sqrt(),
        Distribution::Normal => 0.0,
        Distribution::Pareto => -quantile(distribution, super::TABLE_MIN),
        Distribution::ParetoNormal => -mode(standard(distribution)),
    }
}

/// Returns the q with the highest density, which is density(x) dx/dq.
fn mode(q: &[f64]) -> f64 {
    let flatness = |i: usize| (q[i + 1] - q[i]) / density(table_x(i) + 0.5 * TABLE_STEP);
    let at = (0..TABLE_STEPS).min_by(|&a, &b| flatness(a).total_cmp(&flatness(b)));
    at.map_or(0.0, |i| 0.5 * (q[i] + q[i + 1]))
}

fn largest_ratio(distribution: Distribution) -> f64 {
    static RATIOS: [OnceLock<f64>; 4] = [const { OnceLock::new() }; 4];
    *RATIOS[distribution as usize].get_or_init(|| match distribution {
        Distribution::Uniform => 1.0 / 3f64.sqrt(),
        // Minimum 1, mean 3/2, variance 3/4.
        Distribution::Pareto => 3f64.sqrt(),
        other => {
            let (mean, sd) = cut_moments(standard(other), lowest_shift(other));
            sd / mean
        }
    })
}
