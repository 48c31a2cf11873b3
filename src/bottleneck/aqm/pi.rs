// SPDX-License-Identifier: MIT OR Apache-2.0
//! PI. C. Hollot, V. Misra, D. Towsley, W. Gong: "On designing improved controllers for AQM routers
//! supporting TCP flows", INFOCOM 2001, as in ns-2 (queue/pi.cc): a proportional-integral controller
//! that samples the backlog at a fixed frequency,
//! p += a (q - target) - b (q_before - target).
//!
//! a and b differ by 0.3 %, so the sum is computed as (a - b) (q - target) + b (q - q_before).

use super::fixed::{Gains, ONE, length};
use super::{Aqm, AqmVerdict, Packet, signal, updates_due};

/// Parameters of PI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Length of the queue to settle at, as `limit` counts it.
    pub target: u64,
    /// Between two samples.
    pub tupdate_ns: u64,
    /// a - b and b.
    pub gains: Gains,
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Pi {
    pub(super) figures: Figures,
    next_ns: u64,
    before: i64,
    /// A fraction.
    probability: u64,
}

impl Pi {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures, now_ns: u64) -> Self {
        Self {
            figures,
            next_ns: now_ns + figures.tupdate_ns,
            before: 0,
            probability: 0,
        }
    }
}

impl Aqm for Pi {
    fn due_ns(&self) -> Option<u64> {
        Some(self.next_ns)
    }

    fn update(&mut self, backlog: u64) {
        let now = length(backlog);
        let error = now - length(self.figures.target);
        let change = self.figures.gains.change([error, now - self.before]);
        self.probability = (self.probability.saturating_add_signed(change)).min(ONE);
        self.before = now;
        self.next_ns += self.figures.tupdate_ns;
    }

    fn skip(&mut self, now_ns: u64, backlog: u64) {
        let updates = updates_due(self.next_ns, self.figures.tupdate_ns, now_ns);
        let now = length(backlog);
        let error = now - length(self.figures.target);
        let change = self.figures.gains.change([error, 0]);
        let change = change.saturating_mul(updates as i64);
        self.probability = (self.probability.saturating_add_signed(change)).min(ONE);
        self.before = now;
        self.next_ns += updates * self.figures.tupdate_ns;
    }

    fn arrive(&mut self, packet: &Packet, _backlog: u64) -> AqmVerdict {
        signal(packet, !packet.full && packet.draw >> 32 < self.probability)
    }
}

impl Pi {
    /// Returns the probability of a drop, a fraction.
    pub fn probability(&self) -> u64 {
        self.probability
    }
}
