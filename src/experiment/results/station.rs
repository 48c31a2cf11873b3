// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a station of a medium did in the measured phase, and where it was in the whole log.

use std::sync::Arc;

use emud_monitor::log::{RunMedium, RunStation, StationCounted, StationSample};

use super::totals::{fingerprint, of_station};

/// Samples of a station, added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StationTrack {
    /// Interface of the stations of its medium.
    pub medium: String,
    /// Name of the node.
    pub node: String,
    /// Length of all intervals of the measured phase together.
    pub interval_ns: u64,
    /// Sum of the samples' counts.
    pub counted: StationCounted,
    /// The largest at the end of an interval.
    pub backlog_packets: u64,
    /// J; none: the scenario has no `watts`.
    pub energy_j: Option<f64>,
    /// Where it was in the whole log.
    pub places: Places,
    /// Hash of the counters of its samples, in order.
    pub(crate) fingerprint: u64,
}

impl StationTrack {
    /// Begins with the station at the start.
    pub(crate) fn at_start(medium: &RunMedium, station: &RunStation, mono_ns: u64) -> Self {
        let mut places = Places::default();
        places.push(StationPosition {
            mono_ns,
            at_m: station.at_m,
            neighbours: station.neighbours.clone().into(),
        });
        Self {
            medium: medium.name.clone(),
            node: station.node.clone(),
            places,
            ..Self::default()
        }
    }

    pub(crate) fn is_of(&self, sample: &StationSample) -> bool {
        (&self.medium, &self.node) == (&sample.medium, &sample.node)
    }

    pub(crate) fn moved(&mut self, sample: &StationSample) {
        let last = || Some(self.places.last()?.neighbours.clone());
        let changed = sample.neighbours.clone().map(Arc::from);
        let neighbours = changed.or_else(last).unwrap_or_default();
        self.places.push(StationPosition {
            mono_ns: sample.mono_ns,
            at_m: sample.at_m,
            neighbours,
        });
    }

    pub(crate) fn add(&mut self, sample: &StationSample) {
        self.interval_ns = self.interval_ns.saturating_add(sample.interval_ns);
        self.counted = self.counted.plus(&sample.counted);
        self.fingerprint = fingerprint(self.fingerprint, &of_station(&sample.counted));
        self.backlog_packets = self.backlog_packets.max(sample.backlog_packets);
        self.energy_j = match (self.energy_j, sample.energy_j) {
            (Some(before), Some(more)) => Some(before + more),
            (before, more) => before.or(more),
        };
    }

    /// Packets that were acknowledged or broadcast, bit/s; none: no time.
    pub fn sent_bit_s(&self) -> Option<f64> {
        self.rate(self.counted.sent_bytes)
    }

    /// Returns the bit/s received; `None`: no time.
    pub fn received_bit_s(&self) -> Option<f64> {
        self.rate(self.counted.received_bytes)
    }

    fn rate(&self, bytes: u64) -> Option<f64> {
        let bits = bytes as f64 * 8.0;
        (self.interval_ns > 0).then(|| bits * 1e9 / self.interval_ns as f64)
    }

    /// Returns the share of a time in this one; none: no time.
    pub fn share_of_time(&self, ns: u64) -> Option<f64> {
        (self.interval_ns > 0).then(|| ns as f64 / self.interval_ns as f64)
    }

    /// Returns the share given up of all packets that were sent or given up; `None`: there were none.
    pub fn loss_share(&self) -> Option<f64> {
        let all = self.counted.sent_packets + self.counted.given_up;
        (all > 0).then(|| self.counted.given_up as f64 / all as f64)
    }

    /// Returns the share dropped by the queue of all packets that left it; `None`: there were none.
    pub fn drop_share(&self) -> Option<f64> {
        let dropped = self.counted.dropped();
        let all = self.counted.sent_packets + self.counted.given_up + dropped;
        (all > 0).then(|| dropped as f64 / all as f64)
    }
}

/// Where a station was at a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StationPosition {
    /// ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// x and y in m.
    pub at_m: [f64; 2],
    /// Nodes that it exchanged data with.
    pub neighbours: Arc<[String]>,
}

/// More than a map shows apart.
const POINTS: usize = 256;

/// A station over time, in a bounded number of points: every second one is left out when there are
/// too many.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    points: Vec<StationPosition>,
    last: Option<StationPosition>,
    /// Pushed so far, and how many of them make a point.
    pushed: u64,
    each: u64,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            last: None,
            pushed: 0,
            each: 1,
        }
    }
}

impl Places {
    fn push(&mut self, place: StationPosition) {
        if self.pushed.is_multiple_of(self.each) {
            if self.points.len() == POINTS {
                let mut n = 0;
                self.points.retain(|_| {
                    n += 1;
                    n % 2 == 1
                });
                self.each *= 2;
            }
            if self.pushed.is_multiple_of(self.each) {
                self.points.push(place.clone());
            }
        }
        self.pushed += 1;
        self.last = Some(place);
    }

    fn last(&self) -> Option<&StationPosition> {
        self.last.as_ref()
    }

    /// Returns the positions in the order of time; the last one is that of the log.
    pub fn points(&self) -> Vec<&StationPosition> {
        let last = self.last.iter();
        let beyond = last.filter(|last| self.points.last() != Some(last));
        self.points.iter().chain(beyond).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_thinned_evenly_and_end_with_the_last() {
        let mut places = Places::default();
        for second in 0..100_000 {
            places.push(StationPosition {
                mono_ns: second,
                ..StationPosition::default()
            });
            let points = places.points();
            assert!(points.len() <= POINTS + 1);
            assert_eq!(points.last().map(|p| p.mono_ns), Some(second));
        }
        let times: Vec<u64> = places.points().iter().map(|p| p.mono_ns).collect();
        assert!(times.len() > POINTS / 2, "{}", times.len());
        let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let steps: std::collections::BTreeSet<u64> = steps.collect();
        // All equal, but the last.
        assert!(steps.len() <= 2, "{steps:?}");
    }
}
