// SPDX-License-Identifier: MIT OR Apache-2.0
//! A-RED. S. Floyd, R. Gummadi, S. Shenker: "Adaptive RED: an algorithm for increasing the
//! robustness of RED's active queue management", 2001. RED whose probability follows the average
//! backlog towards the middle of the two thresholds, with the paper's gentle slope above `max`: from
//! that probability to 1 at twice `max`.
//!
//! As in ns-2 (queue/red.cc, with its defaults), which the paper's figures are from: the probability
//! moves with the first packet that arrives more than an interval after the last move and finds an
//! average outside of the target range, and two signals are at least 1/p packets apart.

use super::fixed::{ONE, scale};
use super::red::{Average, Pressure, Spacing, pressure, share_of};
use super::{Aqm, AqmVerdict, Packet, RedFigures, signal};

/// The paper's bounds of the probability, fractions: 0.01 and 0.5.
pub const BOTTOM: u64 = ONE / 100;
pub const TOP: u64 = ONE / 2;

/// Parameters of A-RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// RED's parameters; its probability is the first one.
    pub red: RedFigures,
    /// Least time between two changes of the probability, ns.
    pub interval_ns: u64,
    /// Added to the probability, but at most a quarter of it; a fraction.
    pub alpha: u64,
    /// Factor of a decrease of the probability, a fraction.
    pub beta: u64,
}

/// The manager of one queue.
#[derive(Debug, Clone)]
pub struct Ared {
    pub(super) figures: Figures,
    average: Average,
    spacing: Spacing,
    /// At `max`, a fraction.
    probability: u64,
    /// Where the slope above `max` begins, if it does not move.
    fixed_slope: Option<u64>,
    moved_ns: u64,
}

impl Ared {
    /// Creates a manager of an empty queue.
    pub fn new(figures: Figures, now_ns: u64) -> Self {
        Self {
            figures,
            average: Average::default(),
            spacing: Spacing::waiting(),
            probability: figures.red.probability,
            fixed_slope: None,
            moved_ns: now_ns,
        }
    }

    /// Changes the probability: additive increase, multiplicative decrease.
    fn adapt(&mut self, now_ns: u64) {
        let (red, average) = (&self.figures.red, self.average.get());
        // Two fifths of the range on either side of the target range.
        let part = (red.max - red.min) * 2 / 5;
        if now_ns <= self.moved_ns + self.figures.interval_ns {
            return;
        }
        if average < red.min + part && self.probability > BOTTOM {
            self.probability = scale(self.probability, self.figures.beta);
        } else if average > red.max - part && self.probability < TOP {
            self.probability += self.figures.alpha.min(self.probability / 4);
        } else {
            return;
        }
        self.moved_ns = now_ns;
    }

    fn pressure(&self) -> Pressure {
        let (average, red) = (self.average.get(), &self.figures.red);
        if average < red.max {
            let now = RedFigures {
                probability: self.probability,
                ..*red
            };
            return pressure(&now, average);
        }
        if average >= 2 * red.max {
            return Pressure::All;
        }
        let begin = self.fixed_slope.unwrap_or(self.probability);
        Pressure::Some {
            probability: begin + share_of(ONE - begin, average - red.max, red.max),
        }
    }
}

impl Aqm for Ared {
    fn arrive(&mut self, packet: &Packet, backlog: u64) -> AqmVerdict {
        match backlog {
            0 => (self.average).idle(&self.figures.red.average, packet.idle_ns),
            _ => self.average.add(&self.figures.red.average, backlog),
        }
        self.adapt(packet.now_ns);
        let pressure = self.pressure();
        signal(packet, self.spacing.signals(&pressure, packet.draw))
    }
}

impl Ared {
    /// Returns the probability of a drop at `max`, a fraction.
    pub fn probability(&self) -> u64 {
        self.probability
    }

    /// Uses the slope above `max` of ns-2: red.cc computes it at the start and never again
    /// (REDQueue::reset(), updateMaxP()), so it begins at the first probability, whatever that has become.
    #[must_use]
    pub fn with_slope_of_ns2(mut self) -> Self {
        self.fixed_slope = Some(self.figures.red.probability);
        self
    }
}
