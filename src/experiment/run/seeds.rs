// SPDX-License-Identifier: MIT OR Apache-2.0
//! One seed for a run, from which those of its links and of its repeats follow.

/// 2^64 by the golden ratio: multiples of it are far apart, whatever their distance.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of the `n`-th link, or repeat, of a run. That of the first is the run's own, so
/// `emud attach --seed` shows the same link.
pub fn derived(seed: u64, n: usize) -> u64 {
    seed.wrapping_add(STRIDE.wrapping_mul(n as u64))
}

/// A seed for a run that was given none. 32 bits: people copy it by hand, and JSON readers
/// that have no integers keep it.
///
/// # Errors
/// The kernel has no random numbers.
pub fn drawn() -> std::io::Result<u64> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes).into())
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
