// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fractions: probabilities, weights and shares are times 2^32.

/// 1, as a fraction.
pub(super) const ONE: u64 = 1 << 32;
/// Lengths are below.
pub(super) const LENGTH_MAX: u64 = (1 << 33) - 1;

/// exp(-2^-16), rounded.
const NAT_STEP: u64 = 4_294_901_761;
/// [`not_exp`] beyond it is 1.
pub(super) const NATS_MAX: u64 = 32 << 32;

/// Returns a share or probability as a fraction.
pub fn probability(share: f64) -> u64 {
    (share * ONE as f64) as u64
}

/// Returns `x` times a fraction, rounded.
pub(super) fn scale(x: u64, fraction: u64) -> u64 {
    ((u128::from(x) * u128::from(fraction) + (1 << 31)) >> 32) as u64
}

/// Returns a fraction to the power of `n`: squared from the lowest bit of `n` on, rounded each time.
pub(super) fn power(mut fraction: u64, mut n: u32) -> u64 {
    let mut power = ONE;
    while n != 0 {
        if n & 1 == 1 {
            power = scale(power, fraction);
        }
        fraction = scale(fraction, fraction);
        n >>= 1;
    }
    power
}

/// Returns 1 - exp(-x), as a fraction, `x` times 2^32: in steps of 2^-16.
pub(super) fn not_exp(x: u64) -> u64 {
    ONE - power(NAT_STEP, (x.min(NATS_MAX) >> 16) as u32)
}

pub(super) fn length(length: u64) -> i64 {
    length.min(LENGTH_MAX) as i64
}

/// Returns `x` / sqrt(`n`), rounded; `n` not 0.
pub(super) fn over_sqrt(x: u64, n: u32) -> u64 {
    let square = 4 * u128::from(x) * u128::from(x) / u128::from(n);
    (square.isqrt() as u64).div_ceil(2)
}

/// Two gains per unit of length, as `gain * 2^32 = mult / 2^shift`: as fine as sums of both with
/// lengths allow in 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gains {
    /// Below 2^29.
    pub mult: [i64; 2],
    /// Number of bits that the sum is shifted right by.
    pub shift: u32,
}

const MULT_MAX: f64 = (1u32 << 29) as f64;

impl Gains {
    /// Gains beyond 0.125 a unit count as that.
    pub fn of(gains: [f64; 2]) -> Self {
        let largest = gains.into_iter().map(f64::abs).fold(0.0, f64::max);
        let mult = |gain: f64, shift: u32| gain * 2f64.powi((32 + shift) as i32);
        let shift = (0..63).rev().find(|s| mult(largest, *s) < MULT_MAX);
        let shift = shift.unwrap_or(0);
        Self {
            mult: gains.map(|gain| mult(gain, shift).clamp(-MULT_MAX, MULT_MAX).round() as i64),
            shift,
        }
    }

    /// Returns the change that two lengths make, times 2^32, rounded down.
    pub(super) fn change(&self, lengths: [i64; 2]) -> i64 {
        (self.mult[0] * lengths[0] + self.mult[1] * lengths[1]) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers() {
        for (fraction, n) in [(0.5, 3), (0.998, 1_000), (0.999_5, 20_000), (0.0, 0)] {
            let want = f64::powi(fraction, n);
            let got = power(probability(fraction), n as u32) as f64 / ONE as f64;
            assert!((got - want).abs() < 1e-6, "{fraction}^{n}: {got}");
        }
    }

    #[test]
    fn exponentials_are_exponentials() {
        for x in [0.0, 1e-4, 0.01, 0.25, 1.0, 3.5, 20.0, 40.0] {
            let got = not_exp(probability(x)) as f64 / ONE as f64;
            let want = 1.0 - f64::exp(-x);
            // A step of x, and 2^-33 a step.
            assert!((got - want).abs() < 1.7e-5, "{x}: {got} for {want}");
        }
    }

    #[test]
    fn roots_are_rounded() {
        for (x, n) in [(100_000_000, 2), (100_000_000, 1_000), (7, 4), (1 << 40, 3)] {
            let want = (x as f64 / f64::from(n).sqrt()).round();
            assert!(
                (over_sqrt(x, n) as f64 - want).abs() <= 1e-9 * want,
                "{x} / sqrt({n})"
            );
        }
    }

    #[test]
    fn gains_are_as_fine_as_they_can_be() {
        for gain in [1e-14, 3.4e-11, 1e-6, 0.1] {
            let gains = Gains::of([gain, -gain / 300.0]);
            let value = |mult: i64| mult as f64 / 2f64.powi(32 + gains.shift as i32);
            assert!((value(gains.mult[0]) / gain - 1.0).abs() < 1e-8);
            assert!((value(gains.mult[1]) / (-gain / 300.0) - 1.0).abs() < 1e-5);
            let most = [length(u64::MAX), length(u64::MAX)];
            assert!(gains.change(most) > 0);
        }
        assert_eq!(Gains::of([0.0, 0.0]).mult, [0, 0]);
    }
}
