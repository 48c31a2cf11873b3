// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rate a station sends unicast data at.

use serde::{Deserialize, Serialize};

use super::minstrel::Minstrel;
use super::{Air, To};
use crate::medium::phy::{Reach, Timing};

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
    /// By statistics, for each receiver.
    Minstrel,
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

    fn result(&mut self, success: bool, timing: &Timing) {
        let probed = std::mem::take(&mut self.probes);
        let mode = usize::from(self.mode);
        if success {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            let faster = timing.data_modes().find(|other| *other > mode);
            if let Some(faster) = faster.filter(|_| self.successes >= UP) {
                self.mode = faster as u8;
                self.successes = 0;
                self.probes = true;
            }
        } else {
            self.successes = 0;
            self.failures += 1;
            if probed || self.failures >= DOWN {
                let slower = timing.data_modes().rfind(|other| *other < mode);
                self.mode = slower.unwrap_or(mode) as u8;
                self.failures = 0;
            }
        }
    }
}

/// State of a station's rate control for each receiver.
#[derive(Debug)]
pub(super) enum Rates {
    /// None: the rate control needs no state.
    None,
    Arf(Vec<Fallback>),
    /// Of those that it has sent to.
    Minstrel(Vec<Option<Minstrel>>),
}

impl Rates {
    pub fn new(control: RateControl, mode: usize, stations: usize) -> Self {
        match control {
            RateControl::Fixed | RateControl::Ideal => Self::None,
            RateControl::Arf => Self::Arf(vec![Fallback::new(mode); stations]),
            RateControl::Minstrel => Self::Minstrel((0..stations).map(|_| None).collect()),
        }
    }
}

impl<T: Clone> Air<T> {
    /// Returns the mode of unicast data to a receiver after `tries` attempts, and whether the packet is sent
    /// alone, because it tries this mode.
    pub(super) fn mode_to(&mut self, station: usize, to: u16, tries: u32) -> (usize, bool) {
        let timing = &self.plan.timing;
        let this = &mut self.stations[station];
        match &mut this.rates {
            Rates::Arf(receivers) => (receivers[usize::from(to)].mode.into(), false),
            Rates::Minstrel(receivers) => {
                let receiver = &mut receivers[usize::from(to)];
                let receiver = receiver.get_or_insert_with(|| Minstrel::new(timing));
                receiver.choose(tries, self.now_ns)
            }
            Rates::None if self.plan.rate == RateControl::Ideal => {
                let reach = self.matrix.reach(station as u16, to);
                let modes = timing.data_modes();
                let highest = |reach: &_| modes.rev().find(|mode| Reach::decodes(reach, *mode));
                (reach.and_then(highest).unwrap_or(this.mode), false)
            }
            Rates::None => (this.mode, false),
        }
    }

    /// Takes the number of acknowledged packets of a station's data frame.
    pub(super) fn rate_result(&mut self, station: usize, acknowledged: u32) {
        let this = &mut self.stations[station];
        let (data, timing) = (&this.data, &self.plan.timing);
        let To::Station(to) = data.to else { return };
        let to = usize::from(to);
        match &mut this.rates {
            Rates::None => {}
            Rates::Arf(receivers) => receivers[to].result(acknowledged > 0, timing),
            Rates::Minstrel(receivers) => {
                if let Some(receiver) = &mut receivers[to] {
                    receiver.result(data.mode, data.packets, acknowledged);
                }
            }
        }
    }
}
