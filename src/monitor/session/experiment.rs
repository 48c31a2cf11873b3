// SPDX-License-Identifier: MIT OR Apache-2.0
//! A monitor in a thread of its own, for `emud run`: its alarms and the lines of others in one
//! log, and a verdict at the end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use emud_monitor::Config;
use emud_monitor::log::{
    Clock, Judgement, Line, LineSender, PerResource, RunVerdict, SortedLog, Verdict, mono_ns,
};
use tokio::sync::{oneshot, watch};

pub use super::judge::{Facts, Failure};
use super::observing::{Begun, Parts, observe};
pub use super::witness::AlarmsSoFar;
use super::{ObserveError, StartError};

/// A run is short, and each alarm is part of its verdict: the limit is against endless logs.
const LIMIT: u32 = 1000;

/// What an experiment wants of its monitor.
#[derive(Debug)]
pub struct ExperimentSetup {
    pub config: Config,
    /// The user of the programs, who may report.
    pub user: Option<u32>,
    /// None: lines go nowhere; there is a verdict all the same.
    pub log: Option<File>,
}

/// What became of an experiment.
#[derive(Debug)]
pub struct Finished {
    pub judgement: Judgement,
    pub verdicts: PerResource<Verdict>,
    /// The log.
    pub written: io::Result<()>,
    /// Output lines and samples that the log could not take.
    pub lines_lost: u64,
}

/// What is told to the thread at the end.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) facts: Facts,
    pub(crate) measured: Measured,
    /// Network namespaces of the links that count; none: all.
    pub(crate) netns: Option<BTreeSet<u32>>,
}

/// The measured phase, ns of CLOCK_MONOTONIC.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Measured {
    began: Option<u64>,
    ended: Option<u64>,
}

impl Measured {
    /// From, until: its end, or `end` if it has none.
    pub(crate) fn until(&self, end: u64) -> Option<[u64; 2]> {
        let began = self.began?;
        Some([began, self.ended.unwrap_or(end).max(began)])
    }
}

/// A monitor that runs, and the log. Dropped without [`Experiment::finish`] it ends, and its
/// log has no end line.
#[derive(Debug)]
pub struct Experiment {
    begun: Begun,
    sender: LineSender,
    alarms: watch::Receiver<AlarmsSoFar>,
    asked: Mutex<Asked>,
    end: oneshot::Sender<Asked>,
    judged: mpsc::Receiver<Judgement>,
    agreed: mpsc::Sender<Judgement>,
    thread: JoinHandle<Option<crate::monitor::session::Finished>>,
}

impl Experiment {
    /// Loads the monitor's programs, starts its thread, and writes the start line. An alarm
    /// limit below 1000 is raised to that.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind.
    pub fn start(setup: ExperimentSetup) -> Result<Self, StartError> {
        let mut config = setup.config;
        config.alarms.limit = config.alarms.limit.max(LIMIT);
        let clock = Clock::now();
        let log = SortedLog::new(clock, setup.log).map_err(no_thread)?;
        let sender = log.sender().clone();
        let (tell, alarms) = watch::channel(AlarmsSoFar::default());
        let (end, ended) = oneshot::channel();
        let (begin, begun) = mpsc::channel();
        let (judge, judged) = mpsc::channel();
        let (agreed, agree) = mpsc::channel();
        let parts = Parts {
            config,
            user: setup.user,
            clock,
            log,
            tell,
            begin,
            ended,
            judge,
            agree,
        };
        let thread = thread::Builder::new()
            .name("emud-monitor".into())
            .spawn(move || observe(parts))
            .map_err(no_thread)?;
        let gone = |_| no_thread(io::ErrorKind::BrokenPipe.into());
        Ok(Self {
            begun: begun.recv().map_err(gone)??,
            sender,
            alarms,
            asked: Mutex::default(),
            end,
            judged,
            agreed,
            thread,
        })
    }

    /// What was refused or cannot be watched, and what that means.
    pub fn notes(&self) -> &[String] {
        &self.begun.notes
    }

    /// Where programs report; commands find it in EMUD_MONITOR_SOCKET. None: nowhere.
    pub fn socket(&self) -> Option<&Path> {
        self.begun.socket.as_deref()
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
    pub fn judge_links_in(&self, netns: &[u32]) {
        self.asked().netns = Some(netns.iter().copied().collect());
        self.begun.remote.look();
    }

    /// The measured phase begins now: only what touches it counts for the verdict. Returns
    /// CLOCK_MONOTONIC, ns.
    pub fn begin_measuring(&self) -> u64 {
        // Alarms of the preparation must not use up the limit.
        self.begun.remote.reset();
        let now = mono_ns();
        self.asked().measured.began = Some(now);
        now
    }

    /// It ends now; without this call it does with [`Experiment::finish`].
    pub fn end_measuring(&self) -> u64 {
        let now = mono_ns();
        self.asked().measured.ended = Some(now);
        now
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        // Nothing that holds it can panic.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it: waits half a second at most for episodes that go on, judges, writes the end
    /// line with the exit code that `exit` says, and waits some time until the log is written.
    pub fn finish(self, facts: Facts, exit: impl FnOnce(RunVerdict) -> u8) -> Finished {
        let asked = Asked {
            facts,
            ..std::mem::take(&mut *self.asked())
        };
        // Refused, as all below, only if the thread panicked.
        let _ = self.end.send(asked);
        let mut judgement = self.judged.recv().unwrap_or_else(|_| broken());
        judgement.exit_code = exit(judgement.verdict);
        let _ = self.agreed.send(judgement.clone());
        let finished = self.thread.join().ok().flatten();
        let lost = || io::Error::other("the monitor's thread failed");
        let (verdicts, written) = match finished {
            Some(finished) => (finished.verdicts, finished.written.into_iter().collect()),
            None => (PerResource::new(), Err(lost())),
        };
        Finished {
            judgement,
            verdicts,
            written,
            lines_lost: self.sender.lost(),
        }
    }
}

fn no_thread(error: io::Error) -> StartError {
    StartError::Observe(ObserveError::System {
        attempted: "starting a thread",
        error,
    })
}

fn broken() -> Judgement {
    Judgement {
        verdict: RunVerdict::Invalid,
        contention: vec![],
        contended_seconds: vec![],
        invalid: vec!["the monitor's thread failed".into()],
        measured_mono_ns: None,
        exit_code: 0,
    }
}
