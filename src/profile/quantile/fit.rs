// SPDX-License-Identifier: MIT OR Apache-2.0
//! A delay table with the configured mean and standard deviation.
//!
//! The table is max(0, shift + scale q(x)) with q a standardised quantile. Where nothing is cut off
//! at zero, shift and scale follow directly; where something is, cutting would raise the mean and
//! lower the spread, so the two are solved for with the cut in place.

use std::sync::OnceLock;

use super::normal::gauss_legendre;
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

/// Returns shift and scale for `mean` and a possible `sd`.
pub(super) fn fit(q: &[f64], lowest: f64, mean: f64, sd: f64) -> (f64, f64) {
    // Interpolation leaves the table a millionth off mean 0 and sd 1.
    let (q_mean, q_sd) = moments(q.iter().copied());
    let scale = sd / q_sd;
    let shift = mean - scale * q_mean;
    if shift + scale * q[0] >= 0.0 {
        return (shift, scale);
    }
    // sd/mean falls with shift/scale, from `lowest` to where nothing is cut off any more.
    let (mut low, mut high) = (lowest - 0.01, -q[0] + 0.01);
    loop {
        let middle = 0.5 * (low + high);
        let (cut_mean, cut_sd) = cut_moments(q, middle);
        if middle <= low || middle >= high {
            let scale = mean / cut_mean;
            return (middle * scale, scale);
        }
        // Where all is cut off, there is neither.
        if cut_mean <= 0.0 || cut_sd / cut_mean > sd / mean {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Returns [`moments`] of max(0, shift + q), with q never falling.
fn cut_moments(q: &[f64], shift: f64) -> (f64, f64) {
    // Between zeros there is nothing to add up.
    let first = q.partition_point(|q| shift + q <= 0.0).saturating_sub(1);
    moments_from(first, q[first..].iter().map(|q| (shift + q).max(0.0)))
}

/// Returns the mean and standard deviation in ns of the delays of a table.
pub fn table_moments(delay_ns: &[u64]) -> (f64, f64) {
    // About the median: squares of long delays leave no digits for a short deviation.
    let median = delay_ns.get(delay_ns.len() / 2).copied().unwrap_or(0);
    let off = |ns: &u64| ns.wrapping_sub(median).cast_signed() as f64;
    let (mean, sd) = moments(delay_ns.iter().map(off));
    (median as f64 + mean, sd)
}

/// Returns the mean and standard deviation of linear interpolation between `points`, x standard normal.
pub(super) fn moments(points: impl Iterator<Item = f64>) -> (f64, f64) {
    moments_from(0, points)
}

/// Returns the same without the first segments, which are zero. It is a separate loop because fitting a
/// table runs it 60 times, and zipped iterators took four times as long unoptimised.
fn moments_from(segment: usize, mut points: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut first, mut second) = (0.0, 0.0);
    let mut here = points.next().unwrap_or_default();
    for [w0, w1, w2] in &segment_weights()[segment..] {
        let Some(next) = points.next() else { break };
        let rise = next - here;
        first += w0 * here + w1 * rise;
        second += w0 * here * here + 2.0 * w1 * here * rise + w2 * rise * rise;
        here = next;
    }
    (first, (second - first * first).max(0.0).sqrt())
}

/// Returns, per segment, the integrals of 1, u and u^2 times the normal density, u = 0..1 along it.
fn segment_weights() -> &'static [[f64; 3]] {
    static WEIGHTS: OnceLock<Vec<[f64; 3]>> = OnceLock::new();
    WEIGHTS.get_or_init(|| {
        let segment = |i| {
            let mut weights = [0.0; 3];
            for (u, weight) in gauss_legendre() {
                let mass = weight * TABLE_STEP * density(table_x(i) + u * TABLE_STEP);
                weights[0] += mass;
                weights[1] += mass * u;
                weights[2] += mass * u * u;
            }
            weights
        };
        (0..TABLE_STEPS).map(segment).collect()
    })
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
