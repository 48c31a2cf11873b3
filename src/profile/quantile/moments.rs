// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mean and standard deviation of a table under the standard normal density, and the shift and scale
//! that give a table those configured.

use std::sync::OnceLock;

use super::normal::gauss_legendre;
use super::{TABLE_STEP, TABLE_STEPS, density, table_x};

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
pub(super) fn cut_moments(q: &[f64], shift: f64) -> (f64, f64) {
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
