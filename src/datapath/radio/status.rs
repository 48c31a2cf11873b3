// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a medium's thread has done so far.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::medium::air::Count;

/// Deliveries later than this are counted.
pub(super) const LATE_NS: u64 = 1_000_000;
/// Deliveries later than this make a run unreliable, unless it accepts later ones.
pub(super) const FAILED_NS: u64 = 5_000_000;
/// A stamp that is older than virtual time by more than this has met another air than it should.
pub(super) const STALE_NS: u64 = 1_000_000;

/// Failure of frames that are later than a reliable run has them.
pub const DELIVERED_LATE: &str = "frames were delivered more than";
/// Failure of frames whose stamp is older than virtual time.
pub const READ_LATE: &str =
    "frames were read more than 1 ms after the air at their time was decided";

/// Counters of a medium; all only grow.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Frames written to receivers.
    pub delivered: u64,
    /// Frames delivered 1 ms late or more.
    pub late: u64,
    /// Frames delivered later than `failed_ns`.
    pub failed: u64,
    /// The largest lateness of a reliable run, ns.
    pub failed_ns: u64,
    /// Lateness of the latest frame, ns.
    pub worst_late_ns: u64,
    /// Frames that were read.
    pub read: u64,
    /// Frames read without a stamp of the kernel, although their TAP has the program.
    pub unstamped: u64,
    /// Frames, and positions, read more than 1 ms after the air at their time was decided.
    pub stale: u64,
    /// The longest time between the decision and the reading of such a frame, ns.
    pub worst_stale_ns: u64,
    /// Frames dropped because their source is not the station.
    pub foreign: u64,
    /// Frames dropped because no station has their destination.
    pub unknown: u64,
    /// Frames dropped because they are too long, too short or have a VLAN tag.
    pub malformed: u64,
    /// Frames that a TAP dropped because the thread did not read them.
    pub overflowed: u64,
    /// Frames that a node did not take.
    pub refused: u64,
    /// Why the thread has ended, if it was not stopped.
    pub ended: Option<String>,
    /// The last error of a write of the record.
    pub record: Option<String>,
    /// Counts of each station, refreshed ten times a second and at the end.
    pub stations: Arc<[Count]>,
    /// Until when these count, ns of CLOCK_MONOTONIC.
    pub counted_ns: u64,
    /// When virtual time began, ns of CLOCK_MONOTONIC.
    pub began_ns: u64,
}

/// Reads the counters of a medium from any thread.
#[derive(Debug, Clone)]
pub struct Gauge(pub(super) Arc<Mutex<Status>>);

impl Gauge {
    /// Returns the counters so far.
    pub fn status(&self) -> Status {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Status {
    pub(super) fn lateness(&mut self, late_ns: u64) {
        self.worst_late_ns = self.worst_late_ns.max(late_ns);
        self.late += u64::from(late_ns >= LATE_NS);
        self.failed += u64::from(late_ns >= self.failed_ns);
    }

    pub(super) fn staleness(&mut self, stale_ns: u64) {
        self.worst_stale_ns = self.worst_stale_ns.max(stale_ns);
        self.stale += u64::from(stale_ns >= STALE_NS);
    }

    /// Returns whether the stations' counts are of this time, or the thread has failed.
    pub fn has_counted(&self, mono_ns: u64) -> bool {
        self.counted_ns >= mono_ns || self.ended.is_some()
    }

    /// Sentences about what makes the time since `before` unreliable, and whether a busy host explains it: not what
    /// has changed the air, for the rest of the run. `end_ns`: all up to then should have been counted by now.
    pub fn failures_since(
        &self,
        before: &Self,
        end_ns: Option<u64>,
    ) -> Vec<(u64, Cow<'static, str>, bool)> {
        let late_ms = self.failed_ns as f64 / 1e6;
        let behind = end_ns.filter(|end_ns| !self.has_counted(*end_ns));
        let behind_ns = behind.map_or(0, |end_ns| end_ns - self.counted_ns);
        let late = format!("{DELIVERED_LATE} {late_ms} ms late");
        let all = [
            (
                behind_ns.div_ceil(1_000_000),
                "ms at the end were not decided: its thread was late, or did not run".into(),
                true,
            ),
            (self.failed - before.failed, late.into(), true),
            (
                self.stale - before.stale,
                READ_LATE.into(),
                false,
            ),
            (
                self.overflowed - before.overflowed,
                "frames were dropped before they could be read".into(),
                false,
            ),
            (
                self.refused - before.refused,
                "frames could not be written to their node".into(),
                true,
            ),
            (
                self.unstamped - before.unstamped,
                "frames were sent past the program that stamps them (PACKET_QDISC_BYPASS, XDP): send \
                 them without"
                .into(),
                false,
            ),
        ];
        all.into_iter().filter(|(number, ..)| *number > 0).collect()
    }

    pub(super) fn end(&mut self, result: io::Result<()>) {
        self.ended = result.err().map(|error| error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It has no other trace: what it did not do is not counted.
    #[test]
    fn a_thread_that_stands_still_at_the_end_is_a_failure() {
        let status = |counted_ns, ended: Option<&str>| Status {
            counted_ns,
            ended: ended.map(str::to_owned),
            ..Status::default()
        };
        let failures = |status: Status, end_ns| status.failures_since(&Status::default(), end_ns);
        let (counted, end) = (5_000_000_000, Some(6_200_000_000));
        let found = failures(status(counted, None), end);
        assert_eq!(found.len(), 1, "{found:?}");
        let (ms, what, by_load) = &found[0];
        assert_eq!((*ms, *by_load), (1_200, true));
        assert!(what.starts_with("ms at the end were not decided"), "{what}");
        for (status, end) in [
            (status(6_200_000_000, None), end),
            (status(counted, None), None),
            // That is a finding by itself.
            (status(counted, Some("it panicked")), end),
        ] {
            assert_eq!(failures(status, end), []);
        }
    }

    /// A late delivery is late; a frame that was lost, or came too late, has changed the air for all.
    #[test]
    fn a_busy_host_does_not_explain_another_air() {
        let status = Status {
            failed: 1,
            refused: 2,
            stale: 3,
            overflowed: 4,
            unstamped: 5,
            ..Status::default()
        };
        let found = status.failures_since(&Status::default(), None);
        let mut found: Vec<_> = found.iter().map(|(n, _, load)| (*n, *load)).collect();
        found.sort_unstable();
        let expected = [(1, true), (2, true), (3, false), (4, false), (5, false)];
        assert_eq!(found, expected);
    }
}
