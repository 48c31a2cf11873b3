// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a recording.

use std::collections::BTreeMap;

use super::Distribution;
use crate::criteria::Measured;
use crate::event::Watched;
use crate::record::{End, Header, Kind, WatchedKinds};

/// The results of one recording under a set of thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Header of the recording.
    pub header: Header,
    /// End of the recording.
    pub end: End,
    /// Number of records in the file.
    pub records: u64,
    /// Records that did not fit into the ring buffer, as far as the file shows.
    pub lost: BTreeMap<Kind, u64>,
    /// Number of events written too late to be sorted.
    pub late: u64,
    /// Time from the start to the end, or to the last event of a file that is cut short.
    pub duration_ns: u64,
    /// The criteria with thresholds, by the name of [`Measured`].
    pub measures: BTreeMap<&'static str, Measure>,
}

/// The results of one criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// If this is not [`Watched::Yes`], an absence of records proves nothing.
    pub watched: Watched,
    /// Length of a sliding window; `None` for intervals.
    pub window_ns: Option<u64>,
    /// All members together: the intervals of every CPU or disk, or the sum of all devices of a
    /// class.
    pub total: Tally,
    /// By CPU or by name of the device.
    pub members: BTreeMap<String, Tally>,
}

/// Values and alarms.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Distribution of the values.
    pub distribution: Distribution,
    /// Length of its sliding window; `None`: that of the measure, or there is none.
    pub window_ns: Option<u64>,
    /// Threshold in the criterion's unit. `None`: a CPU or disk has the criterion's threshold, any
    /// other member is not judged.
    pub threshold: Option<u64>,
    /// Number of episodes of contention that would have begun.
    pub alarms: u64,
    /// Time of the first alarm in ns after the start.
    pub first_ns: Option<u64>,
}

impl Tally {
    pub(super) fn alarm(&mut self, after_ns: u64) {
        self.alarms += 1;
        self.first_ns = Some(self.first_ns.map_or(after_ns, |f| f.min(after_ns)));
    }

    /// Adds another tally. The time of the first alarm is then undefined, since there are two
    /// starts.
    pub fn merge(&mut self, other: &Self) {
        self.distribution.merge(&other.distribution);
        self.alarms += other.alarms;
        self.first_ns = None;
    }
}

/// Returns whether a recording covers the criterion completely.
pub(super) fn watched(measured: &Measured, kinds: &WatchedKinds) -> Watched {
    let kinds = measured.shown_by.iter().map(|key| kinds.get(*key));
    let mut states = kinds.map(|state| state.copied().unwrap_or(Watched::Unknown));
    states
        .find(|state| *state != Watched::Yes)
        .unwrap_or(Watched::Yes)
}

impl Measure {
    /// Adds the same criterion of another recording.
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
