// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a direction of a link did in one interval or in many.

use emud_monitor::log::{Counted, DelaySample, Sample};

use super::estimate::CONFIDENCE;
use crate::histogram::{Bucket, Delays};
use crate::verify::clopper_pearson;

/// Samples added up. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// From the beginning of the first interval to the end of the last.
    pub from_ns: u64,
    /// End of the last interval.
    pub until_ns: u64,
    /// Length of all intervals together.
    pub interval_ns: u64,
    /// Sum of the samples' counts.
    pub counted: Counted,
    /// The largest at the end of an interval; none: no queue, or several.
    pub backlog_bytes: Option<u64>,
    /// Bits that a trace could have sent; none: no trace, or one without a limit in one of the
    /// intervals.
    pub offered_bits: Option<f64>,
    /// The fastest interval, of those that were not cut short.
    pub(super) peak_bit_s: f64,
    /// Given to packets.
    pub delays: Delays,
}

/// A share of packets, with the interval in which that of the link lies (Clopper-Pearson).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The share, 0.0..=1.0.
    pub share: f64,
    /// The interval, 95 %.
    pub interval: [f64; 2],
}

impl Share {
    /// Returns the share of `part` with its interval; `None`: `all` is 0.
    fn of(part: u64, all: u64) -> Option<Self> {
        let part = part.min(all);
        let (low, high) = clopper_pearson(part, all, 1.0 - CONFIDENCE);
        (all > 0).then(|| Self {
            share: part as f64 / all as f64,
            interval: [low, high],
        })
    }
}

impl From<&Sample> for Tally {
    fn from(s: &Sample) -> Self {
        let bit_s = s.counted.passed_bytes as f64 * 8e9 / s.interval_ns.max(1) as f64;
        Self {
            from_ns: s.mono_ns.saturating_sub(s.interval_ns),
            until_ns: s.mono_ns,
            interval_ns: s.interval_ns,
            counted: s.counted,
            backlog_bytes: s.backlog_bytes,
            offered_bits: (s.capacity_bit_s).map(|rate| rate as f64 * s.interval_ns as f64 / 1e9),
            peak_bit_s: bit_s,
            delays: s.delay.as_ref().map(delays).unwrap_or_default(),
        }
    }
}

impl Tally {
    /// Adds a later interval.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.interval_ns == 0 {
            *self = other.clone();
            return;
        }
        self.until_ns = other.until_ns;
        self.backlog_bytes = self.backlog_bytes.max(other.backlog_bytes);
        self.offered_bits = (self.offered_bits.zip(other.offered_bits)).map(|(a, b)| a + b);
        self.peak_bit_s = self.peak_bit_s.max(other.peak_bit_s);
        self.delays.add(&other.delays);
        self.interval_ns = self.interval_ns.saturating_add(other.interval_ns);
        self.counted = self.counted.plus(&other.counted);
    }

    /// Returns the bit/s of the bytes that passed; `None`: no time.
    pub fn throughput_bit_s(&self) -> Option<f64> {
        let bits = self.counted.passed_bytes as f64 * 8.0;
        (self.interval_ns > 0).then(|| bits * 1e9 / self.interval_ns as f64)
    }

    /// Returns the bit/s of the fastest interval; `None`: no time.
    pub fn peak_bit_s(&self) -> Option<f64> {
        // If all intervals were cut short, that of all together.
        Some(self.throughput_bit_s()?.max(self.peak_bit_s))
    }

    /// Leaves the interval out of the peak: in the last milliseconds of a run a train of packets comes at
    /// many times the rate of the link.
    pub(crate) fn without_peak(self) -> Self {
        Self {
            peak_bit_s: 0.0,
            ..self
        }
    }

    /// Returns the mean rate of a trace; none: no time, no trace, or one without a limit.
    pub fn capacity_bit_s(&self) -> Option<f64> {
        let bits = self.offered_bits.filter(|_| self.interval_ns > 0)?;
        Some(bits * 1e9 / self.interval_ns as f64)
    }

    /// Returns the share lost on the wire of the packets that the loss could meet, without those that the queue dropped
    /// and those that passed without emulation.
    pub fn loss(&self) -> Option<Share> {
        Share::of(self.counted.lost, self.met())
    }

    /// Returns the same without its interval.
    pub fn loss_share(&self) -> Option<f64> {
        let met = self.met();
        (met > 0).then(|| (self.counted.lost as f64 / met as f64).min(1.0))
    }

    fn met(&self) -> u64 {
        self.counted.passed_packets + self.counted.lost
    }

    /// Returns the share dropped by the queue of all packets.
    pub fn drop_share(&self) -> Option<f64> {
        let Counted {
            packets, dropped, ..
        } = self.counted;
        // A class may drop a packet of an earlier interval.
        (packets > 0).then(|| (dropped as f64 / packets as f64).min(1.0))
    }
}

fn delays(sample: &DelaySample) -> Delays {
    let buckets = sample.buckets.iter();
    let buckets = buckets.map(|&[number, packets]| Bucket::of(number, packets));
    Delays::with_mean(buckets, sample.mean_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8,500 packets of a rule without a link pass, and the queue drops 500.
    #[test]
    fn the_loss_is_of_what_it_could_meet() {
        let counted = Counted {
            packets: 10_000,
            passed_packets: 900,
            dropped: 500,
            lost: 100,
            ..Counted::default()
        };
        let tally = Tally {
            counted,
            ..Tally::default()
        };
        assert_eq!(tally.loss_share(), Some(0.1));
        let loss = tally.loss().unwrap();
        assert!(loss.share == 0.1 && loss.interval[0] > 0.08 && loss.interval[1] < 0.13);
        assert_eq!(tally.drop_share(), Some(0.05));
        let later = Counted {
            packets: 1,
            dropped: 50,
            ..Counted::default()
        };
        let later = Tally {
            counted: later,
            ..Tally::default()
        };
        assert_eq!(later.drop_share(), Some(1.0));
    }
}
