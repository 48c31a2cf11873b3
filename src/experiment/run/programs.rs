// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of a run: starts them, follows them until their exits are in the log, ends them.
//! [`crate::experiment::run::phases`] determines when each one starts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emud_monitor::log::{ExitLine, Line, LineSender, OutputStream, PhaseName};
use rustix::process::Signal;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::experiment::scenario::{Node, Plan, Program};

use super::folders::Folders;
use super::network::Network;
use super::output::Sink;
use super::process::{Handle, Process, Start, argv};
use super::{Progress, RunError, Together, User, describe, terminal};

/// Settings that the programs of a run share.
pub struct Common {
    pub plan: Rc<Plan>,
    pub network: Arc<Network>,
    pub log: LineSender,
    /// Whether lines of output are logged.
    pub log_output: bool,
    /// Whether lines of output are not printed.
    pub quiet: bool,
    pub progress: Progress,
    /// The environment of every program.
    pub env: Vec<(String, String)>,
    pub folders: Folders,
    /// The user that they run as; `None`: root.
    pub user: Option<User>,
    /// Whether commands of the preparation and the clean-up still run as root.
    pub root_prepares: bool,
    /// The other hosts, which may wait for programs of this one.
    pub together: Option<Together>,
}

impl Common {
    /// Returns the user for commands of the preparation and the clean-up.
    pub fn preparing(&self) -> Option<&User> {
        self.user.as_ref().filter(|_| !self.root_prepares)
    }
}

/// A started program, and what receives its exit after the last of its output.
pub(crate) type Started = (Handle, oneshot::Receiver<ExitLine>);

/// All programs of a run.
pub struct Programs {
    pub(crate) common: Common,
    /// The started programs.
    handles: RefCell<Vec<(PhaseName, Handle)>>,
    /// Tasks that follow a program until its exit is in the log, independent of other waiters.
    following: RefCell<JoinSet<()>>,
    /// Started services.
    pub(crate) services: RefCell<Vec<Started>>,
    /// Whether no more programs under test start.
    pub(crate) closing: watch::Sender<bool>,
    /// Nodes for which others need not wait any more.
    pub(crate) done: watch::Sender<BTreeSet<String>>,
    /// Whether it has begun to end them.
    ending: Arc<AtomicBool>,
    /// Output that could not be printed, for the user.
    unprinted: RefCell<Vec<crate::experiment::run::output::Failed>>,
}

impl Programs {
    /// Returns the programs; none of them runs yet.
    pub fn new(common: Common) -> Self {
        Self {
            common,
            handles: RefCell::default(),
            following: RefCell::default(),
            services: RefCell::default(),
            closing: watch::Sender::default(),
            done: watch::Sender::default(),
            ending: Arc::default(),
            unprinted: RefCell::default(),
        }
    }

    /// Prevents the start of further programs under test.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Passes a signal on to all running programs.
    pub fn pass_on(&self, signal: Signal) {
        self.ending.store(true, Ordering::Relaxed);
        let handles = self.of(|_| true);
        handles.iter().for_each(|handle| handle.ask(signal));
    }

    /// Ends the programs under test, and prevents the start of further ones.
    pub async fn end_under_test(&self) {
        self.close();
        self.ending.store(true, Ordering::Relaxed);
        end(self.of(|phase| phase == PhaseName::Measurement)).await;
    }

    /// Ends the running command of the clean-up.
    pub async fn end_cleaning(&self) {
        end(self.of(|phase| phase == PhaseName::CleanUp)).await;
    }

    /// Ends all running programs, and waits until their exits are in the log.
    pub async fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        end(self.of(|_| true)).await;
        let following = self.following.take();
        following.join_all().await;
    }

    /// Returns sentences about output that could not be printed.
    pub fn unprinted(&self) -> Vec<String> {
        let failed = self.unprinted.take();
        failed
            .iter()
            .filter_map(|failed| failed.sentence())
            .collect()
    }

    fn of(&self, wanted: impl Fn(PhaseName) -> bool) -> Vec<Handle> {
        let handles = self.handles.borrow();
        let wanted = handles.iter().filter(|(phase, _)| wanted(*phase));
        wanted.map(|(_, handle)| handle.clone()).collect()
    }

    /// Starts a program and follows it.
    pub(crate) fn start(
        &self,
        node: &Node,
        phase: PhaseName,
        program: &Program,
        user: Option<&User>,
    ) -> Result<Started, RunError> {
        let process = self.process(node, phase, program, user)?;
        let handle = process.handle();
        let (tell, told) = oneshot::channel();
        let log = self.common.log.clone();
        let mut following = self.following.borrow_mut();
        following.spawn_local(async move {
            let exit = ended(process).await;
            log.line(Line::Exit(exit.clone()));
            // The receiver may be gone.
            let _ = tell.send(exit);
        });
        Ok((handle, told))
    }

    /// Starts a program without a log line: it runs many times.
    pub(crate) fn process(
        &self,
        node: &Node,
        phase: PhaseName,
        program: &Program,
        user: Option<&User>,
    ) -> Result<Process, RunError> {
        let common = &self.common;
        // A single program may use emud's terminal, or its input.
        let alone = common.plan.text.is_none() && phase == PhaseName::Measurement;
        let own = describe::of_node(node, &common.folders);
        let failed = crate::experiment::run::output::Failed::default();
        let start = Start {
            node: &node.name,
            phase,
            program,
            env: (own.into_iter().chain(common.env.clone()))
                .chain(node.env.clone())
                .collect(),
            working: common.folders.working(node),
            from: &common.folders.start,
            user,
            terminal: alone && terminal::is_there(),
            input: alone,
            sink: Sink {
                node: node.name.clone(),
                stream: OutputStream::Stdout,
                log: common.log_output.then(|| common.log.clone()),
                quiet: common.quiet,
                prefix: (!alone).then(|| format!("{}| ", node.name)),
                progress: common.progress.clone(),
                failed: failed.clone(),
                ending: self.ending.clone(),
            },
        };
        let process = Process::start(&common.network.place, start);
        let process = process.map_err(|error| RunError::Command {
            node: node.name.clone(),
            command: argv(program, user).join(" "),
            error,
        })?;
        let handle = (phase, process.handle());
        self.handles.borrow_mut().push(handle);
        self.unprinted.borrow_mut().push(failed);
        Ok(process)
    }
}

async fn ended(process: Process) -> ExitLine {
    let resizing = process.terminal.clone().map(|terminal| {
        tokio::task::spawn_local(async move { terminal::follow_size(&terminal).await })
    });
    let exit = process.wait().await;
    if let Some(resizing) = resizing {
        resizing.abort();
    }
    exit
}

/// Ends them together.
async fn end(handles: Vec<Handle>) {
    let mut ending = JoinSet::new();
    for handle in handles {
        ending.spawn_local(async move { handle.end().await });
    }
    ending.join_all().await;
}
