// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIE. R. Pan, P. Natarajan, F. Baker, G. White: "Proportional integral controller enhanced",
//! RFC 8033, with a delay that is known from the backlog and the rate.

use super::fixed::{LENGTH_MAX, scale};
use super::{Aqm, AqmVerdict, Packet, signal, updates_due};

/// Probabilities are times 2^48, gains a further 2^6 and per ns.
const SHIFT: u32 = 48;
const GAIN_SHIFT: u32 = 6;
const ONE: u64 = 1 << SHIFT;
const BURST_NS: u64 = 150_000_000;

/// Parameters of PIE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Wait to settle at, ns.
    pub target_ns: u64,
    /// Time between two changes of the probability, ns.
    pub tupdate_ns: u64,
    /// Weight of the distance from the target, a [`gain`].
    pub alpha: u64,
    /// Weight of the change since the last update, a [`gain`].
    pub beta: u64,
    /// Length of two packets of mean size: a shorter queue is spared.
    pub packets: u64,
    /// ns that a unit of length takes on the wire, times 2^32.
    pub unit_ns: u64,
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Pie {
    pub(super) figures: Figures,
    next_ns: u64,
    probability: u64,
    accumulated: u64,
    before_ns: u64,
    /// Rest of the burst allowance in ns: no drop until it is used.
    burst_ns: u64,
}

/// Converts a gain per second to the fixed-point gain per ns of the figures.
pub fn gain(per_s: f64) -> u64 {
    (per_s / 1e9 * 2f64.powi((SHIFT + GAIN_SHIFT) as i32)).round() as u64
}

/// Returns the change in smaller steps for small probabilities.
fn tuned(change: i64, probability: u64) -> i64 {
    const STEPS: [(u64, u32); 6] = [
        (1_000_000, 11),
        (100_000, 9),
        (10_000, 7),
        (1_000, 5),
        (100, 3),
        (10, 1),
    ];
    let step = STEPS.iter().find(|(part, _)| probability < ONE / part);
    match step {
        Some((_, shift)) => change >> shift,
        None => change.min((ONE / 50) as i64),
    }
}

impl Pie {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures, now_ns: u64) -> Self {
        Self {
            figures,
            next_ns: now_ns + figures.tupdate_ns,
            probability: 0,
            accumulated: 0,
            before_ns: 0,
            burst_ns: BURST_NS,
        }
    }

    fn delay_ns(&self, backlog: u64) -> u64 {
        scale(backlog.min(LENGTH_MAX), self.figures.unit_ns).min(LENGTH_MAX)
    }

    fn signals(&mut self, packet: &Packet, backlog: u64) -> bool {
        let half_ns = self.figures.target_ns / 2;
        let calm = self.before_ns < half_ns;
        if self.probability == 0 && calm && self.delay_ns(backlog) < half_ns {
            self.burst_ns = BURST_NS;
        }
        let spared = (calm && self.probability < ONE / 5) || backlog <= self.figures.packets;
        if self.burst_ns > 0 || spared {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        self.accumulated += self.probability;
        let surely = self.accumulated >= ONE * 17 / 2;
        let never = self.accumulated < ONE * 17 / 20;
        if never || (!surely && packet.draw >> (64 - SHIFT) >= self.probability) {
            return false;
        }
        self.accumulated = 0;
        true
    }
}

impl Aqm for Pie {
    fn due_ns(&self) -> Option<u64> {
        Some(self.next_ns)
    }

    fn update(&mut self, backlog: u64) {
        let delay_ns = self.delay_ns(backlog);
        let gain = |gain: u64, ns: i64| i128::from(gain) * i128::from(ns);
        let error = gain(
            self.figures.alpha,
            delay_ns as i64 - self.figures.target_ns as i64,
        );
        let trend = gain(self.figures.beta, delay_ns as i64 - self.before_ns as i64);
        let change = ((error + trend) >> GAIN_SHIFT) as i64;
        let mut probability = self.probability as i64 + tuned(change, self.probability);
        if delay_ns == 0 && self.before_ns == 0 {
            probability -= probability >> 6;
        }
        self.probability = probability.clamp(0, ONE as i64) as u64;
        self.before_ns = delay_ns;
        self.burst_ns = self.burst_ns.saturating_sub(self.figures.tupdate_ns);
        self.next_ns += self.figures.tupdate_ns;
    }

    /// Skips the updates that are due. After so long, the probability of an empty queue is 0.
    fn skip(&mut self, now_ns: u64, backlog: u64) {
        if backlog == 0 {
            self.probability = 0;
        }
        let updates = updates_due(self.next_ns, self.figures.tupdate_ns, now_ns);
        self.next_ns += updates * self.figures.tupdate_ns;
    }

    /// Judges an arrival; it drops instead of marking at a high probability, where marks do not help.
    fn arrive(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        let signals = !packet.full && self.signals(packet, backlog);
        let marks = Packet {
            capable: packet.capable && self.probability < ONE / 10,
            ..*packet
        };
        signal(&marks, signals)
    }
}
