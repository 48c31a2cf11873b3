// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder: one thread per direction that reads frames, waits, and writes them back.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::abi::{self, emud_holder};

use super::failure::{Failure, Failures};
use super::frame::rewrite;
use super::queue::TimerQueue;
use super::tune::{Tuning, lock_memory, tune_thread};
use super::{Direction, HoldError};

/// How long after a report the classifier may send frames, in ns.
pub const LEASE_NS: u64 = 250_000_000;
/// Time between two reports in ns: a fifth of the lease, so that one late report does not end it.
pub const REPORT_NS: u64 = 50_000_000;
/// Default limit of buffered bytes per direction.
pub const DEFAULT_LIMIT_BYTES: usize = 256 << 20;

/// Frames read before the next write. Normally this is everything: after a late wake-up an unread
/// frame may depart before one that is due.
const READ_BURST: usize = 256;
/// Frames written before the next read.
const WRITE_BURST: usize = 64;
/// The longest frame from a TAP, with room for a tag.
const SCRATCH_LEN: usize = 68 << 10;
/// For this time after a read the TAP is not polled, see [`Worker::wait`].
const GATHER_NS: u64 = 50_000;

/// Why a direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The `stop` descriptor became readable, or a report requested the end.
    Stopped,
    /// The TAP was deleted.
    TapGone,
}

/// Holds frames behind one TAP per direction.
#[derive(Debug)]
pub struct Holder {
    taps: Vec<(OwnedFd, Direction)>,
    limit_bytes: usize,
    failures: Option<SyncSender<Failure>>,
}

impl Holder {
    /// Creates a holder; the descriptors are [`crate::datapath::engine::hold::Tap::fd`].
    pub fn new(taps: Vec<(OwnedFd, Direction)>) -> Self {
        Self {
            taps,
            limit_bytes: DEFAULT_LIMIT_BYTES,
            failures: None,
        }
    }

    /// Sets the limit of buffered bytes per direction; frames beyond it are dropped and counted.
    pub fn limit_bytes(mut self, limit_bytes: usize) -> Self {
        self.limit_bytes = limit_bytes;
        self
    }

    /// Sets the receiver of late and dropped frames. The holder never blocks on it; room for a few
    /// is enough.
    pub fn failures(mut self, to: SyncSender<Failure>) -> Self {
        self.failures = Some(to);
        self
    }

    /// Works until `stop` becomes readable, `report` breaks, or the TAPs are gone.
    ///
    /// `report` is called by the thread of the direction: once before the first frame is read, then
    /// every 50 ms, idle or not, and a last time with `lease_ns` 0. It must publish the figures,
    /// which renews the lease. At the end the waiting frames are written back immediately.
    ///
    /// `tuned` receives the results of the tuning for punctuality, before the first report.
    ///
    /// # Errors
    /// [`HoldError::System`] if a thread cannot be started or waiting fails.
    pub fn run<R, T>(
        self,
        stop: BorrowedFd<'_>,
        tuned: T,
        report: R,
    ) -> Result<Vec<(Direction, End)>, HoldError>
    where
        R: Fn(Direction, &emud_holder) -> ControlFlow<()> + Sync,
        T: Fn(Direction, &Tuning, &io::Result<()>) + Sync,
    {
        let locked = lock_memory();
        // Two directions on two CPUs, and the links of a test bed spread over all CPUs.
        let first_cpu = std::process::id() as usize;
        // Set when a thread is missing, for those already running.
        let incomplete = AtomicBool::new(false);
        let report = |direction, stats: &emud_holder| {
            let verdict = report(direction, stats);
            match incomplete.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => verdict,
            }
        };
        let (report, tuned, locked) = (&report, &tuned, &locked);
        let limit_bytes = self.limit_bytes;
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (tap, direction) in self.taps {
                let failures = Failures::new(direction, self.failures.clone());
                let work = move || {
                    tuned(
                        direction,
                        &tune_thread(first_cpu + direction as usize),
                        locked,
                    );
                    let mut worker = Worker::new(tap.as_fd(), stop, limit_bytes, failures);
                    let end = worker.run(|stats| report(direction, stats));
                    end.map(|end| (direction, end))
                };
                let thread = thread::Builder::new()
                    .name(format!("emud-{direction:?}").to_lowercase())
                    .spawn_scoped(scope, work)
                    .map_err(|error| {
                        incomplete.store(true, Ordering::Relaxed);
                        HoldError::system("thread", error)
                    })?;
                threads.push(thread);
            }
            let results = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result.map_err(|error| HoldError::system("holder", error)),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            results.collect()
        })
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// One direction.
struct Worker<'a> {
    tap: BorrowedFd<'a>,
    stop: BorrowedFd<'a>,
    queue: TimerQueue,
    scratch: Vec<u8>,
    stats: emud_holder,
    failures: Failures,
    next_report_ns: u64,
    /// The TAP is not polled before this time.
    gather_until_ns: u64,
}

/// Whether a step left work to do.
#[derive(PartialEq, Eq)]
enum Left {
    Nothing,
    More,
}

impl<'a> Worker<'a> {
    fn new(
        tap: BorrowedFd<'a>,
        stop: BorrowedFd<'a>,
        limit_bytes: usize,
        failures: Failures,
    ) -> Self {
        let pid = u64::from(std::process::id());
        Self {
            tap,
            stop,
            queue: TimerQueue::new(limit_bytes),
            scratch: vec![0; SCRATCH_LEN],
            stats: emud_holder {
                pid,
                ..emud_holder::default()
            },
            failures,
            next_report_ns: 0,
            gather_until_ns: 0,
        }
    }

    fn run(
        &mut self,
        mut report: impl FnMut(&emud_holder) -> ControlFlow<()>,
    ) -> Result<End, Errno> {
        let end = self.work(&mut report);
        // The lease ends first: no new frame may arrive while the rest is written.
        self.publish(0, &mut report).is_break();
        if end == Ok(End::Stopped) {
            self.flush()?;
            self.publish(0, &mut report).is_break();
        }
        self.failures.tell(u64::MAX);
        end
    }

    fn work(
        &mut self,
        report: &mut impl FnMut(&emud_holder) -> ControlFlow<()>,
    ) -> Result<End, Errno> {
        loop {
            let now = now_ns();
            if now >= self.next_report_ns {
                if self.publish(now + LEASE_NS, report).is_break() || self.stop_requested()? {
                    return Ok(End::Stopped);
                }
                self.next_report_ns = now + REPORT_NS;
            }
            if self.failures.next_ns().is_some_and(|due| due <= now) {
                self.failures.tell(now);
            }
            let read = self.fill();
            let written = self.release(None);
            match (read, written) {
                (Err(Errno::BADFD), _) | (_, Err(Errno::BADFD)) => return Ok(End::TapGone),
                (Err(error), _) | (_, Err(error)) => return Err(error),
                (Ok(Left::Nothing), Ok(Left::Nothing)) => {
                    if let Some(end) = self.wait()? {
                        return Ok(end);
                    }
                }
                _ => {}
            }
        }
    }

    fn publish(
        &mut self,
        lease_ns: u64,
        report: &mut impl FnMut(&emud_holder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.stats.lease_ns = lease_ns;
        self.stats.waiting = self.queue.len() as u64;
        report(&self.stats)
    }

    /// Reads one burst of frames.
    fn fill(&mut self) -> Result<Left, Errno> {
        let mut earliest_ns = u64::MAX;
        let mut left = Left::More;
        for _ in 0..READ_BURST {
            match rustix::io::read(self.tap, &mut self.scratch) {
                Ok(len) => earliest_ns = earliest_ns.min(self.take(len)),
                Err(Errno::AGAIN) => {
                    left = Left::Nothing;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if earliest_ns != u64::MAX {
            let now = now_ns();
            // Far from due: the frames that follow within the next moment will be, too.
            let far = earliest_ns > now + 20 * GATHER_NS;
            self.gather_until_ns = if far { now + GATHER_NS } else { 0 };
        }
        Ok(left)
    }

    /// Queues a frame of the scratch buffer and returns its departure time.
    fn take(&mut self, len: usize) -> u64 {
        let frame = rewrite(&mut self.scratch[..len]).ok();
        if let Some(done) = frame {
            let bytes = &self.scratch[done.start..len];
            if self.queue.push(done.departure_ns, bytes).is_ok() {
                return done.departure_ns;
            }
        }
        self.dropped(frame.map(|done| done.departure_ns));
        u64::MAX
    }

    fn dropped(&mut self, departure_ns: Option<u64>) {
        self.stats.dropped += 1;
        self.failures.dropped(departure_ns, now_ns());
    }

    /// Writes one burst of the frames that are due (or due at `until_ns`).
    fn release(&mut self, until_ns: Option<u64>) -> Result<Left, Errno> {
        for _ in 0..WRITE_BURST {
            let now = now_ns();
            let Some(frame) = self.queue.pop_due(until_ns.unwrap_or(now)) else {
                return Ok(Left::Nothing);
            };
            let result = rustix::io::retry_on_intr(|| rustix::io::write(self.tap, frame.bytes()));
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
                // Only this frame failed: out of memory, or its headers are invalid.
                Err(_) => self.dropped(Some(frame.departure_ns)),
            }
            self.queue.recycle(frame);
        }
        Ok(Left::More)
    }

    /// Reads all frames, then writes them without waiting for their time.
    fn flush(&mut self) -> Result<(), Errno> {
        let result = loop {
            match self.fill() {
                Ok(Left::More) => {}
                Ok(Left::Nothing) => break self.release_all(),
                Err(error) => break Err(error),
            }
        };
        match result {
            Err(Errno::BADFD) => Ok(()),
            result => result,
        }
    }

    fn release_all(&mut self) -> Result<(), Errno> {
        while self.release(Some(u64::MAX))? == Left::More {}
        Ok(())
    }

    /// Sleeps until the next event.
    ///
    /// While frames just read are far from due, the TAP is not polled for a moment: one wake-up
    /// then serves many arrivals, and a sender does not have to wake this thread. A frame that is
    /// due long before its predecessors may be late by that time.
    fn wait(&mut self) -> Result<Option<End>, Errno> {
        let now = now_ns();
        let mut until = self
            .next_report_ns
            .min(self.queue.next_ns().unwrap_or(u64::MAX))
            .min(self.failures.next_ns().unwrap_or(u64::MAX));
        let gathering = self.gather_until_ns > now;
        if gathering {
            until = until.min(self.gather_until_ns);
        }
        let timeout = timespec(until.saturating_sub(now));
        let mut fds = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.tap, PollFlags::IN),
        ];
        let fds = if gathering {
            &mut fds[..1]
        } else {
            &mut fds[..]
        };
        match poll(fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if !fds[0].revents().is_empty() {
            return Ok(Some(End::Stopped));
        }
        let gone = fds
            .get(1)
            .is_some_and(|tap| tap.revents().contains(PollFlags::ERR));
        Ok(gone.then_some(End::TapGone))
    }

    fn stop_requested(&self) -> Result<bool, Errno> {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(0))) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
