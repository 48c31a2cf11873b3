// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the seeds of links and repeats from the seed of a run.

/// 2^64 divided by the golden ratio: its multiples are far apart, whatever their distance.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the seed of the `n`-th link, or repeat, of a run. The first one is the run's seed, so
/// `emud attach --seed` shows the same link.
pub fn derived(seed: u64, n: usize) -> u64 {
    seed.wrapping_add(STRIDE.wrapping_mul(n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_repeats_have_seeds_of_their_own() {
        assert_eq!(derived(7, 0), 7);
        let all: std::collections::BTreeSet<u64> = (0..1000).map(|n| derived(7, n)).collect();
        assert_eq!(all.len(), 1000);
    }
}
