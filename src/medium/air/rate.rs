// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rate a station sends unicast data at.

use serde::{Deserialize, Serialize};

use super::{Air, To};
use crate::medium::phy::Reach;

/// How stations choose the rate of unicast data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RateControl {
    /// Always their own.
    #[default]
    Fixed,
    /// Automatic rate fallback for each receiver, from their own on.
    Arf,
    /// The highest that the receiver decodes where it is.
    Ideal,
}

/// Successes in a row after which the next higher rate is tried.
const UP: u8 = 10;
/// Failures in a row after which the next lower rate is used.
const DOWN: u8 = 2;

/// Automatic rate fallback towards a receiver (Kamerman and Monteban 1997), without its timer: a
/// frame that fails at once after the rate has risen is enough to lower it again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fallback {
    mode: u8,
    successes: u8,
    failures: u8,
    /// The next frame is the first one at this rate after a rise.
    probes: bool,
}

impl Fallback {
    fn new(mode: usize) -> Self {
        Self {
            mode: mode as u8,
            successes: 0,
            failures: 0,
            probes: false,
        }
    }

    fn result(&mut self, success: bool, fastest: usize) {
        let probed = std::mem::take(&mut self.probes);
        if success {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            if self.successes >= UP && usize::from(self.mode) < fastest {
                self.mode += 1;
                self.successes = 0;
                self.probes = true;
            }
        } else {
            self.successes = 0;
            self.failures += 1;
            if probed || self.failures >= DOWN {
                self.mode = self.mode.saturating_sub(1);
                self.failures = 0;
            }
        }
    }
}

impl<T: Clone> Air<T> {
    /// Returns what a station knows of each receiver; nothing, if it does not need it.
    pub(super) fn fallbacks(control: RateControl, mode: usize, stations: usize) -> Vec<Fallback> {
        match control {
            RateControl::Arf => vec![Fallback::new(mode); stations],
            RateControl::Fixed | RateControl::Ideal => Vec::new(),
        }
    }

    /// The mode of unicast data to a receiver.
    pub(super) fn mode_to(&self, station: usize, to: u16) -> usize {
        let this = &self.stations[station];
        match self.plan.rate {
            RateControl::Fixed => this.mode,
            RateControl::Arf => usize::from(this.fallbacks[usize::from(to)].mode),
            RateControl::Ideal => {
                let reach = self.matrix.reach(station as u16, to);
                let modes = 0..=self.plan.timing.fastest();
                let highest = |reach: &_| modes.rev().find(|mode| Reach::decodes(reach, *mode));
                reach.and_then(highest).unwrap_or(this.mode)
            }
        }
    }

    /// The first packet of a station was acknowledged, or its data was not. An RTS without an
    /// answer is no result: it has a basic rate.
    pub(super) fn rate_result(&mut self, station: usize, success: bool) {
        let fastest = self.plan.timing.fastest();
        let this = &mut self.stations[station];
        if let Some(To::Station(to)) = this.queue.front().map(|first| first.frame.to)
            && let Some(fallback) = this.fallbacks.get_mut(usize::from(to))
        {
            fallback.result(success, fastest);
        }
    }
}
