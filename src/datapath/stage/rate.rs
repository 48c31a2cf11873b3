// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate as the time of bytes on the wire.

/// Returns the time that `bytes` take on the wire at `rate` bit/s, in ns.
pub(super) fn ns(bytes: u64, rate: u64) -> u64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Returns the bit/s of ns per byte as `mult / 2^shift`: the inverse of [`ns_per_byte`].
pub(crate) fn bit_s(mult: u64, shift: u32) -> f64 {
    8e9 * 2f64.powi(shift as i32) / mult as f64
}

/// Returns the ns per byte at a rate in bit/s as `mult / 2^shift`, as fine as a train of 1 MiB allows in 64 bits.
pub(crate) fn ns_per_byte(rate: u64) -> (u64, u32) {
    const MULT_MAX: u128 = 1 << 42;
    let ns = 8_000_000_000u128;
    let rate = u128::from(rate.max(1));
    // A million rows have a rate each: so close to the answer the search begins.
    let near = (rate.ilog2() + 12).min(60);
    let shift = (near.saturating_sub(4)..=near)
        .rev()
        .find(|s| (ns << s) / rate < MULT_MAX)
        .unwrap_or(0);
    ((((ns << shift) + rate / 2) / rate) as u64, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_exact_to_a_part_in_a_million_million() {
        for rate in [
            1,
            9_600,
            384_000,
            1_500_000,
            10_000_000_000,
            999_999_999_999,
        ] {
            let (mult, shift) = ns_per_byte(rate);
            let got = mult as f64 / 2f64.powi(shift as i32);
            let want = 8e9 / rate as f64;
            assert!((got / want - 1.0).abs() < 1e-12, "{rate}: {got} for {want}");
            assert!(
                u128::from(mult) << 20 < 1 << 63,
                "{rate}: overflows with 1 MiB"
            );
        }
    }
}
