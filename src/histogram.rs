// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays of packets on a link, in the classes that the classifier counts: 16 per octave
//! (`emud_delay_class` in bpf/delay.h).

use schemars::JsonSchema;
use serde::Serialize;

use crate::abi::{EMUD_HIST_LEN, EMUD_HIST_STEPS, EMUD_HIST_UNIT};

/// Packets with `from_ns <= delay < to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bucket {
    /// Shortest delay in ns.
    pub from_ns: u64,
    /// End of the bucket in ns, exclusive.
    pub to_ns: u64,
    /// Packets with such a delay.
    pub packets: u64,
}

/// Numbers of packets by delay, and the exact sum of their delays.
///
/// ```
/// use emud::histogram::{Bucket, Delays, number};
///
/// let most = Bucket::of(number(20_000_000), 98);
/// let few = Bucket::of(number(90_000_000), 2);
/// let delays = Delays::with_mean([most, few], 21_400_000.0);
/// assert_eq!((delays.packets(), delays.mean_ns()), (100, Some(21_400_000.0)));
/// // A quantile is exact to 1/16.
/// for (share, ns) in [(0.5, 20e6), (0.99, 90e6)] {
///     let quantile_ns = delays.quantile_ns(share).unwrap();
///     assert!((quantile_ns / ns - 1.0).abs() < 1.0 / 16.0, "{quantile_ns}");
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delays {
    /// Ascending; none is empty.
    buckets: Vec<Bucket>,
    sum_ns: f64,
}

/// Summary of the delays for `emud show`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DelayGiven {
    /// Mean in ns, exact.
    pub mean_ns: u64,
    /// Median in ns, off by at most 1/16.
    pub p50_ns: u64,
    /// 99th percentile in ns, off by at most 1/16.
    pub p99_ns: u64,
    /// No delay was longer, in ns; at most 1/16 above the longest.
    pub max_ns: u64,
}

impl Bucket {
    /// Returns the bucket that the classifier counts under this number; the last one for larger
    /// numbers.
    pub fn of(number: u64, packets: u64) -> Self {
        let (number, steps) = (
            number.min(u64::from(EMUD_HIST_LEN) - 1),
            u64::from(EMUD_HIST_STEPS),
        );
        // The first octave and all below it are in steps of the unit.
        let octave = (number / steps).saturating_sub(1);
        let step = number - octave * steps;
        let ns = |step: u64| step << (octave + u64::from(EMUD_HIST_UNIT));
        Self {
            from_ns: ns(step),
            to_ns: ns(step + 1),
            packets,
        }
    }

    /// Returns the number under which the classifier counts it.
    pub fn number(&self) -> u64 {
        number(self.from_ns)
    }
}

/// Returns the number of the bucket for a delay.
pub fn number(ns: u64) -> u64 {
    let (units, steps) = (ns >> EMUD_HIST_UNIT, u64::from(EMUD_HIST_STEPS));
    let octave = (units | steps).ilog2() - steps.ilog2();
    let number = u64::from(octave) * steps + (units >> octave);
    number.min(u64::from(EMUD_HIST_LEN) - 1)
}

/// Returns the classifier's histogram without empty classes.
pub fn buckets(counted: &[u64]) -> Vec<Bucket> {
    let counted = (0..).zip(counted);
    let counted = counted.filter(|(_, packets)| **packets > 0);
    counted
        .map(|(number, packets)| Bucket::of(number, *packets))
        .collect()
}

impl Delays {
    /// Creates delays from counts; `sum_ns` is modulo 2^64, as the classifier counts it.
    pub fn counted(buckets: Vec<Bucket>, sum_ns: u64) -> Self {
        let middle = |b: &Bucket| f64::midpoint(b.from_ns as f64, b.to_ns as f64);
        let about: f64 = (buckets.iter()).map(|b| b.packets as f64 * middle(b)).sum();
        let round = 2f64.powi(64);
        let rounds = ((about - sum_ns as f64) / round).round().max(0.0);
        Self {
            buckets,
            sum_ns: sum_ns as f64 + rounds * round,
        }
    }

    /// Returns the delays that were counted between two readings of a histogram and its sum.
    pub fn since(before: (&[Bucket], u64), now: (&[Bucket], u64)) -> Self {
        let grown = |bucket: &Bucket| {
            let same = before.0.iter().find(|b| b.from_ns == bucket.from_ns);
            let packets = bucket.packets.saturating_sub(same.map_or(0, |b| b.packets));
            Some(Bucket { packets, ..*bucket }).filter(|b| b.packets > 0)
        };
        let grown = now.0.iter().filter_map(grown).collect();
        Self::counted(grown, now.1.wrapping_sub(before.1))
    }

    /// Creates delays from buckets in any order, and the mean of the delays in them.
    pub fn with_mean(buckets: impl IntoIterator<Item = Bucket>, mean_ns: f64) -> Self {
        let mut delays = Self::default();
        buckets.into_iter().for_each(|b| delays.put(b));
        delays.sum_ns = mean_ns * delays.packets() as f64;
        delays
    }

    fn put(&mut self, more: Bucket) {
        match (self.buckets).binary_search_by_key(&more.from_ns, |b| b.from_ns) {
            _ if more.packets == 0 => {}
            Ok(i) => self.buckets[i].packets = self.buckets[i].packets.saturating_add(more.packets),
            Err(i) => self.buckets.insert(i, more),
        }
    }

    /// Adds the packets of another histogram.
    pub fn add(&mut self, other: &Self) {
        other.buckets.iter().for_each(|b| self.put(*b));
        self.sum_ns += other.sum_ns;
    }

    /// Returns the buckets that have packets, in ascending order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        let packets = self.buckets.iter().map(|b| b.packets);
        packets.fold(0, u64::saturating_add)
    }

    /// Returns the sum of all delays in ns.
    pub fn sum_ns(&self) -> f64 {
        self.sum_ns
    }

    /// Returns the mean; `None` without packets.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.buckets.is_empty()).then(|| self.sum_ns / self.packets() as f64)
    }

    /// Returns the delay that this share of the packets does not exceed; `None` without packets. It
    /// is always in the right bucket, so it is off by up to 1/16.
    ///
    /// All delays in one bucket are assumed to be their mean, which is exact for a constant delay.
    /// In several buckets they are assumed to be evenly distributed around the position that gives
    /// all of them the exact mean: a smooth distribution fills its buckets.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let sum = |of: fn(&Bucket) -> u64| -> f64 {
            (self.buckets.iter())
                .map(|b| b.packets as f64 * of(b) as f64)
                .sum()
        };
        let low = sum(|b| b.from_ns);
        let room = sum(|b| b.to_ns) - low;
        let middle = ((self.sum_ns - low) / room).clamp(0.0, 1.0);
        let reach = match self.buckets.len() {
            1 => 0.0,
            _ => middle.min(1.0 - middle),
        };
        let rank = share * self.packets() as f64;
        let mut below = 0.0;
        for b in &self.buckets {
            let packets = b.packets as f64;
            if below + packets >= rank {
                let within = middle + reach * (2.0 * (rank - below) / packets - 1.0);
                return Some(b.from_ns as f64 + within * (b.to_ns as f64 - b.from_ns as f64));
            }
            below += packets;
        }
        self.max_ns().map(|ns| ns as f64)
    }

    /// Returns an upper bound of all delays.
    pub fn max_ns(&self) -> Option<u64> {
        self.buckets.last().map(|b| b.to_ns)
    }

    /// Returns the mean and quantiles of the delays; `None`: no packet.
    pub fn given(&self) -> Option<DelayGiven> {
        Some(DelayGiven {
            mean_ns: self.mean_ns()? as u64,
            p50_ns: self.quantile_ns(0.5)? as u64,
            p99_ns: self.quantile_ns(0.99)? as u64,
            max_ns: self.max_ns()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts like the classifier.
    fn of(delays: impl IntoIterator<Item = u64>) -> Delays {
        let (mut counted, mut sum) = (vec![0; EMUD_HIST_LEN as usize], 0u64);
        for ns in delays {
            counted[number(ns) as usize] += 1;
            sum = sum.wrapping_add(ns);
        }
        Delays::counted(buckets(&counted), sum)
    }

    #[test]
    fn buckets_have_no_gap_and_a_sixteenth_of_their_delay() {
        let all: Vec<_> = (0..u64::from(EMUD_HIST_LEN))
            .map(|i| Bucket::of(i, 1))
            .collect();
        assert_eq!((all[0].from_ns, all[0].to_ns), (0, 1024));
        assert!(all.windows(2).all(|b| b[0].to_ns == b[1].from_ns));
        let fine = |b: &Bucket| b.to_ns - b.from_ns <= (b.from_ns / 16).max(1024);
        assert!(all.iter().all(fine));
        // Nine hours.
        assert_eq!(all[all.len() - 1].to_ns, 1 << 45);
        let ends = (0..)
            .zip(&all)
            .all(|(n, b)| (number(b.from_ns), number(b.to_ns - 1)) == (n, n));
        assert!(ends);
        // Of a damaged log.
        assert_eq!((Bucket::of(u64::MAX, 1), number(u64::MAX)), (all[511], 511));
    }

    #[test]
    fn a_constant_delay_is_its_quantiles() {
        for ns in [10_500_000, 20_000_000, 3, 700_000_000] {
            let given = of(vec![ns; 1000]).given().unwrap();
            assert_eq!(given.mean_ns, ns);
            assert!(given.p50_ns.abs_diff(ns) <= 1, "{ns}: {}", given.p50_ns);
            assert!(given.p99_ns.abs_diff(ns) <= 1, "{ns}: {}", given.p99_ns);
        }
        // A case in which the quantile was 16.78 ms.
        let p99 = of(vec![10_500_000; 1000]).quantile_ns(0.99).unwrap();
        assert!((p99 - 10.5e6).abs() < 0.02e6, "{p99}");
    }

    #[test]
    fn quantiles_of_a_spread_are_near() {
        let uniform = of((0..100_000).map(|i| 20_000_000 + i * 100));
        for share in [0.01f64, 0.25, 0.5, 0.75, 0.99] {
            let (is, should) = (uniform.quantile_ns(share).unwrap(), 20e6 + 10e6 * share);
            assert!((is / should - 1.0).abs() < 0.02, "{share}: {is}");
        }
        assert_eq!(uniform.mean_ns().unwrap().round(), 24_999_950.0);
        // Two values far apart.
        let two = of([vec![1_000_000; 900], vec![80_000_000; 100]].concat());
        assert!((two.quantile_ns(0.5).unwrap() / 1e6 - 1.0).abs() < 1.0 / 16.0);
        assert!((two.quantile_ns(0.99).unwrap() / 80e6 - 1.0).abs() < 1.0 / 16.0);
    }

    #[test]
    fn sums_are_those_of_all() {
        let mut half = of((0..50_000).map(|i| 20_000_000 + i * 100));
        half.add(&of((50_000..100_000).map(|i| 20_000_000 + i * 100)));
        assert_eq!(half, of((0..100_000).map(|i| 20_000_000 + i * 100)));
        let nothing = Delays::default();
        assert_eq!((nothing.given(), nothing.quantile_ns(0.5)), (None, None));
    }

    /// A quiet interval weighs as much as a busy one in a mean of quantiles.
    #[test]
    fn quantiles_of_intervals_are_added_up_not_averaged() {
        let (busy, quiet) = (of(vec![10_000_000; 1000]), of(vec![100_000_000; 5]));
        let p99 = |delays: &Delays| delays.quantile_ns(0.99).unwrap();
        let averaged = f64::midpoint(p99(&busy), p99(&quiet));
        let mut both = busy.clone();
        both.add(&quiet);
        // 1000 of the 1005 packets have 10 ms.
        assert!(
            (p99(&both) / 10e6 - 1.0).abs() < 1.0 / 16.0,
            "{}",
            p99(&both)
        );
        assert!(averaged > 50e6, "{averaged}");
    }

    #[test]
    fn a_sum_that_passed_its_end_is_mended() {
        let packets = 1_000_000_000_000;
        let exact = u128::from(packets) * 50_000_000;
        let held = vec![Bucket::of(199, packets)];
        let delays = Delays::counted(held, exact as u64);
        assert!((delays.mean_ns().unwrap() / 50e6 - 1.0).abs() < 1e-9);
    }
}
