// SPDX-License-Identifier: MIT OR Apache-2.0
//! Powers as integers: sums of interferers are exact, in whatever order they begin and end.

/// Attowatts in a milliwatt.
const ATTO_PER_MILLI: f64 = 1e15;

/// The sum over 256 stations and the noise is below 2^64 aW: powers end at 0.05 W.
pub(crate) const STRONGEST_AW: u64 = 50_000_000_000_000_000;

/// Fixed-point units in a ratio of 1.
const UNIT: f64 = 1024.0;

/// Returns attowatts (10^-18 W) of a power in dBm, 0 below -150 dBm and 0.05 W at most.
pub fn attowatts(dbm: f64) -> u64 {
    let milliwatts = libm::pow(10.0, dbm / 10.0);
    let attowatts = (milliwatts * ATTO_PER_MILLI).round();
    attowatts.min(STRONGEST_AW as f64) as u64
}

/// Returns dBm of attowatts.
pub fn dbm(attowatts: u64) -> f64 {
    10.0 * libm::log10(attowatts as f64 / ATTO_PER_MILLI)
}

/// Returns a ratio of powers in dB as a fixed-point number for `exceeds`.
pub fn ratio(db: f64) -> u64 {
    (libm::pow(10.0, db / 10.0) * UNIT).round().min(1e12) as u64
}

/// Returns whether `signal` is at least `ratio` times `other`.
pub(crate) fn exceeds(signal: u64, other: u64, ratio: u64) -> bool {
    other == 0 || u128::from(signal) * UNIT as u128 >= u128::from(other) * u128::from(ratio)
}
