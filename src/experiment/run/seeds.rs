// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the seeds of links and repeats from the seed of a run.

/// 2^64 divided by the golden ratio: its multiples are far apart, whatever their distance.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The same for repeats. With one stride for both, a link of a repeat would have the seed of the next link
/// in the repeat before, and a flow across both the same losses.
const REPEAT_STRIDE: u64 = 0xd134_2543_de82_ef95;

/// Returns the seed of the `n`-th link of a run. The first one is the run's seed, so `emud attach
/// --seed` shows the same link.
pub fn derived(seed: u64, n: usize) -> u64 {
    seed.wrapping_add(STRIDE.wrapping_mul(n as u64))
}

/// Returns the seed of the `n`-th repeat of a run; the first one has the run's seed.
pub fn of_repeat(seed: u64, n: usize) -> u64 {
    seed.wrapping_add(REPEAT_STRIDE.wrapping_mul(n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_all_repeats_have_seeds_of_their_own() {
        assert_eq!((derived(7, 0), of_repeat(7, 0)), (7, 7));
        let of = |repeat| (0..300).map(move |n| derived(of_repeat(7, repeat), n));
        let all: std::collections::BTreeSet<u64> = (0..300).flat_map(of).collect();
        assert_eq!(all.len(), 300 * 300);
    }
}
