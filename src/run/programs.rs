// SPDX-License-Identifier: GPL-2.0-only
//! The programs of a plan: those of the preparation, the services, and those under test, each
//! when its time has come.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::log::{ExitLine, Line, LineSender, OutputStream, PhaseName};
use rustix::process::Signal;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::scenario::{Node, Plan, Program};

use super::network::Network;
use super::output::Sink;
use super::process::{Handle, Process, Start, argv};
use super::{Progress, RunError, terminal};

/// Between two looks whether a service is ready.
const READY_EVERY: Duration = Duration::from_millis(50);

/// What programs of a run have in common.
pub struct Programs {
    pub plan: Rc<Plan>,
    pub network: Arc<Network>,
    pub log: LineSender,
    /// Lines of output go to the log.
    pub log_output: bool,
    pub progress: Progress,
    /// For every program.
    pub env: Vec<(String, String)>,
    /// Those that were started.
    handles: RefCell<Vec<(PhaseName, Handle)>>,
    /// No more programs under test.
    closing: watch::Sender<bool>,
    /// Nodes that others need not wait for any more.
    done: watch::Sender<BTreeSet<String>>,
}

impl Programs {
    pub fn new(
        plan: Rc<Plan>,
        network: Arc<Network>,
        log: LineSender,
        log_output: bool,
        progress: Progress,
        env: Vec<(String, String)>,
    ) -> Self {
        Self {
            plan,
            network,
            log,
            log_output,
            progress,
            env,
            handles: RefCell::default(),
            closing: watch::Sender::default(),
            done: watch::Sender::default(),
        }
    }

    /// Runs the commands of the preparation, one after the other, then starts the services and
    /// waits until each is ready. The services go on.
    ///
    /// # Errors
    /// A command fails, a service ends or does not get ready in time.
    pub async fn prepare(self: &Rc<Self>) -> Result<JoinSet<ExitLine>, RunError> {
        let until = Instant::now() + self.plan.ready_within;
        for node in &self.plan.nodes {
            for text in &node.prepare {
                self.must(node, text).await?;
            }
        }
        let mut services = JoinSet::new();
        for node in self.plan.nodes.iter().filter(|node| node.service) {
            if let Some(program) = &node.command {
                let process = self.start(node, PhaseName::Preparation, program)?;
                let this = self.clone();
                services.spawn_local(async move { this.ended(process).await });
                self.ready(node, until, &mut services).await?;
                self.let_go(node);
            }
        }
        Ok(services)
    }

    /// Runs the programs under test until all have ended. Their exits, in the plan's order.
    ///
    /// # Errors
    /// One cannot be started; others may run.
    pub async fn measure(self: &Rc<Self>) -> Result<Vec<ExitLine>, RunError> {
        let mut running = JoinSet::new();
        let under_test = |node: &&Node| !node.service && node.command.is_some();
        for (n, node) in self.plan.nodes.iter().filter(under_test).enumerate() {
            let (this, node) = (self.clone(), node.clone());
            running.spawn_local(async move { (n, this.one(&node).await) });
        }
        let mut exits = vec![];
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok((n, exit)) => exits.extend(exit?.map(|exit| (n, exit))),
                Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
                Err(_) => {}
            }
        }
        exits.sort_by_key(|(n, _)| *n);
        Ok(exits.into_iter().map(|(_, exit)| exit).collect())
    }

    /// Runs the commands of the clean-up; returns sentences for those that fail.
    pub async fn clean_up(self: &Rc<Self>) -> Vec<String> {
        let mut failed = vec![];
        for node in &self.plan.nodes {
            for text in &node.clean_up {
                match self.shell(node, PhaseName::CleanUp, text).await {
                    Ok(exit) if exit.code == Some(0) => {}
                    Ok(exit) => failed.push(format!(
                        "{}: `{text}` of the clean-up ended with {}",
                        node.name,
                        status(&exit)
                    )),
                    Err(e) => failed.push(e.to_string()),
                }
            }
        }
        failed
    }

    /// Passes a signal on to all that run.
    pub fn pass_on(&self, signal: Signal) {
        self.of(|_| true)
            .iter()
            .for_each(|handle| handle.ask(signal));
    }

    /// Ends the programs under test, and starts no more of them.
    pub async fn end_under_test(&self) {
        self.closing.send_replace(true);
        end(self.of(|phase| phase == PhaseName::Measurement)).await;
    }

    /// Ends all that run.
    pub async fn end(&self) {
        end(self.of(|_| true)).await;
    }

    fn of(&self, wanted: impl Fn(PhaseName) -> bool) -> Vec<Handle> {
        let handles = self.handles.borrow();
        let wanted = handles.iter().filter(|(phase, _)| wanted(*phase));
        wanted.map(|(_, handle)| handle.clone()).collect()
    }

    async fn must(self: &Rc<Self>, node: &Node, text: &str) -> Result<(), RunError> {
        let exit = self.shell(node, PhaseName::Preparation, text).await?;
        if exit.code == Some(0) {
            return Ok(());
        }
        Err(RunError::Preparation {
            node: node.name.clone(),
            command: text.to_owned(),
            status: status(&exit),
        })
    }

    async fn ready(
        self: &Rc<Self>,
        node: &Node,
        until: Instant,
        services: &mut JoinSet<ExitLine>,
    ) -> Result<(), RunError> {
        let Some(ready) = &node.ready else {
            return Ok(());
        };
        loop {
            if self.quietly(node, ready).await?.code == Some(0) {
                return Ok(());
            }
            if let Some(Ok(exit)) = services.try_join_next() {
                return Err(RunError::Service {
                    node: exit.node.clone(),
                    command: exit.command.join(" "),
                    status: status(&exit),
                });
            }
            if Instant::now() >= until {
                return Err(RunError::NotReady {
                    node: node.name.clone(),
                    ready: ready.clone(),
                    seconds: self.plan.ready_within.as_secs_f64(),
                });
            }
            sleep(READY_EVERY).await;
        }
    }

    /// A program under test, from its wait to its end; none: it was not started any more.
    async fn one(self: &Rc<Self>, node: &Node) -> Result<Option<ExitLine>, RunError> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            () = self.turn(node) => {}
            _ = closing.wait_for(|closing| *closing) => return Ok(None),
        }
        let program = node.command.as_ref().unwrap_or(&Program::Interactive);
        let process = self.start(node, PhaseName::Measurement, program)?;
        let exit = self.ended(process).await;
        self.let_go(node);
        Ok(Some(exit))
    }

    /// Nobody has to wait for this node any more.
    fn let_go(&self, node: &Node) {
        self.done.send_modify(|done| {
            done.insert(node.name.clone());
        });
    }

    /// Until a program is to start.
    async fn turn(&self, node: &Node) {
        let mut done = self.done.subscribe();
        let all = |done: &BTreeSet<String>| node.waits_for.iter().all(|other| done.contains(other));
        // The other end is there as long as `self`.
        let _ = done.wait_for(all).await;
        sleep(node.start).await;
    }

    async fn shell(
        self: &Rc<Self>,
        node: &Node,
        phase: PhaseName,
        text: &str,
    ) -> Result<ExitLine, RunError> {
        let process = self.start(node, phase, &Program::Shell(text.to_owned()))?;
        Ok(self.ended(process).await)
    }

    /// Without output and log: it is run many times.
    async fn quietly(self: &Rc<Self>, node: &Node, text: &str) -> Result<ExitLine, RunError> {
        let program = Program::Shell(format!("exec >/dev/null 2>&1; {text}"));
        let process = self.start(node, PhaseName::Preparation, &program)?;
        Ok(process.wait().await)
    }

    async fn ended(self: &Rc<Self>, process: Process) -> ExitLine {
        let resizing = process.terminal.clone().map(|terminal| {
            tokio::task::spawn_local(async move { terminal::follow_size(&terminal).await })
        });
        let exit = process.wait().await;
        if let Some(resizing) = resizing {
            resizing.abort();
        }
        self.log.line(Line::Exit(exit.clone()));
        exit
    }

    fn start(&self, node: &Node, phase: PhaseName, program: &Program) -> Result<Process, RunError> {
        // One program alone may have emud's terminal, or input.
        let alone = self.plan.text.is_none() && phase == PhaseName::Measurement;
        let start = Start {
            node: &node.name,
            phase,
            program,
            env: self.env_of(node),
            terminal: alone && terminal::is_there(),
            input: alone,
            sink: Sink {
                node: node.name.clone(),
                stream: OutputStream::Stdout,
                log: self.log_output.then(|| self.log.clone()),
                prefix: (!alone).then(|| format!("{}| ", node.name)),
                progress: self.progress.clone(),
            },
        };
        let process = Process::start(&self.network.place, start);
        let process = process.map_err(|error: io::Error| RunError::Command {
            node: node.name.clone(),
            command: argv(program).join(" "),
            error,
        })?;
        self.handles.borrow_mut().push((phase, process.handle()));
        Ok(process)
    }

    fn env_of(&self, node: &Node) -> Vec<(String, String)> {
        let own = [("EMUD_NODE".to_owned(), node.name.clone())];
        own.into_iter()
            .chain(self.env.clone())
            .chain(node.env.clone())
            .collect()
    }
}

/// Ends them together.
async fn end(handles: Vec<Handle>) {
    let mut ending = JoinSet::new();
    for handle in handles {
        ending.spawn_local(async move { handle.end().await });
    }
    ending.join_all().await;
}

/// How a program ended, in words.
pub fn status(exit: &ExitLine) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown state".to_owned(),
    }
}
