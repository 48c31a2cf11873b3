// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixed-point figures of the classifier, and the numbers that users write: each function beside its
//! inverse.

use crate::abi;
use crate::profile::quantile::normal_quantile;

/// Returns a probability as the bound of a random u64 (`as` saturates: 1.0 is 2^64 - 1).
pub(crate) fn probability(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// Returns the probability that a random u64 is below `bound`.
pub(crate) fn of_probability(bound: u64) -> f64 {
    // From 1e-9 on as many digits survive.
    decimal(bound as f64 / 2f64.powi(64), 10)
}

/// Returns an event of probability `p` whose decisions have this correlation.
pub(crate) fn chance(p: f64, correlation: f64) -> abi::emud_chance {
    let one = f64::from(1u32 << abi::EMUD_CORRELATION_SHIFT);
    let z = f64::from(1u32 << abi::EMUD_Z_SHIFT);
    abi::emud_chance {
        probability: probability(p),
        // `as` saturates: at 100 % the quantile is infinite.
        below: (normal_quantile(p) * z) as i64,
        correlation: (correlation * one).round() as u32,
        innovation: ((1.0 - correlation * correlation).sqrt() * one).round() as u32,
    }
}

/// Returns probability and correlation of an event.
pub(crate) fn of_chance(chance: &abi::emud_chance) -> (f64, f64) {
    let one = f64::from(1u32 << abi::EMUD_CORRELATION_SHIFT);
    let correlation = f64::from(chance.correlation) / one;
    // One part of 2^30, so the ninth decimal is the last one that was kept.
    let correlation = (correlation * 1e9).round() / 1e9;
    (of_probability(chance.probability), correlation)
}

/// Rounds a number to `digits` significant digits: the value that the user wrote, without the error of the fixed point.
pub(crate) fn decimal(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits - 1)
        .parse()
        .unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_covers_the_whole_range() {
        assert_eq!(probability(0.0), 0);
        assert_eq!(probability(0.5), 1 << 63);
        assert_eq!(probability(1.0), u64::MAX);
    }

    #[test]
    fn a_correlated_chance_keeps_the_variance() {
        for correlation in [0.01, 0.25, 0.9, 0.999] {
            let chance = chance(0.01, correlation);
            let of = |part: u32| f64::from(part) / f64::from(1u32 << 30);
            let variance = of(chance.correlation).powi(2) + of(chance.innovation).powi(2);
            assert!((variance - 1.0).abs() < 1e-8, "{correlation}: {variance}");
        }
        assert_eq!(chance(1.0, 0.5).below, i64::MAX);
        // Phi^-1(0.5) = 0
        assert_eq!(chance(0.5, 0.5).below, 0);
    }
}
