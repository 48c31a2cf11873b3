// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two fixed curves of the classifier: the standard normal quantile and the
//! weight that keeps a blend of two normal values standard normal.

use crate::abi;
use crate::profile::quantile::normal_quantile as inverse_cdf;

/// Returns the normal quantiles (Q8.24) of the tail probability `v / 2^33`, where `v` is
/// octave `i / 64`, step `i % 64`: `2^octave * (1 + step / 64)`.
pub fn normal_quantile() -> Vec<i32> {
    let one = f64::from(1u32 << abi::EMUD_Z_SHIFT);
    (0..abi::EMUD_NORMAL_LEN)
        .map(|i| {
            let octave = i / abi::EMUD_NORMAL_STEPS;
            let step = f64::from(i % abi::EMUD_NORMAL_STEPS) / f64::from(abi::EMUD_NORMAL_STEPS);
            let v = 2f64.powi(octave as i32) * (1.0 + step);
            // The upper tail, by symmetry: 1 - p would lose the small ones.
            (-inverse_cdf(v / 2f64.powi(33)) * one).round() as i32
        })
        .collect()
}

/// Returns `1 / sqrt(w^2 + (1-w)^2)` in Q2.30 over `w = i / 1024`.
pub fn blend() -> Vec<u32> {
    let steps = f64::from(abi::EMUD_BLEND_STEPS);
    (0..abi::EMUD_BLEND_LEN)
        .map(|i| {
            let w = f64::from(i) / steps;
            (f64::from(1u32 << 30) / w.hypot(1.0 - w)).round() as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_falls_from_the_far_tail_to_the_median() {
        let q = normal_quantile();
        assert!(q.windows(2).all(|w| w[0] >= w[1]));
        assert_eq!(q.last(), Some(&0), "a half: the median");
        let first = f64::from(q[0]) / f64::from(1 << abi::EMUD_Z_SHIFT);
        assert!((first - 6.338).abs() < 0.001, "2^-33: {first}");
    }

    #[test]
    fn the_blend_is_one_at_the_knots_and_root_two_between() {
        let b = blend();
        assert_eq!((b[0], b[1024]), (1 << 30, 1 << 30));
        assert!((f64::from(b[512]) / f64::from(1 << 30) - 2f64.sqrt()).abs() < 1e-8);
    }
}
