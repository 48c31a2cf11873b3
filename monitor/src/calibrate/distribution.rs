// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts how often each value was seen, in bounded memory.

use hdrhistogram::{CreationError, Histogram};

/// Largest relative error of a quantile, which is never too small; the largest value is exact.
pub const RELATIVE_ERROR: f64 = 1e-3;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A distribution of values from 0 to 2^64-1 in their unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    histogram: Histogram<u64>,
    largest: Option<Largest>,
    open: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Largest {
    value: u64,
    open: bool,
}

impl Distribution {
    /// Returns an empty distribution.
    ///
    /// # Errors
    /// None: the histogram allows this number of digits.
    pub(super) fn new() -> Result<Self, CreationError> {
        Ok(Self {
            histogram: Histogram::new(SIGNIFICANT_DIGITS)?,
            largest: None,
            open: 0,
        })
    }

    /// Adds a value. `open`: the real value is at least this one, and the recording does not show
    /// the rest.
    pub(super) fn record(&mut self, value: u64, open: bool) {
        self.record_n(value, 1);
        self.open += u64::from(open);
        self.see(Largest { value, open });
    }

    /// Adds the values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        for step in other.histogram.iter_recorded() {
            self.record_n(step.value_iterated_to(), step.count_at_value());
        }
        self.open += other.open;
        if let Some(largest) = other.largest {
            self.see(largest);
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the number of values that are lower bounds.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Returns the exact largest value; `None` without values.
    pub fn max(&self) -> Option<u64> {
        self.largest.map(|l| l.value)
    }

    /// Returns whether the largest value is a lower bound.
    pub fn max_is_open(&self) -> bool {
        self.largest.is_some_and(|l| l.open)
    }

    /// Returns the smallest value that at least a share `q` (0 to 1) of all values do not exceed,
    /// up to [`RELATIVE_ERROR`] too large; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let max = self.max()?;
        Some(self.histogram.value_at_quantile(q).min(max))
    }

    /// Returns pairs of a value and the share of all values that are at least as large, by value.
    pub fn complementary(&self) -> Vec<(u64, f64)> {
        let (count, max) = (self.count() as f64, self.max().unwrap_or(0));
        let mut below = 0;
        let mut pairs = vec![];
        for step in self.histogram.iter_recorded() {
            let share = (self.count() - below) as f64 / count;
            pairs.push((step.value_iterated_to().min(max), share));
            below += step.count_at_value();
        }
        pairs
    }

    fn see(&mut self, seen: Largest) {
        let larger = |l: Largest| (seen.value, seen.open) > (l.value, l.open);
        if self.largest.is_none_or(larger) {
            self.largest = Some(seen);
        }
    }

    fn record_n(&mut self, value: u64, n: u64) {
        // The histogram grows as needed, which can fail only with addresses of less than 64 bits.
        if self.histogram.record_n(value, n).is_err() {
            self.histogram.saturating_record_n(value, n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Distribution {
        let mut d = Distribution::new().unwrap();
        for v in values {
            d.record(*v, false);
        }
        d
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let d = of(&[]);
        assert_eq!((d.max(), d.quantile(0.5), d.count()), (None, None, 0));
        assert!(d.complementary().is_empty());
    }

    #[test]
    fn quantiles_are_within_the_stated_error_and_the_largest_is_exact() {
        let values: Vec<u64> = (1..=10_000).map(|i| i * 1_234_567).collect();
        let d = of(&values);
        assert_eq!(d.max(), values.last().copied());
        for (q, rank) in [(0.5, 5_000), (0.9, 9_000), (0.999, 9_990)] {
            let exact = values[rank - 1];
            let got = d.quantile(q).unwrap();
            let bound = exact as f64 * (1.0 + RELATIVE_ERROR);
            assert!(got >= exact && got as f64 <= bound, "{q}: {got}, {exact}");
        }
    }

    #[test]
    fn the_complementary_distribution_begins_at_one() {
        let d = of(&[1, 2, 2, 10]);
        assert_eq!(d.complementary(), [(1, 1.0), (2, 0.75), (10, 0.25)]);
    }

    #[test]
    fn merging_adds_and_keeps_the_largest() {
        let mut a = of(&[1, 5]);
        let mut b = of(&[3]);
        b.record(9, true);
        a.merge(&b);
        assert_eq!((a.count(), a.open(), a.max()), (4, 1, Some(9)));
        assert!(a.max_is_open());
        b.merge(&of(&[10]));
        assert!(!b.max_is_open());
    }

    #[test]
    fn zero_and_the_largest_number_are_values() {
        let d = of(&[0, u64::MAX]);
        assert_eq!((d.quantile(0.5), d.max()), (Some(0), Some(u64::MAX)));
    }
}
