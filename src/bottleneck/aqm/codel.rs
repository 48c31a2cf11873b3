// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel. K. Nichols, V. Jacobson, A. McGregor, J. Iyengar: "Controlled delay active queue
//! management", RFC 8289. It judges at the head of the queue.

use super::fixed::over_sqrt;
use super::{Aqm, AqmVerdict, Packet, signal};

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Wait that is accepted, ns.
    pub target_ns: u64,
    /// Time for which the wait may exceed the target before the first drop, ns.
    pub interval_ns: u64,
    /// Length of a full packet: a queue of no more is spared.
    pub packet: u64,
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct CoDel {
    pub(super) figures: Figures,
    /// When the sojourn time will have been above the target for an interval.
    above_until_ns: Option<u64>,
    next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// A packet was dropped: the next one above the target moves `next_ns` on.
    owes: bool,
}

impl CoDel {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures) -> Self {
        Self {
            figures,
            above_until_ns: None,
            next_ns: 0,
            count: 0,
            last_count: 0,
            dropping: false,
            owes: false,
        }
    }

    /// Returns whether the sojourn time has been above the target for an interval.
    fn is_above(&mut self, packet: &Packet, backlog: u64) -> bool {
        if packet.sojourn_ns < self.figures.target_ns || backlog <= self.figures.packet {
            self.above_until_ns = None;
            return false;
        }
        let first = packet.now_ns + self.figures.interval_ns;
        let known = self.above_until_ns.is_some();
        known & (packet.now_ns >= *self.above_until_ns.get_or_insert(first))
    }

    fn begin(&mut self, now_ns: u64) {
        let since = self.count.wrapping_sub(self.last_count);
        let recent = now_ns < self.next_ns + 16 * self.figures.interval_ns;
        self.count = if since > 1 && recent { since } else { 1 };
        self.last_count = self.count;
        self.next_ns = now_ns;
        self.dropping = true;
        self.move_on();
    }

    fn move_on(&mut self) {
        self.next_ns += over_sqrt(self.figures.interval_ns, self.count);
        self.owes = false;
    }

    fn signals(&mut self, packet: &Packet, backlog: u64) -> bool {
        if !self.is_above(packet, backlog) {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            self.begin(packet.now_ns);
            return true;
        }
        if self.owes {
            self.move_on();
        }
        if packet.now_ns < self.next_ns {
            return false;
        }
        self.count = self.count.wrapping_add(1).max(1);
        match packet.capable {
            true => self.move_on(),
            false => self.owes = true,
        }
        true
    }
}

impl Aqm for CoDel {
    fn depart(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        signal(packet, self.signals(packet, backlog))
    }
}
