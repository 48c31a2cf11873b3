// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest numbers that show something, as if all above them show it, too.

use std::collections::BTreeMap;

/// Result of each number that was tried.
pub(super) type Seen<const N: usize> = BTreeMap<u32, [bool; N]>;

pub(super) fn first<const N: usize>(seen: &Seen<N>, what: usize) -> Option<u32> {
    let found = seen.iter().find(|(_, shown)| shown[what]);
    found.map(|(number, _)| *number)
}

/// Returns the number to try next: larger and larger `numbers`, until one has shown each of `until`; then between the
/// first one that has shown something and the one before it, until they are neighbours.
pub(super) fn next<const N: usize>(
    numbers: &[u32],
    seen: &Seen<N>,
    until: &[usize],
) -> Option<u32> {
    let largest = seen.keys().next_back().copied().unwrap_or(0);
    let larger = numbers.iter().copied().find(|number| *number > largest);
    let is_found = until.iter().all(|what| first(seen, *what).is_some());
    if larger.is_some() && !is_found {
        return larger;
    }
    (0..N).find_map(|what| {
        let first = first(seen, what)?;
        let (before, _) = seen.range(..first).next_back()?;
        (first - before > 1).then(|| before.midpoint(first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(numbers: &[u32], from: [u32; 2], until: &[usize]) -> [Option<u32>; 2] {
        let mut seen = Seen::new();
        while let Some(number) = next(numbers, &seen, until) {
            let shown = from.map(|from| number >= from);
            assert!(seen.insert(number, shown).is_none(), "{number} again");
        }
        [0, 1].map(|what| first(&seen, what))
    }

    #[test]
    fn the_numbers_are_exact() {
        let numbers = [5, 6, 8, 12, 16, 32];
        for (one, other) in (5..=16).flat_map(|one| (one..=32).map(move |other| (one, other))) {
            let both = [Some(one), Some(other)];
            assert_eq!(found(&numbers, [one, other], &[0, 1]), both);
            assert_eq!(found(&numbers, [one, other], &[0])[0], Some(one));
        }
        assert_eq!(found(&numbers, [7, 33], &[0, 1]), [Some(7), None]);
        assert_eq!(found(&numbers, [33, 33], &[0]), [None; 2]);
        // Below the first one nothing was tried.
        assert_eq!(found(&numbers, [2, 2], &[0]), [Some(5); 2]);
    }
}
