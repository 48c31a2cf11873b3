// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a direction of a link did in one interval or in many.

use emud_monitor::log::{DelaySample, Sample};
use serde::Serialize;

use super::estimate::CONFIDENCE;
use crate::histogram::{Bucket, Delays};
use crate::verify::clopper_pearson;

/// Samples added up. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// From the beginning of the first interval to the end of the last.
    pub from_ns: u64,
    pub until_ns: u64,
    /// Of all intervals together.
    pub interval_ns: u64,
    pub packets: u64,
    pub passed_packets: u64,
    pub passed_bytes: u64,
    pub lost: u64,
    pub dropped: u64,
    pub marked: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    pub untouched: u64,
    pub late: u64,
    pub engine_dropped: u64,
    /// The largest at the end of an interval; none: no queue.
    pub backlog_bytes: Option<u64>,
    /// The fastest interval.
    pub peak_bit_s: f64,
    /// Given to packets.
    pub delays: Delays,
}

/// A share of packets, with the interval in which that of the link lies (Clopper-Pearson).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    pub share: f64,
    pub interval: [f64; 2],
}

impl Share {
    /// None: of none.
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
        let bit_s = s.passed_bytes as f64 * 8e9 / s.interval_ns.max(1) as f64;
        Self {
            from_ns: s.mono_ns.saturating_sub(s.interval_ns),
            until_ns: s.mono_ns,
            interval_ns: s.interval_ns,
            packets: s.packets,
            passed_packets: s.passed_packets,
            passed_bytes: s.passed_bytes,
            lost: s.lost,
            dropped: s.dropped,
            marked: s.marked,
            duplicated: s.duplicated,
            corrupted: s.corrupted,
            untouched: s.untouched,
            late: s.late,
            engine_dropped: s.engine_dropped,
            backlog_bytes: s.backlog_bytes,
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
        self.peak_bit_s = self.peak_bit_s.max(other.peak_bit_s);
        self.delays.add(&other.delays);
        let counts = [
            (&mut self.interval_ns, other.interval_ns),
            (&mut self.packets, other.packets),
            (&mut self.passed_packets, other.passed_packets),
            (&mut self.passed_bytes, other.passed_bytes),
            (&mut self.lost, other.lost),
            (&mut self.dropped, other.dropped),
            (&mut self.marked, other.marked),
            (&mut self.duplicated, other.duplicated),
            (&mut self.corrupted, other.corrupted),
            (&mut self.untouched, other.untouched),
            (&mut self.late, other.late),
            (&mut self.engine_dropped, other.engine_dropped),
        ];
        for (sum, more) in counts {
            *sum = sum.saturating_add(more);
        }
    }

    /// Of the bytes that were let through; none: no time.
    pub fn throughput_bit_s(&self) -> Option<f64> {
        let bits = self.passed_bytes as f64 * 8.0;
        (self.interval_ns > 0).then(|| bits * 1e9 / self.interval_ns as f64)
    }

    /// Lost on the wire, of the packets that the queue did not drop: those the loss could meet.
    pub fn loss(&self) -> Option<Share> {
        Share::of(self.lost, self.packets.saturating_sub(self.dropped))
    }

    /// The same without its interval.
    pub fn loss_share(&self) -> Option<f64> {
        let met = self.packets.saturating_sub(self.dropped);
        (met > 0).then(|| (self.lost as f64 / met as f64).min(1.0))
    }

    /// Dropped by the queue, of all packets.
    pub fn drop_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.dropped as f64 / self.packets as f64)
    }
}

fn delays(sample: &DelaySample) -> Delays {
    let buckets = sample.buckets.iter();
    let buckets = buckets.map(|&[number, packets]| Bucket::of(number, packets));
    Delays::with_mean(buckets, sample.mean_ns as f64)
}
