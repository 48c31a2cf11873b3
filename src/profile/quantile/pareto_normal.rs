// SPDX-License-Identifier: MIT OR Apache-2.0
//! A quarter normal and three quarters pareto, independent, as tc-netem's `paretonormal`.
//!
//! With N standard normal and R pareto (shape 3, minimum 1), the sum is
//! T = N/4 + 3/4 (R - 3/2)/sqrt(3/4), and T/sqrt(5/8) is standardised. There is no closed form:
//! the CDF is an integral over N, and the quantile is found by Newton's method on its logarithm.

use super::normal::gauss_legendre;
use super::{
    PARETO_MEAN, PARETO_SD, TABLE_LEN, TABLE_STEP, TABLE_STEPS, density, normal_cdf, table_x,
};

const NORMAL_SHARE: f64 = 0.25;
const PARETO_SHARE: f64 = 0.75;
/// sqrt(1/16 + 9/16)
const SD: f64 = 0.790_569_415_042_094_8;
/// How much R grows with T while N stands.
const R_PER_T: f64 = PARETO_SD / PARETO_SHARE;

/// N outside +-9 has a probability of 2e-19.
const REACH: f64 = 9.0;
/// Narrow enough for 1e-12 of the whole with five nodes each.
const PANELS: usize = 36;

/// The distribution of T at `t`.
struct At {
    below: f64,
    above: f64,
    density: f64,
}

fn distribution_at(t: f64) -> At {
    // N above `top` would need R < 1, which there is not.
    let top = (t + (PARETO_MEAN - 1.0) / R_PER_T) / NORMAL_SHARE;
    let (low, high) = (top.min(0.0) - REACH, top.min(REACH));
    let width = (high - low) / PANELS as f64;
    let nodes = gauss_legendre();
    let (mut below, mut above, mut slope) = (0.0, normal_cdf(-top), 0.0);
    for panel in 0..PANELS {
        for (offset, weight) in nodes {
            let n = low + width * (panel as f64 + offset);
            let r = PARETO_MEAN + R_PER_T * (t - NORMAL_SHARE * n);
            let mass = weight * width * density(n);
            let survival = 1.0 / (r * r * r);
            below += mass * (1.0 - survival);
            above += mass * survival;
            slope += mass * 3.0 * survival / r * R_PER_T;
        }
    }
    At {
        below,
        above,
        density: slope,
    }
}

/// Solves P(T < t) = P(N < x) from a near `t`; also dt/dx there.
///
/// In the logarithm of the smaller tail both are nearly straight, so this converges from afar.
fn solve(x: f64, mut t: f64) -> (f64, f64) {
    let wanted = normal_cdf(-x.abs());
    let mut slope = 0.0;
    // Two to five steps; the bound only keeps a mistake from hanging the program.
    for _ in 0..100 {
        let at = distribution_at(t);
        let (tail, sign) = if x < 0.0 {
            (at.below, 1.0)
        } else {
            (at.above, -1.0)
        };
        let step = sign * (wanted / tail).ln() * tail / at.density;
        t += step;
        slope = density(x) / at.density;
        if step.abs() <= 1e-9 * (1.0 + t.abs()) {
            break;
        }
    }
    (t, slope)
}

/// Returns the standardised quantile at `x`, from a standardised value near it.
pub(super) fn refine(x: f64, near: f64) -> f64 {
    solve(x, near * SD).0 / SD
}

/// Returns the standardised quantile at every table point.
pub(super) fn table() -> Vec<f64> {
    let mut table = vec![0.0; TABLE_LEN];
    let middle = TABLE_STEPS / 2;
    let (start, slope) = solve(0.0, -0.2);
    table[middle] = start / SD;
    for direction in [1.0, -1.0] {
        // Two slopes extrapolate the next point so well that one Newton step is enough.
        let (mut t, mut slope, mut before) = (start, slope, slope);
        for k in 1..=middle {
            let i = if direction > 0.0 {
                middle + k
            } else {
                middle - k
            };
            let guess = t + direction * TABLE_STEP * (1.5 * slope - 0.5 * before);
            before = slope;
            (t, slope) = solve(table_x(i), guess);
            table[i] = t / SD;
        }
    }
    table
}
