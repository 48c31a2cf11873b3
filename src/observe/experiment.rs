// SPDX-License-Identifier: GPL-2.0-only
//! A monitor in a thread of its own, for `emud run`.

use std::fs::File;
use std::io;
use std::path::Path;

use emud_monitor::Config;
use emud_monitor::event::Alarm;
use emud_monitor::log::{Judgement, Line, LineSender, PerResource, RunVerdict, Verdict};
use tokio::sync::watch;

use super::StartError;

/// What an experiment wants of its monitor.
#[derive(Debug)]
pub struct ExperimentSetup {
    pub config: Config,
    /// None: lines go nowhere; there is a verdict all the same.
    pub log: Option<File>,
}

/// Alarms so far.
#[derive(Debug, Clone, Default)]
pub struct AlarmsSoFar {
    /// Of resources of the host, and of applications.
    pub contention: u64,
    /// Of emulated links.
    pub emulator: u64,
    pub latest: Option<Alarm>,
    /// Episodes that go on.
    pub open: u64,
}

/// What whoever carries out the experiment knows, and the monitor does not.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Sentences that make the run invalid, contention or not: a link went away.
    pub invalid: Vec<String>,
    /// What counters say of the emulator; contention at the time explains it.
    pub failures: Vec<Failure>,
}

/// The emulator was late or dropped packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The interval between two readings of the counters.
    pub since_mono_ns: u64,
    pub until_mono_ns: u64,
    pub sentence: String,
}

/// What became of an experiment.
#[derive(Debug)]
pub struct Finished {
    pub judgement: Judgement,
    pub verdicts: PerResource<Verdict>,
    /// The log.
    pub written: io::Result<()>,
    pub lines_lost: u64,
}

/// A monitor that runs, and the log.
#[derive(Debug)]
pub struct Experiment {
    notes: Vec<String>,
    sender: LineSender,
    alarms: watch::Receiver<AlarmsSoFar>,
}

impl Experiment {
    /// Loads the monitor's programs, starts its thread, and writes the start line.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind.
    pub fn start(_setup: ExperimentSetup) -> Result<Self, StartError> {
        unimplemented!()
    }

    /// What was refused, and what that means.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where programs report; commands find it in EMUD_MONITOR_SOCKET. None: nowhere.
    pub fn socket(&self) -> Option<&Path> {
        unimplemented!()
    }

    /// Hands a line to the log, as [`LineSender::line`] does.
    pub fn line(&self, line: Line) {
        self.sender.line(line);
    }

    /// For other threads.
    pub fn sender(&self) -> LineSender {
        self.sender.clone()
    }

    /// Changes with each alarm and each end of an episode.
    pub fn alarms(&self) -> watch::Receiver<AlarmsSoFar> {
        self.alarms.clone()
    }

    /// Links were attached: looks for them at once. Only failures of those in these network
    /// namespaces (inode numbers) count for the verdict; never called: of all on this host.
    pub fn judge_links_in(&self, _netns: &[u32]) {
        unimplemented!()
    }

    /// The measured phase begins now: only what touches it counts for the verdict. Returns
    /// CLOCK_MONOTONIC, ns.
    pub fn begin_measuring(&self) -> u64 {
        unimplemented!()
    }

    /// It ends now; without this call with [`Experiment::finish`].
    pub fn end_measuring(&self) -> u64 {
        unimplemented!()
    }

    /// Ends it: waits a moment for episodes that go on, judges, writes the end line with the
    /// exit code that `exit` says, and waits some time until the log is written.
    pub fn finish(self, _facts: Facts, _exit: impl FnOnce(RunVerdict) -> u8) -> Finished {
        unimplemented!()
    }
}
