// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder: a thread for each direction, or one for both, that does the work of `worker.rs`.

use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::{io, thread};

use crate::abi::emud_holder;

use super::failure::{Failure, Failures};
use super::port::{End, Port};
use super::servers::Classes;
use super::tune::{Tuning, lock_memory, tune_thread};
use super::worker::Worker;
use super::{Direction, HoldError};

/// Default limit of buffered bytes per direction.
pub const DEFAULT_LIMIT_BYTES: usize = 256 << 20;

/// Holds frames of one TAP per direction.
pub struct Holder<'a> {
    taps: Vec<(OwnedFd, Direction)>,
    limit_bytes: [usize; 2],
    failures: Option<SyncSender<Failure>>,
    classes: Option<&'a dyn Classes>,
    joined: bool,
}

impl<'a> Holder<'a> {
    /// Creates a holder of these TAPs, by their descriptors ([`crate::datapath::engine::hold::Tap::fd`]).
    pub fn new(taps: Vec<(OwnedFd, Direction)>) -> Self {
        Self {
            taps,
            limit_bytes: [DEFAULT_LIMIT_BYTES; 2],
            failures: None,
            classes: None,
            joined: false,
        }
    }

    /// Sets the bottlenecks in which frames wait; `joined`: frames of both directions wait in one, so that
    /// one thread does all.
    pub fn classes(mut self, classes: &'a dyn Classes, joined: bool) -> Self {
        (self.classes, self.joined) = (Some(classes), joined);
        self
    }

    /// Bytes of frames held back, by direction; frames above that limit are dropped and counted.
    pub fn limit_bytes(mut self, limit_bytes: [usize; 2]) -> Self {
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
        let (limit_bytes, classes, failures) = (self.limit_bytes, self.classes, self.failures);
        let groups: Vec<Vec<_>> = match self.joined {
            true => vec![self.taps],
            false => self.taps.into_iter().map(|tap| vec![tap]).collect(),
        };
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for group in groups.into_iter().filter(|group| !group.is_empty()) {
                let (direction, failures) = (group[0].1, failures.clone());
                let work = move || {
                    let tuning = tune_thread(first_cpu + direction as usize);
                    let port = |(tap, direction)| {
                        tuned(direction, &tuning, locked);
                        let failures = Failures::new(direction, failures.clone());
                        let limit_bytes = limit_bytes[direction as usize];
                        Port::new(tap, direction, limit_bytes, failures)
                    };
                    let ports = group.into_iter().map(port).collect();
                    Worker::new(ports, stop, classes).run(report)
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
            let ends: Result<Vec<_>, _> = results.collect();
            Ok(ends?.concat())
        })
    }
}
