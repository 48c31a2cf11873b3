// SPDX-License-Identifier: MIT OR Apache-2.0
//! How evenly several flows share a resource.

/// Returns Jain's fairness index: the square of the sum of the shares over their number times the sum
/// of their squares (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984). It is 1 if all are equal and 1 / n
/// if one of n has everything. `None`: nothing was shared.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_1_and_a_single_user_of_n_is_1_of_n() {
        assert_eq!(jain(&[3.0; 7]), Some(1.0));
        assert_eq!(jain(&[0.0, 5.0, 0.0, 0.0]), Some(0.25));
        // The example of the report: k of n users share equally.
        assert_eq!(jain(&[2.0, 2.0, 0.0, 0.0, 0.0]), Some(0.4));
        // 6^2 / (3 * 14).
        assert!((jain(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }
}
