// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of stations, as bits.

/// A set of stations below a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Set(Vec<u64>);

const BITS: usize = u64::BITS as usize;

impl Set {
    /// Returns an empty set of stations below `stations`.
    pub fn new(stations: usize) -> Self {
        Self(vec![0; stations.div_ceil(BITS)])
    }

    pub fn all(stations: usize) -> Self {
        let mut all = Self::new(stations);
        (0..stations).for_each(|station| all.insert(station));
        all
    }

    #[inline]
    pub fn insert(&mut self, station: usize) {
        self.0[station / BITS] |= 1 << (station % BITS);
    }

    #[inline]
    pub fn remove(&mut self, station: usize) {
        self.0[station / BITS] &= !(1 << (station % BITS));
    }

    #[inline]
    pub fn put(&mut self, station: usize, member: bool) {
        match member {
            true => self.insert(station),
            false => self.remove(station),
        }
    }

    #[inline]
    pub fn contains(&self, station: usize) -> bool {
        self.0[station / BITS] >> (station % BITS) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Returns the members below a station.
    pub fn below(&self, station: usize) -> usize {
        let (word, bit) = (station / BITS, station % BITS);
        let whole: u32 = self.0[..word].iter().map(|word| word.count_ones()).sum();
        whole as usize + (self.0[word] & ((1 << bit) - 1)).count_ones() as usize
    }

    /// Returns the bits of the set, 64 stations in each number, in order.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }

    pub fn copy(&mut self, other: &Self) {
        self.0.copy_from_slice(&other.0);
    }

    pub fn unite(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub fn intersect(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    pub fn subtract(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    /// Returns the members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(n, word)| members(n, *word))
    }

    #[inline]
    pub fn for_each(&self, mut then: impl FnMut(usize)) {
        for (n, word) in self.0.iter().enumerate() {
            members(n, *word).for_each(&mut then);
        }
    }
}

/// Returns the members of a set among the `n`-th 64 stations, ascending.
#[inline]
pub(crate) fn members(n: usize, word: u64) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(word), |word| Some(word & (word - 1)));
    let rest = rest.take(word.count_ones() as usize);
    rest.map(move |word| n * BITS + word.trailing_zeros() as usize)
}
