// SPDX-License-Identifier: MIT OR Apache-2.0
//! The standard normal distribution, and quadrature.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use libm::erfc;
use statrs::function::erf::erfc_inv;

/// Returns the probability of a standard normal value below `x`; the lower tail keeps its relative precision.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// Returns the inverse of [`normal_cdf`] over 0 < `p` < 1; infinite at 0 and 1.
///
/// Near 1 take `-normal_quantile(1 - p)` from an exact `1 - p`.
pub fn normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// Returns the density of the standard normal distribution at `x`.
pub fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// Returns five-point Gauss-Legendre nodes and weights on [0, 1].
pub(super) fn gauss_legendre() -> [(f64, f64); 5] {
    let inner = (5.0 - 2.0 * (10f64 / 7.0).sqrt()).sqrt() / 3.0;
    let outer = (5.0 + 2.0 * (10f64 / 7.0).sqrt()).sqrt() / 3.0;
    let heavy = (322.0 + 13.0 * 70f64.sqrt()) / 900.0;
    let light = (322.0 - 13.0 * 70f64.sqrt()) / 900.0;
    [
        (-outer, light),
        (-inner, heavy),
        (0.0, 128.0 / 225.0),
        (inner, heavy),
        (outer, light),
    ]
    .map(|(x, weight)| (0.5 * (1.0 + x), 0.5 * weight))
}
