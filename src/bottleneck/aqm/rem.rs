// SPDX-License-Identifier: MIT OR Apache-2.0
//! REM. S. Athuraliya, S. Low, V. Li, Q. Yin: "REM: active queue management", IEEE Network 15(3),
//! 2001, as in ns-2 (queue/rem.cc): a price that rises with the backlog above a target and with the
//! arrivals above the capacity,
//! price = max(0, price + gamma (alpha (q - target) + arrived - capacity)),
//! and from it the probability 1 - phi^-price.
//!
//! The price is kept times ln(phi), so that the probability is 1 - exp(-price).

use super::fixed::{Gains, NATS_MAX, length, not_exp};
use super::{Aqm, AqmVerdict, Packet, signal, updates_due};

/// Parameters of REM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Length of the queue to settle at, as `limit` counts it.
    pub target: u64,
    /// Between two changes of the price.
    pub tupdate_ns: u64,
    /// Bytes that the server can send in that time.
    pub capacity: u64,
    /// gamma alpha ln(phi) and gamma ln(phi).
    pub gains: Gains,
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Rem {
    pub(super) figures: Figures,
    next_ns: u64,
    /// Since the last change of the price, with what was not let in.
    arrived: u64,
    /// Times ln(phi) and 2^32.
    price: u64,
    /// A fraction.
    probability: u64,
}

impl Rem {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures, now_ns: u64) -> Self {
        Self {
            figures,
            next_ns: now_ns + figures.tupdate_ns,
            arrived: 0,
            price: 0,
            probability: 0,
        }
    }
}

impl Aqm for Rem {
    fn due_ns(&self) -> Option<u64> {
        Some(self.next_ns)
    }

    fn update(&mut self, backlog: u64) {
        let above = length(backlog) - length(self.figures.target);
        let more = length(self.arrived) - length(self.figures.capacity);
        let change = self.figures.gains.change([above, more]);
        self.price = (self.price.saturating_add_signed(change)).min(NATS_MAX);
        self.probability = not_exp(self.price);
        self.arrived = 0;
        self.next_ns += self.figures.tupdate_ns;
    }

    fn skip(&mut self, now_ns: u64, backlog: u64) {
        let updates = updates_due(self.next_ns, self.figures.tupdate_ns, now_ns);
        let above = length(backlog) - length(self.figures.target);
        let more = -length(self.figures.capacity);
        let change = self.figures.gains.change([above, more]);
        let change = change.saturating_mul(updates as i64);
        self.price = (self.price.saturating_add_signed(change)).min(NATS_MAX);
        self.probability = not_exp(self.price);
        self.next_ns += updates * self.figures.tupdate_ns;
    }

    fn arrive(&mut self, packet: &Packet, _backlog: u64) -> AqmVerdict {
        self.arrived = self.arrived.saturating_add(packet.size);
        signal(packet, !packet.full && packet.draw >> 32 < self.probability)
    }
}

impl Rem {
    /// Returns the probability of a drop, a fraction.
    pub fn probability(&self) -> u64 {
        self.probability
    }
}
