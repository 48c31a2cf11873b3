// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random decisions: a hash of seed, station, purpose and how many there were before, so that one
//! decision more or less of a station changes nothing at the others.

use crate::abi::{mix, uniform};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Backoff = 1,
    BitErrors = 2,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Chance {
    seed: u64,
}

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// Returns a random number, uniform over all values.
    pub fn bits(self, station: usize, purpose: Purpose, n: u64) -> u64 {
        let stream = mix(self.seed ^ ((station as u64) << 8 | purpose as u64));
        mix(stream.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a random number of slots, uniform over 0..=window.
    pub fn slots(self, station: usize, n: u64, window: u32) -> u32 {
        let bits = self.bits(station, Purpose::Backoff, n) >> 32;
        ((bits * (u64::from(window) + 1)) >> 32) as u32
    }

    /// Returns true with this probability.
    pub fn happens(self, station: usize, n: u64, probability: f64) -> bool {
        uniform(self.bits(station, Purpose::BitErrors, n)) < probability
    }
}
