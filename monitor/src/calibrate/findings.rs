// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording shows.

use std::collections::BTreeMap;

use super::Distribution;
use crate::criteria::Measured;
use crate::event::Watched;
use crate::record::{End, Header, Kind, WatchedKinds};

/// What one recording shows under some thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    pub header: Header,
    pub end: End,
    pub records: u64,
    /// Records that the ring buffer had no room for, as far as the file tells.
    pub lost: BTreeMap<Kind, u64>,
    /// Events written too late to be put in order.
    pub late: u64,
    /// From the start to the end, or, if it was cut short, to the last event.
    pub duration_ns: u64,
    /// By the name of [`Measured`], those that the thresholds do not switch off.
    pub measures: BTreeMap<&'static str, Measure>,
}

/// One criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Not [`Watched::Yes`]: that nothing was recorded says nothing.
    pub watched: Watched,
    /// Of a sliding window; none: intervals.
    pub window_ns: Option<u64>,
    /// Of all together: intervals of every CPU or disk, the sum of all devices of a class.
    pub total: Tally,
    /// By CPU or by name of the device.
    pub members: BTreeMap<String, Tally>,
}

/// Values and alarms.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    pub distribution: Distribution,
    /// In the criterion's unit. None: of a CPU or disk, that of the criterion; else not judged.
    pub threshold: Option<u64>,
    /// How many episodes of contention would have begun.
    pub alarms: u64,
    /// When the first alarm would have come, ns after the start.
    pub first_ns: Option<u64>,
}

impl Tally {
    pub(super) fn alarm(&mut self, after_ns: u64) {
        self.alarms += 1;
        self.first_ns = Some(self.first_ns.map_or(after_ns, |f| f.min(after_ns)));
    }

    /// Both together. When the first alarm came is of no meaning then: there are two starts.
    pub fn merge(&mut self, other: &Self) {
        self.distribution.merge(&other.distribution);
        self.alarms += other.alarms;
        self.first_ns = None;
    }
}

/// Whether a recording shows all of it.
pub(super) fn watched(measured: &Measured, kinds: &WatchedKinds) -> Watched {
    let kinds = measured.shown_by.iter().map(|key| kinds.get(*key));
    let mut states = kinds.map(|state| state.copied().unwrap_or(Watched::Unknown));
    states
        .find(|state| *state != Watched::Yes)
        .unwrap_or(Watched::Yes)
}

impl Measure {
    /// The same criterion in several recordings.
    pub fn merge(&mut self, other: &Self) {
        if other.watched != Watched::Yes {
            self.watched = other.watched;
        }
        self.total.merge(&other.total);
        for (name, tally) in &other.members {
            match self.members.get_mut(name) {
                Some(mine) => mine.merge(tally),
                None => {
                    self.members.insert(name.clone(), tally.clone());
                }
            }
        }
    }
}
