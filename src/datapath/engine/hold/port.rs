// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TAP of the holder, what waits to go back to it, and how long others rely on the holder.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::Direction;
use super::failure::Failures;
use super::queue::TimerQueue;
use crate::abi::{self, emud_holder};
use crate::host::now_ns;

/// How long after a report the classifier may send frames, in ns.
pub const LEASE_NS: u64 = 250_000_000;
/// Time between two reports in ns: a fifth of the lease, so that one late report does not end it.
pub const REPORT_NS: u64 = 50_000_000;
/// Frames written before the next read.
const WRITE_BURST: usize = 64;
/// Why a direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The `stop` descriptor became readable, or a report requested the end.
    Stopped,
    /// The TAP was deleted.
    TapGone,
}

/// Whether a step left something to do at once.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Left {
    Nothing,
    More,
}

/// A TAP and the frames that go back to it.
pub(super) struct Port {
    pub(super) tap: OwnedFd,
    pub(super) direction: Direction,
    pub(super) queue: TimerQueue,
    pub(super) stats: emud_holder,
    pub(super) failures: Failures,
    /// All frames that arrived before this time have been read, ns.
    pub(super) read_ns: u64,
}

impl Port {
    pub(super) fn new(
        tap: OwnedFd,
        direction: Direction,
        limit_bytes: usize,
        failures: Failures,
    ) -> Self {
        Self {
            tap,
            direction,
            queue: TimerQueue::new(limit_bytes),
            stats: emud_holder {
                pid: u64::from(std::process::id()),
                ..emud_holder::default()
            },
            failures,
            read_ns: 0,
        }
    }

    pub(super) fn dropped(&mut self, departure_ns: Option<u64>) {
        self.stats.dropped += 1;
        self.failures.dropped(departure_ns, now_ns());
    }

    /// Writes what is due (or everything due at `until_ns`), one burst of it.
    pub(super) fn release(&mut self, until_ns: Option<u64>) -> Result<Left, Errno> {
        for _ in 0..WRITE_BURST {
            let now = now_ns();
            let Some(frame) = self.queue.pop_due(until_ns.unwrap_or(now)) else {
                return Ok(Left::Nothing);
            };
            let result = rustix::io::retry_on_intr(|| rustix::io::write(&self.tap, frame.bytes()));
            match result {
                Ok(_) => {
                    self.stats.released += 1;
                    let late_ns = now.saturating_sub(frame.departure_ns);
                    self.stats.worst_late_ns = self.stats.worst_late_ns.max(late_ns);
                    if late_ns > u64::from(abi::EMUD_LATE_NS) {
                        self.stats.late += 1;
                        self.failures.late(frame.departure_ns, now);
                    }
                }
                Err(Errno::BADFD) => return Err(Errno::BADFD),
                // This frame alone: out of memory, or its headers make no sense.
                Err(_) => self.dropped(Some(frame.departure_ns)),
            }
            self.queue.recycle(frame);
        }
        Ok(Left::More)
    }
}
