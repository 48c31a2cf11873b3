// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED. S. Floyd, V. Jacobson: "Random early detection gateways for congestion avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993. Its second method: the distance between two
//! signals is uniform, not geometric.

use serde::{Deserialize, Serialize};

use super::fixed::{ONE, power, scale};
use super::{Aqm, AqmVerdict, Packet, signal};

/// Parameters of RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Average backlog from which packets are dropped.
    pub min: u64,
    /// And from which all are; above `min`.
    pub max: u64,
    /// Share dropped just below `max`, a fraction.
    pub probability: u64,
    /// How the average length of the queue follows the length.
    pub average: AverageFigures,
}

impl Figures {
    /// Validates figures of RED read from a file.
    pub fn is_consistent(&self) -> bool {
        self.min < self.max
            && self.max < 1 << 33
            && self.probability <= ONE
            && self.average.weight <= ONE
    }
}

/// How an average forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AverageFigures {
    /// Weight of the newest length, a fraction.
    pub weight: u64,
    /// The time that a small packet takes on the wire: an idle server counts as if these arrived.
    pub packet_ns: u64,
}

/// An exponentially weighted average of the backlog that packets find, times 2^16.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Average(u64);

const AVERAGE_SHIFT: u32 = 16;
const AVERAGE_MAX: u64 = (1 << 46) - 1;

impl Average {
    pub fn add(&mut self, figures: &AverageFigures, length: u64) {
        let length = length.min(AVERAGE_MAX) << AVERAGE_SHIFT;
        match length.checked_sub(self.0) {
            Some(more) => self.0 += scale(more, figures.weight),
            None => self.0 -= scale(self.0 - length, figures.weight),
        }
    }

    pub fn idle(&mut self, figures: &AverageFigures, idle_ns: u64) {
        let packet_ns = figures.packet_ns.max(1);
        let packets = u32::try_from(idle_ns / packet_ns).unwrap_or(u32::MAX);
        let part = ((idle_ns % packet_ns) << 20) / packet_ns;
        let rest = ONE - ((figures.weight * part) >> 20);
        let left = scale(power(ONE - figures.weight, packets), rest);
        self.0 = scale(self.0, left);
    }

    pub fn get(self) -> u64 {
        self.0 >> AVERAGE_SHIFT
    }
}

/// Draws with uniform distances: between 1 and 1/p packets, or, if it waits, between 1/p and 2/p.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spacing {
    /// Packets since the last signal, and one.
    count: u64,
    waits: bool,
}

/// Which packets an average length drops.
pub(super) enum Pressure {
    None,
    Some { probability: u64 },
    All,
}

impl Spacing {
    /// Returns the state of ns-2's `wait_`, its default.
    pub fn waiting() -> Self {
        Self {
            count: 0,
            waits: true,
        }
    }

    pub fn signals(&mut self, pressure: &Pressure, draw: u64) -> bool {
        let signals = match *pressure {
            Pressure::None => {
                self.count = 0;
                return false;
            }
            Pressure::Some { probability } => {
                // The first packet above `min` counts as number 0.
                let used = (self.count * probability).checked_sub(if self.waits { ONE } else { 0 });
                self.count += 1;
                used.is_some_and(|used| {
                    used >= ONE - probability || draw >> 32 < (probability << 32) / (ONE - used)
                })
            }
            Pressure::All => true,
        };
        if signals {
            self.count = 1;
        }
        signals
    }
}

/// Returns the share of `part` in `whole`, times 2^20, of a fraction.
pub(super) fn share_of(fraction: u64, part: u64, whole: u64) -> u64 {
    let share = (part << 20).checked_div(whole).unwrap_or(0);
    (fraction * share) >> 20
}

pub(super) fn pressure(figures: &Figures, average: u64) -> Pressure {
    if average < figures.min {
        return Pressure::None;
    }
    if average >= figures.max {
        return Pressure::All;
    }
    let (part, whole) = (average - figures.min, figures.max - figures.min);
    Pressure::Some {
        probability: share_of(figures.probability, part, whole),
    }
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Red {
    pub(super) figures: Figures,
    average: Average,
    spacing: Spacing,
}

impl Red {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures) -> Self {
        Self {
            figures,
            average: Average::default(),
            spacing: Spacing::default(),
        }
    }
}

impl Aqm for Red {
    /// Judges an arrival. A packet that a full queue drops counts, too.
    fn arrive(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        match backlog {
            0 => self.average.idle(&self.figures.average, packet.idle_ns),
            _ => self.average.add(&self.figures.average, backlog),
        }
        let pressure = pressure(&self.figures, self.average.get());
        signal(packet, self.spacing.signals(&pressure, packet.draw))
    }
}

impl Red {
    /// Returns the average of the backlog.
    pub fn average(&self) -> u64 {
        self.average.get()
    }
}
