// SPDX-License-Identifier: MIT OR Apache-2.0
//! The correlation of the normal values that gives the configured correlation of the delays.
//!
//! The delay is a function of a normal value, so two delays are less correlated than their normal
//! values: 0.5 becomes 0.483 for a uniform delay. In Hermite polynomials He_k the delay is
//! sum c_k He_k(x)/sqrt(k!), and normal values correlated by r give delays correlated by
//! sum c_k^2 r^k / sum c_k^2 over k >= 1 (Mehler's formula).

use super::{TABLE_STEP, density, table_x};

/// The terms beyond matter for correlations near 1 only; they are lumped into one.
const TERMS: usize = 128;

/// Returns the share of the variance of `table` in each He_k, k = 1.., the last being all the rest.
fn shares(table: &[u64]) -> Vec<f64> {
    let mut coefficients = [0.0; TERMS + 1];
    let mut second = 0.0;
    // About the median: a long delay that hardly varies would lose its variance.
    let median = table[table.len() / 2] as f64;
    for (i, delay) in table.iter().enumerate() {
        let (x, delay) = (table_x(i), *delay as f64 - median);
        let weight = density(x) * TABLE_STEP;
        second += weight * delay * delay;
        let (mut before, mut polynomial) = (0.0, 1.0);
        for (k, c) in coefficients.iter_mut().enumerate() {
            *c += weight * delay * polynomial;
            let k = k as f64;
            let next = (x * polynomial - k.sqrt() * before) / (k + 1.0).sqrt();
            (before, polynomial) = (polynomial, next);
        }
    }
    let variance = second - coefficients[0] * coefficients[0];
    let mut shares: Vec<f64> = coefficients[1..].iter().map(|c| c * c / variance).collect();
    shares.push((1.0 - shares.iter().sum::<f64>()).max(0.0));
    shares
}

/// Returns the correlation of normal values that gives delays of `table` this correlation, 0.0..1.0.
pub fn normal_correlation(table: &[u64], of_delays: f64) -> f64 {
    let shares = shares(table);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let r = 0.5 * (low + high);
        // Horner's rule: the series has no constant term.
        let got = shares
            .iter()
            .rev()
            .fold(0.0, |sum, share| (sum + share) * r);
        if got < of_delays {
            low = r;
        } else {
            high = r;
        }
    }
    low
}
