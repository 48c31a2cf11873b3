// SPDX-License-Identifier: MIT OR Apache-2.0
//! A monitor in a separate thread, for `emud run`: its alarms and other lines in one log, and a
//! verdict at the end.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use emud_monitor::Config;
use emud_monitor::log::{
    Clock, Judgement, Line, LineSender, PerResource, RunVerdict, SortedLog, Verdict,
};
use tokio::sync::{oneshot, watch};

use super::at_end::Asked;
use super::judge::lowers;
pub use super::judge::{
    DISORDERED, ENGINE_DROPPED, Facts, Failure, LOAD, LOAD_AND_DISK, OwnLinks, only_disordered,
    only_dropped, only_late,
};
use super::observing::{Begun, Parts, observe};
pub use super::witness::{Episodes, SETTLED};
use super::{ObserveError, StartError};
use crate::host::now_ns;
use crate::host::spawn;
use crate::metrics::Media;

/// Limit of alarms: a run is short, and each alarm is part of its verdict, so the limit only
/// prevents endless logs.
const LIMIT: u32 = 1000;

/// Settings of an experiment's monitor.
#[derive(Debug)]
pub struct ExperimentSetup {
    /// The definition of contention.
    pub config: Config,
    /// Users besides root that may report.
    pub users: Vec<u32>,
    /// Where metrics are served, also of the stations of these media.
    pub metrics: Option<(TcpListener, Media)>,
    /// `None`: lines are discarded; there is a verdict nevertheless.
    pub log: Option<File>,
}

/// The result of an experiment.
#[derive(Debug)]
pub struct Finished {
    /// The verdict with its reasons.
    pub judgement: Judgement,
    /// The verdict of each resource.
    pub verdicts: PerResource<Verdict>,
    /// The result of writing the log.
    pub written: io::Result<()>,
    /// Output lines and samples that the log dropped.
    pub lines_lost: u64,
}

/// A running monitor and its log. If it is dropped without [`Experiment::finish`], it ends and its
/// log has no end line.
#[derive(Debug)]
pub struct Experiment {
    begun: Begun,
    sender: LineSender,
    episodes: watch::Receiver<Episodes>,
    asked: Mutex<Asked>,
    end: oneshot::Sender<Asked>,
    judged: mpsc::Receiver<Judgement>,
    agreed: mpsc::Sender<Judgement>,
    thread: JoinHandle<Option<crate::monitor::session::Finished>>,
}

impl Experiment {
    /// Loads the monitor's programs, starts its thread, and writes the start line. An alarm limit
    /// below 1000 is raised to 1000.
    ///
    /// # Errors
    /// [`StartError`]; everything is removed then.
    pub fn start(setup: ExperimentSetup) -> Result<Self, StartError> {
        let mut config = setup.config;
        config.alarms.limit = config.alarms.limit.max(LIMIT);
        let clock = Clock::now();
        let log = SortedLog::new(clock, setup.log).map_err(no_thread)?;
        let sender = log.sender().clone();
        let (tell, episodes) = watch::channel(Episodes::default());
        let (end, ended) = oneshot::channel();
        let (begin, begun) = mpsc::channel();
        let (judge, judged) = mpsc::channel();
        let (agreed, agree) = mpsc::channel();
        let parts = Parts {
            config,
            users: setup.users,
            metrics: setup.metrics,
            clock,
            log,
            episodes: tell,
            begin,
            ended,
            judge,
            agree,
        };
        let thread = spawn("emud-monitor", move || observe(parts)).map_err(no_thread)?;
        let gone = |_| no_thread(io::ErrorKind::BrokenPipe.into());
        Ok(Self {
            begun: begun.recv().map_err(gone)??,
            sender,
            episodes,
            asked: Mutex::default(),
            end,
            judged,
            agreed,
            thread,
        })
    }

    /// Returns notes about rejected hooks and resources that cannot be watched.
    pub fn notes(&self) -> &[String] {
        &self.begun.notes
    }

    /// Returns the socket for reports; commands find it in EMUD_MONITOR_SOCKET. `None`: there is no
    /// socket.
    pub fn socket(&self) -> Option<&Path> {
        self.begun.socket.as_deref()
    }

    /// Passes a line to the log, as [`LineSender::line`] does.
    pub fn line(&self, line: Line) {
        self.sender.line(line);
    }

    /// Returns a sender for other threads.
    pub fn sender(&self) -> LineSender {
        self.sender.clone()
    }

    /// Returns a channel that changes with each alarm and each end of an episode.
    pub fn episodes(&self) -> watch::Receiver<Episodes> {
        self.episodes.clone()
    }

    /// Returns whether one of these episodes lowers the verdict of the measured phase, which lasts.
    /// One that began before it, and is open, does so after [`SETTLED`] only: its end may not have
    /// been reported yet.
    pub fn is_touched_by(&self, episodes: &Episodes) -> bool {
        let asked = self.asked();
        let (now, own) = (now_ns(), asked.own.as_ref());
        asked.measured.began.is_some_and(|began| {
            let mut all = episodes.0.iter();
            all.any(|episode| lowers(episode, [began, now], own))
        })
    }

    /// Searches for new links immediately. Only failures of these links count for the verdict; if it is
    /// never called, all links on this host count.
    pub fn judge_links(&self, own: OwnLinks) {
        self.asked().own = Some(own);
        self.begun.remote.look();
    }

    /// Starts the measured phase: only episodes that overlap with it count for the verdict. Returns
    /// the time, ns of CLOCK_MONOTONIC.
    pub fn begin_measuring(&self) -> u64 {
        // Alarms of the preparation must not count towards the limit.
        self.begun.remote.reset();
        let now = now_ns();
        self.asked().measured.began = Some(now);
        now
    }

    /// Ends the measured phase; otherwise it ends with [`Experiment::finish`].
    pub fn end_measuring(&self) -> u64 {
        let now = now_ns();
        self.asked().measured.ended = Some(now);
        now
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        // No holder of the lock can panic.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the experiment: waits up to half a second for open episodes, judges, writes the end
    /// line with the exit code from `exit`, and waits for a limited time until the log is written.
    pub fn finish(self, facts: Facts, exit: impl FnOnce(RunVerdict) -> u8) -> Finished {
        let asked = Asked {
            facts,
            ..std::mem::take(&mut *self.asked())
        };
        // This and the following calls only fail if the thread panicked.
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
