// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access categories: what the packets of one kind contend with.
//!
//! DCF has one. EDCA (IEEE 802.11-2020, 10.23.2) has four in each station, which contend as if each
//! were a station; of two that may send at the same instant the more urgent one does, and
//! the other one has collided. An EDCA backoff counts the beginning of a slot, DCF its end (10.23.2.4): that is
//! DCF with a gap that is a slot shorter, and a backoff that is a slot longer.

use super::countdown::Countdown;
use super::settle::Attempt;
use super::{Access, Air, Discipline, Plan};
use crate::medium::phy::Timing;
use crate::medium::set::Set;

/// Categories of EDCA.
const EDCA: usize = 4;

/// Parameters of a category, as mac80211 sets them without an access point
/// (`ieee80211_set_wmm_default`).
struct Figures {
    /// Slots after SIFS.
    aifsn: u64,
    /// The windows of DCF, plus 1, divided by these.
    first_by: u32,
    last_by: u32,
    /// DSSS and OFDM, ns; 0: one exchange.
    txop_ns: [u64; 2],
}

/// Voice, video, best effort, background. None: the last window is that of DCF, not its first one.
const FIGURES: [Figures; EDCA] = [
    Figures {
        aifsn: 2,
        first_by: 4,
        last_by: 2,
        txop_ns: [3_264_000, 1_504_000],
    },
    Figures {
        aifsn: 2,
        first_by: 2,
        last_by: 1,
        txop_ns: [6_016_000, 3_008_000],
    },
    Figures {
        aifsn: 3,
        first_by: 1,
        last_by: 0,
        txop_ns: [0, 0],
    },
    Figures {
        aifsn: 7,
        first_by: 1,
        last_by: 0,
        txop_ns: [0, 0],
    },
];

/// A category of all stations.
#[derive(Debug)]
pub(super) struct Category {
    /// From an idle medium to where slots count.
    pub gap_ns: u64,
    /// The same after a frame that could not be decoded.
    pub extended_gap_ns: u64,
    /// Slots that each backoff has in addition.
    pub lead: u16,
    pub cw_min: u32,
    pub cw_max: u32,
    /// How long a station may use the medium after an access; 0: for one exchange.
    pub txop_ns: u64,
    /// Stations with a packet, or a backoff that is not over.
    pub wants: Set,
    pub countdown: Countdown,
}

impl Category {
    fn new(stations: usize, timing: &Timing, gap_ns: u64) -> Self {
        Self {
            gap_ns,
            extended_gap_ns: gap_ns + timing.eifs_ns - timing.difs_ns,
            lead: 0,
            cw_min: timing.cw_min,
            cw_max: timing.cw_max,
            txop_ns: 0,
            wants: Set::new(stations),
            countdown: Countdown::new(stations, timing.slot_ns, timing.cca_ns),
        }
    }

    /// Returns those of a medium.
    pub fn all(stations: usize, plan: &Plan) -> Vec<Self> {
        let timing = &plan.timing;
        let of = |figures: &Figures| {
            let part = |by| (timing.cw_min + 1).div_ceil(by) - 1;
            let last = Some(figures.last_by).filter(|by| *by > 0).map(part);
            let gap_ns = timing.sifs_ns + (figures.aifsn - 1) * timing.slot_ns;
            Self {
                lead: 1,
                cw_min: part(figures.first_by),
                cw_max: last.unwrap_or(timing.cw_max),
                txop_ns: figures.txop_ns[usize::from(timing.is_ofdm())],
                ..Self::new(stations, timing, gap_ns)
            }
        };
        match (plan.discipline, plan.access) {
            (Discipline::Edca, Access::Dcf) => FIGURES.iter().map(of).collect(),
            _ => vec![Self::new(stations, timing, timing.difs_ns)],
        }
    }
}

/// Returns the user priority of a DS field: its precedence, but for the classes that RFC 8325 moves
/// (`cfg80211_classify8021d`).
fn user_priority(ds: u8) -> u8 {
    match ds >> 2 {
        10 | 12 | 14 | 16 => 0,
        18 | 20 | 22 => 3,
        24 | 26 | 28 | 30 => 4,
        44 | 46 => 6,
        dscp => dscp >> 3,
    }
}

/// Returns the category of a DS field: 802.1D's user priorities 1 and 2 are background, 0 and 3 best effort, 4
/// and 5 video, 6 and 7 voice.
fn of_field(ds: u8) -> usize {
    const CATEGORY: [usize; 8] = [2, 3, 3, 2, 1, 1, 0, 0];
    CATEGORY[usize::from(user_priority(ds))]
}

impl<T: Clone> Air<T> {
    /// Returns the category of a packet with this DS field.
    pub(super) fn category(&self, ds: u8) -> usize {
        match self.categories.len() {
            EDCA => of_field(ds),
            _ => 0,
        }
    }

    /// Returns the next access: when, of which category, and of which station. Of those at one instant the most
    /// urgent one.
    pub(super) fn next_access(&mut self) -> Option<(u64, usize, usize)> {
        let categories = self.categories.iter_mut().enumerate();
        let first = categories.filter_map(|(n, category)| {
            let (at_ns, station) = category.countdown.first()?;
            Some((at_ns, n, station))
        });
        first.min()
    }

    /// Stops the countdown of a sender's other categories. Those that could send now have collided
    /// with `by`.
    pub(super) fn outrun(&mut self, station: usize, by: usize) {
        for category in 0..self.categories.len() {
            if category == by || !self.suspend(station, category) {
                continue;
            }
            let queue = &self.stations[station].lanes[category].queue;
            if queue.front().is_some() {
                self.stations[station].count.internal += 1;
                self.missed(station, category, Attempt::Refused);
            } else {
                let of = &mut self.categories[category];
                of.countdown.access(station);
                of.wants.remove(station);
            }
        }
    }

    /// Stops the countdown of a category of a station: whether it was due.
    pub(super) fn suspend(&mut self, station: usize, category: usize) -> bool {
        let now_ns = self.now_ns;
        let Category {
            countdown, lead, ..
        } = &mut self.categories[category];
        countdown.suspend(station, *lead, now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recommendations of RFC 8325, figure 1.
    #[test]
    fn service_classes_have_their_categories() {
        let [voice, video, best_effort, background] = [0, 1, 2, 3];
        for (dscp, category) in [
            (56, voice),       // CS7
            (48, voice),       // CS6
            (46, voice),       // EF
            (44, voice),       // VA
            (40, video),       // CS5
            (34, video),       // AF41
            (38, video),       // AF43
            (32, video),       // CS4
            (26, video),       // AF31
            (24, video),       // CS3
            (18, best_effort), // AF21
            (16, best_effort), // CS2
            (10, best_effort), // AF11
            (14, best_effort), // AF13
            (0, best_effort),  // DF
            (8, background),   // CS1
        ] {
            for ecn in 0..4 {
                assert_eq!(of_field(dscp << 2 | ecn), category, "{dscp}");
            }
        }
    }
}
