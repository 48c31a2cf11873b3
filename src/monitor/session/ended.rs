// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why and when a run ended, and its figures until then.

use std::io;

use emud_monitor::MonitorError;
use emud_monitor::event::{Cost, Dropped, Watched};
use emud_monitor::log::{EndReason, PerResource};
use rustix::time::{ClockId, clock_gettime};

use super::Source;

/// The figures of a run so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Measures {
    /// Number of alarms of each resource.
    pub alarms: PerResource<u64>,
    /// Alarms not written because of the limit of alarms.
    pub suppressed: PerResource<u64>,
    /// Time in contention, ns.
    pub in_contention: PerResource<u64>,
    /// Which resources were watched.
    pub watched: PerResource<Watched>,
    /// Events lost because the ring buffer was full.
    pub ring_full: u64,
    /// Events for which the kernel did not run a program.
    pub skipped: PerResource<u64>,
    /// Costs of the monitor's programs.
    pub costs: Vec<Cost>,
}

/// Why and when a run ended, and the kernel's figures at that time.
#[derive(Debug)]
pub struct Ended {
    /// Why it ended.
    pub stop: Stop,
    /// When it ended, CLOCK_MONOTONIC.
    pub mono_ns: u64,
    pub(super) dropped: Dropped,
    pub(super) costs: Vec<Cost>,
    pub(super) process_ns: u64,
}

/// Why the loop ends.
#[derive(Debug)]
pub enum Stop {
    /// The run is over for this reason.
    Over(EndReason),
    /// The output cannot be written.
    Output(io::Error),
    /// The monitor stopped working.
    Monitor(MonitorError),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Self::Over(EndReason::OutputClosed),
            _ => Self::Output(e),
        }
    }
}

impl From<MonitorError> for Stop {
    fn from(e: MonitorError) -> Self {
        Self::Monitor(e)
    }
}

impl Ended {
    /// Takes the current figures at `mono_ns`.
    pub(crate) fn new(stop: Stop, mono_ns: u64, source: &impl Source, process_before: u64) -> Self {
        let process_ns = process_ns().saturating_sub(process_before);
        let figures = source
            .dropped()
            .and_then(|dropped| Ok((dropped, source.costs()?)));
        let (stop, (dropped, costs)) = match (figures, stop) {
            (Ok(figures), stop) => (stop, figures),
            (Err(_), stop @ Stop::Monitor(_)) => (stop, Default::default()),
            (Err(e), _) => (e.into(), Default::default()),
        };
        Self {
            stop,
            mono_ns,
            dropped,
            costs,
            process_ns,
        }
    }

    pub(super) fn reason(&self) -> EndReason {
        match self.stop {
            Stop::Over(reason) => reason,
            Stop::Output(_) | Stop::Monitor(_) => EndReason::Error,
        }
    }

    pub(super) fn error(&self) -> Option<String> {
        match &self.stop {
            Stop::Over(_) => None,
            Stop::Output(e) => Some(format!("cannot write the output: {e}")),
            Stop::Monitor(e) => Some(e.to_string()),
        }
    }
}

/// Returns the CPU time of this process so far, ns.
pub(crate) fn process_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}
