// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate control by statistics, as Minstrel of mac80211 (Smithies and Fietkau, 2005 to 2010).
//!
//! For each receiver and rate the probability of success is a moving average over intervals of 50 ms.
//! The rates of most throughput, of second most, and of most success are tried in this order. One frame in
//! ten tries another rate: a faster one at once, a slower one only where the best has failed.

use crate::medium::phy::Timing;

const INTERVAL_NS: u64 = 50_000_000;
/// Weight of what was before an interval.
const KEPT: f64 = 0.75;
const FRAMES_PER_SAMPLE: u32 = 10;
/// Throughput is that of packets of this size.
const BYTES: u32 = 1200;
/// Some losses are those of collisions: a rate does not get better above, and has none below.
const BEST: f64 = 0.9;
const WORST: f64 = 0.1;
/// Of those that nearly always succeed, the fastest has "most success".
const SAFE: f64 = 0.95;
/// Attempts at one rate.
const TRIES: u32 = 2;

/// Statistics of a rate.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    mode: u8,
    /// In this interval.
    attempts: u32,
    successes: u32,
    /// None before the first attempt.
    probability: Option<f64>,
    /// Duration of a packet with its acknowledgement, ns.
    lasts_ns: u64,
}

impl Rate {
    fn throughput(&self) -> f64 {
        match self.probability {
            Some(probability) if probability >= WORST => {
                probability.min(BEST) / self.lasts_ns as f64
            }
            _ => 0.0,
        }
    }
}

/// Statistics of a station about a receiver.
#[derive(Debug)]
pub(super) struct Minstrel {
    rates: Box<[Rate]>,
    /// Indices in `rates`.
    best: usize,
    second: usize,
    safest: usize,
    until_ns: u64,
    frames: u32,
    /// The rate that the last sample tried, by its index.
    last_sample: usize,
    /// Of the packet that is being sent.
    sample: Option<usize>,
    /// A packet is chosen for and not sent yet: one that did not fit into a TXOP is chosen for again, and would
    /// take the sample along.
    is_pending: bool,
}

impl Minstrel {
    /// Begins with the slowest rate.
    pub fn new(timing: &Timing) -> Self {
        let rate = |mode| Rate {
            mode: mode as u8,
            lasts_ns: timing.data_ns(BYTES, mode) + timing.sifs_ns + timing.ack_ns(mode),
            ..Rate::default()
        };
        Self {
            rates: timing.data_modes().map(rate).collect(),
            best: 0,
            second: 0,
            safest: 0,
            until_ns: 0,
            frames: 0,
            last_sample: 0,
            sample: None,
            is_pending: false,
        }
    }

    /// Returns the mode of the next attempt of a packet, and whether it is a sample.
    pub fn choose(&mut self, tries: u32, now_ns: u64) -> (usize, bool) {
        if now_ns >= self.until_ns {
            self.update();
            self.until_ns = now_ns + INTERVAL_NS;
        }
        if tries == 0 && !std::mem::replace(&mut self.is_pending, true) {
            self.frames += 1;
            self.sample = match self.frames.is_multiple_of(FRAMES_PER_SAMPLE) {
                true => self.next_sample(),
                false => None,
            };
        }
        let sample = self.sample.filter(|sample| {
            let is_faster = self.rates[*sample].lasts_ns < self.rates[self.best].lasts_ns;
            tries == if is_faster { 0 } else { TRIES }
        });
        let chosen = match (sample, tries / TRIES) {
            (Some(sample), _) => sample,
            (None, 0) => self.best,
            (None, 1) => self.second,
            (None, _) => self.safest,
        };
        (usize::from(self.rates[chosen].mode), sample.is_some())
    }

    /// Returns the next rate in turn that is not in use.
    fn next_sample(&mut self) -> Option<usize> {
        for _ in 0..self.rates.len() {
            // Not ascending, so that one that is much faster is not tried last.
            let next = (self.last_sample + self.stride()) % self.rates.len();
            self.last_sample = next;
            let is_known = next == self.second && self.rates[next].throughput() > 0.0;
            if next != self.best && !is_known {
                return Some(next);
            }
        }
        None
    }

    /// Returns a step that reaches all rates.
    fn stride(&self) -> usize {
        match self.rates.len() % 3 {
            0 => 1,
            _ => 3,
        }
    }

    /// Counts `attempts` packets sent in a mode, and `successes` of them acknowledged.
    pub fn result(&mut self, mode: usize, attempts: u32, successes: u32) {
        self.is_pending = false;
        let mut rates = self.rates.iter_mut();
        if let Some(rate) = rates.find(|rate| usize::from(rate.mode) == mode) {
            rate.attempts += attempts;
            rate.successes += successes;
        }
    }

    fn update(&mut self) {
        for rate in &mut self.rates {
            if rate.attempts == 0 {
                continue;
            }
            let now = f64::from(rate.successes) / f64::from(rate.attempts);
            rate.probability = Some(match rate.probability {
                Some(before) => before * KEPT + now * (1.0 - KEPT),
                None => now,
            });
            (rate.attempts, rate.successes) = (0, 0);
        }
        let throughput = |n: usize| self.rates[n].throughput();
        let faster = |a: usize, b: usize| if throughput(b) > throughput(a) { b } else { a };
        let all = 0..self.rates.len();
        self.best = all.clone().reduce(faster).unwrap_or(0);
        let others = all.clone().filter(|n| *n != self.best);
        self.second = others.reduce(faster).unwrap_or(self.best);
        let success = |n: usize| self.rates[n].probability.unwrap_or(0.0);
        let safer = |a: usize, b: usize| match (success(a) >= SAFE, success(b) >= SAFE) {
            (true, true) => faster(a, b),
            _ if success(b) > success(a) => b,
            _ => a,
        };
        self.safest = all.reduce(safer).unwrap_or(0);
    }
}
