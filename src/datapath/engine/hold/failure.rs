// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that the holder released late or lost: counted, and reported from time to time.
//!
//! The thread of a direction counts them here and passes a [`Failure`] through a channel without
//! blocking; the receiver reports to the monitors ([`crate::datapath::engine::hold::reports`]).

use std::sync::mpsc::SyncSender;

use super::Direction;

/// Minimum time between two reports of a kind, in ns: failures in between are summed up.
pub const TELL_EVERY_NS: u64 = 10_000_000;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Released more than `EMUD_LATE_NS` too late.
    Late,
    /// Not released: no room, malformed, or rejected by the kernel.
    Dropped,
}

/// One or several frames with the same failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The direction of the frames.
    pub direction: Direction,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Departure time of the first of them, CLOCK_MONOTONIC; for a frame without a readable one,
    /// its arrival.
    pub since_ns: u64,
    /// When the last of them was detected.
    pub seen_ns: u64,
    /// Lateness of the latest frame; 0 for dropped frames.
    pub worst_late_ns: u64,
    /// Number of frames.
    pub frames: u64,
}

/// The failures of one kind and direction.
#[derive(Debug)]
struct Account {
    /// Not reported yet.
    pending: Option<Failure>,
    /// Time of the next report.
    next_ns: u64,
}

/// Sums up the failures of a direction and reports them, the first one immediately.
#[derive(Debug)]
pub(crate) struct Failures {
    direction: Direction,
    to: Option<SyncSender<Failure>>,
    accounts: [Account; 2],
}

impl Failures {
    /// Creates the accounts; without `to` nothing is reported.
    pub fn new(direction: Direction, to: Option<SyncSender<Failure>>) -> Self {
        let account = || Account {
            pending: None,
            next_ns: 0,
        };
        Self {
            direction,
            to,
            accounts: [account(), account()],
        }
    }

    /// Counts a frame that was released too late.
    pub fn late(&mut self, departure_ns: u64, now_ns: u64) {
        self.add(
            FailureKind::Late,
            departure_ns,
            now_ns,
            now_ns - departure_ns,
        );
    }

    /// Counts a lost frame; `departure_ns` if it could be read.
    pub fn dropped(&mut self, departure_ns: Option<u64>, now_ns: u64) {
        self.add(
            FailureKind::Dropped,
            departure_ns.unwrap_or(now_ns),
            now_ns,
            0,
        );
    }

    fn add(&mut self, kind: FailureKind, since_ns: u64, now_ns: u64, late_ns: u64) {
        if self.to.is_none() {
            return;
        }
        let direction = self.direction;
        let account = &mut self.accounts[kind as usize];
        let failure = account.pending.get_or_insert(Failure {
            direction,
            kind,
            since_ns,
            seen_ns: now_ns,
            worst_late_ns: 0,
            frames: 0,
        });
        failure.since_ns = failure.since_ns.min(since_ns);
        failure.seen_ns = now_ns;
        failure.worst_late_ns = failure.worst_late_ns.max(late_ns);
        failure.frames += 1;
        if now_ns >= account.next_ns {
            self.tell(now_ns);
        }
    }

    /// Returns when the next report is due; to be checked before each wait.
    pub fn next_ns(&self) -> Option<u64> {
        let pending = self.accounts.iter().filter(|a| a.pending.is_some());
        pending.map(|account| account.next_ns).min()
    }

    /// Sends the reports that are due. Does not block: a report for which the channel has no room
    /// is sent later.
    pub fn tell(&mut self, now_ns: u64) {
        let Some(to) = &self.to else { return };
        for account in &mut self.accounts {
            let Some(failure) = account.pending.filter(|_| account.next_ns <= now_ns) else {
                continue;
            };
            if to.try_send(failure).is_ok() {
                account.pending = None;
            }
            account.next_ns = now_ns.saturating_add(TELL_EVERY_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    const MS: u64 = 1_000_000;

    fn failure(
        kind: FailureKind,
        since_ns: u64,
        seen_ns: u64,
        worst_late_ns: u64,
        frames: u64,
    ) -> Failure {
        Failure {
            direction: Direction::Up,
            kind,
            since_ns,
            seen_ns,
            worst_late_ns,
            frames,
        }
    }

    /// The first immediately, then the sum of 10 ms, even without a further failure.
    #[test]
    fn told_at_once_and_then_every_10_ms() {
        let (to, told) = sync_channel(8);
        let mut failures = Failures::new(Direction::Up, Some(to));
        assert_eq!(failures.next_ns(), None);
        failures.late(100 * MS, 102 * MS);
        let first = failure(FailureKind::Late, 100 * MS, 102 * MS, 2 * MS, 1);
        assert_eq!(told.try_recv(), Ok(first));
        assert_eq!(failures.next_ns(), None);

        for (departure, now) in [(100, 103), (101, 105), (109, 111)] {
            failures.late(departure * MS, now * MS);
            assert!(told.try_recv().is_err());
        }
        assert_eq!(failures.next_ns(), Some(112 * MS));
        failures.tell(112 * MS - 1);
        assert!(told.try_recv().is_err());
        failures.tell(112 * MS);
        let second = failure(FailureKind::Late, 100 * MS, 111 * MS, 4 * MS, 3);
        assert_eq!(told.try_recv(), Ok(second));
        assert_eq!(failures.next_ns(), None);
        failures.tell(200 * MS);
        assert!(told.try_recv().is_err());
    }

    /// A late frame does not delay the report of a lost one.
    #[test]
    fn kinds_are_told_apart() {
        let (to, told) = sync_channel(8);
        let mut failures = Failures::new(Direction::Up, Some(to));
        failures.late(100 * MS, 102 * MS);
        failures.dropped(None, 103 * MS);
        failures.dropped(Some(200 * MS), 104 * MS);
        failures.tell(113 * MS);
        let told: Vec<_> = told.try_iter().collect();
        let expected = [
            failure(FailureKind::Late, 100 * MS, 102 * MS, 2 * MS, 1),
            failure(FailureKind::Dropped, 103 * MS, 103 * MS, 0, 1),
            failure(FailureKind::Dropped, 200 * MS, 104 * MS, 0, 1),
        ];
        assert_eq!(told, expected);
    }

    /// Nothing takes them out: none is lost, and no call blocks.
    #[test]
    fn without_room_they_are_told_later() {
        let (to, told) = sync_channel(1);
        let mut failures = Failures::new(Direction::Up, Some(to));
        for ms in 0..100 {
            failures.late(ms * MS, (ms + 2) * MS);
        }
        assert_eq!(told.try_recv().map(|failure| failure.frames), Ok(1));
        failures.tell(200 * MS);
        assert_eq!(told.try_recv().map(|failure| failure.frames), Ok(99));
        drop(told);
        failures.late(300 * MS, 302 * MS);
        failures.tell(400 * MS);
    }
}
