// SPDX-License-Identifier: MIT OR Apache-2.0
//! RIO. D. Clark, W. Fang: "Explicit allocation of best-effort packet delivery service",
//! IEEE/ACM Transactions on Networking 6(4), 1998. Two REDs on one queue: an assured packet is
//! judged by the average backlog of assured packets, any other packet by that of all packets.
//!
//! The average of all packets moves with each packet, as in the paper; ns-2's (queue/rio.cc) does
//! not move with the best-effort ones, which its authors note as a bug.

use super::red::{Average, Figures as RedFigures, Spacing, pressure};
use super::{Aqm, AqmVerdict, Packet, signal};

/// Parameters of RIO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Thresholds for packets without assurance.
    pub best_effort: RedFigures,
    /// Its average has the weight of the other one.
    pub assured: RedFigures,
    /// Which packets are assured: bit n is DSCP n.
    pub codes: u64,
}

impl Figures {
    fn is_assured(&self, packet: &Packet) -> bool {
        self.codes >> (packet.dscp & 63) & 1 == 1
    }
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Rio {
    pub(super) figures: Figures,
    all: Average,
    assured: Average,
    all_spacing: Spacing,
    assured_spacing: Spacing,
    /// Bytes of the assured packets in the queue, each counted as a whole until it leaves.
    assured_backlog: u64,
}

impl Rio {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures) -> Self {
        Self {
            figures,
            all: Average::default(),
            assured: Average::default(),
            all_spacing: Spacing::default(),
            assured_spacing: Spacing::default(),
            assured_backlog: 0,
        }
    }

    fn count_backlogs(&mut self, packet: &Packet, backlog: u64, is_assured: bool) {
        let average = &self.figures.best_effort.average;
        if backlog == 0 {
            self.all.idle(average, packet.idle_ns);
            self.assured.idle(average, packet.idle_ns);
            return;
        }
        self.all.add(average, backlog);
        if is_assured {
            self.assured.add(average, self.assured_backlog);
        }
    }
}

impl Aqm for Rio {
    fn arrive(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        let is_assured = self.figures.is_assured(packet);
        self.count_backlogs(packet, backlog, is_assured);
        let (figures, average, spacing) = match is_assured {
            true => (
                &self.figures.assured,
                self.assured,
                &mut self.assured_spacing,
            ),
            false => (&self.figures.best_effort, self.all, &mut self.all_spacing),
        };
        let pressure = pressure(figures, average.get());
        let verdict = signal(packet, spacing.signals(&pressure, packet.draw));
        if is_assured && !packet.full && verdict != AqmVerdict::Drop {
            self.assured_backlog += packet.size;
        }
        verdict
    }

    fn depart(&mut self, packet: &Packet, _backlog: u64) -> AqmVerdict {
        self.discard(packet);
        AqmVerdict::Pass
    }

    fn recount(&mut self, waiting: &mut dyn Iterator<Item = Packet>) {
        let assured = waiting.filter(|packet| self.figures.is_assured(packet));
        self.assured_backlog = assured.map(|packet| packet.size).sum();
    }

    fn discard(&mut self, packet: &Packet) {
        if self.figures.is_assured(packet) {
            self.assured_backlog = self.assured_backlog.saturating_sub(packet.size);
        }
    }
}

impl Rio {
    /// Returns the backlog of the assured packets in the queue.
    pub fn assured_backlog(&self) -> u64 {
        self.assured_backlog
    }
}
