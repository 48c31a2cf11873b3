// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out one run, from the creation of its network to the removal.

mod clean_up;
mod measure;

use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::log::{
    self, ExitLine, Judgement, Line, LinkEvent, LinkLine, PhaseLine, PhaseName,
};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::datapath::attach::HolderStart;
use crate::experiment::scenario::{Plan, beyond_a_host};
use crate::host::now_ns;
use crate::host::runtime::invoking_user;
use crate::host::signals::Signals;
use crate::host::{single_threaded, spawn};
use crate::metrics::Media;
use crate::monitor::session::experiment::{Experiment, ExperimentSetup, Facts, Finished};

use super::folders::Folders;
use super::links::How;
use super::network::Network;
use super::programs::{Common, Programs};
use super::{Progress, RunError, Settings, describe, verdict};

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Result of the monitor.
    pub finished: Finished,
    /// Exits of the programs under test, in the order of the plan.
    pub exits: Vec<ExitLine>,
    /// Problems at its end.
    pub notes: Vec<String>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Outcome {
    /// Returns the verdict with its reasons.
    pub fn judgement(&self) -> &Judgement {
        &self.finished.judgement
    }
}

/// Carries out a plan, and prints to standard error which links are emulated by which engine.
///
/// # Errors
/// The network, a link or a program could not be started. Everything is removed then, and the log
/// has an end line with the error.
pub fn conduct(
    plan: &Plan,
    settings: &Settings,
    holder: fn(HolderStart) -> std::process::Command,
    log: Option<File>,
) -> Result<Outcome, RunError> {
    if let Some(why) = beyond_a_host(plan.nodes.len(), plan.wires.len()) {
        return Err(RunError::TooLarge(why));
    }
    let system = |what| move |error| RunError::System { what, error };
    let runtime = single_threaded().map_err(system("starting a runtime"))?;
    let _within = runtime.enter();
    let mut signals = Signals::new().map_err(system("catching signals"))?;
    let media = Media::default();
    let metrics = settings.metrics.as_ref().map(|at| at.try_clone());
    let experiment = Experiment::start(ExperimentSetup {
        config: settings.config.clone(),
        users: reporters(settings),
        metrics: metrics
            .transpose()
            .map_err(system("serving metrics"))?
            .map(|at| (at, media.clone())),
        log,
    })?;
    let mut run = Run {
        plan: Rc::new(plan.clone()),
        settings,
        experiment: &experiment,
        media,
        progress: Progress::new(settings.repeat, settings.quiet || alone_at_terminal(plan)),
        notes: vec![],
        facts: Facts::default(),
        exits: vec![],
        signal: None,
        measured: false,
    };
    let how = How {
        seed: settings.seed,
        engine: settings.engine,
        peer_capped: settings.in_place.is_none(),
        holder,
    };
    let carried_out = LocalSet::new().block_on(&runtime, run.carry_out(how, &mut signals));
    run.progress.end();
    let (notes, mut facts, exits, signal) = (run.notes, run.facts, run.exits, run.signal);
    let measured = run.measured;
    let failed = carried_out.as_ref().err().map(RunError::exit_code);
    facts
        .invalid
        .extend(carried_out.as_ref().err().map(RunError::to_string));
    let finished = experiment.finish(facts, |verdict| {
        failed.unwrap_or_else(|| {
            let first = settings.exit_code;
            verdict::exit_code(first, verdict, &exits, signal, measured)
        })
    });
    carried_out?;
    Ok(Outcome {
        finished,
        exits,
        notes,
        signal,
    })
}

/// Returns the users that may report: the one who called sudo, and the one of the programs.
fn reporters(settings: &Settings) -> Vec<u32> {
    let of_programs = settings.user.as_ref().map(|user| user.uid.as_raw());
    invoking_user().into_iter().chain(of_programs).collect()
}

/// Returns whether a single program has exclusive use of emud's terminal.
fn alone_at_terminal(plan: &Plan) -> bool {
    plan.text.is_none() && crate::experiment::run::terminal::is_there()
}

struct Run<'a> {
    plan: Rc<Plan>,
    settings: &'a Settings,
    experiment: &'a Experiment,
    /// Media whose stations are among the metrics.
    media: Media,
    progress: Progress,
    notes: Vec<String>,
    facts: Facts,
    exits: Vec<ExitLine>,
    signal: Option<i32>,
    /// Whether the measured phase was reached.
    measured: bool,
}

impl Run<'_> {
    /// Carries out the three phases. Everything created is removed in any case; the first error is returned.
    async fn carry_out(&mut self, how: How, signals: &mut Signals) -> Result<(), RunError> {
        self.phase(PhaseName::Preparation);
        let folders = Folders::create(&self.plan, self.settings)?;
        let done = self.in_folders(&folders, how, signals).await;
        folders.remove_empty(&self.plan);
        done
    }

    async fn in_folders(
        &mut self,
        folders: &Folders,
        how: How,
        signals: &mut Signals,
    ) -> Result<(), RunError> {
        let mut network = match &self.settings.in_place {
            Some(interface) => Network::here(interface)?,
            None => Network::build(&self.plan, folders, self.settings)?,
        };
        if let Err(e) = self.attach(&mut network, how, signals).await {
            // The earlier error is returned.
            let _ = network.take_down();
            return Err(e);
        }
        self.attached(&mut network, signals).await;
        let network = Arc::new(network);
        let programs = Rc::new(self.programs(&network, folders));
        let done = match self.signal {
            None => self.with_network(&network, &programs, signals).await,
            Some(_) => Ok(()),
        };
        self.clean_up(&network, &programs, signals).await;
        drop(programs);
        // A program that could not be ended still has a reference; then the network ends with this
        // process.
        let down = Arc::into_inner(network).map_or(Ok(()), Network::take_down);
        done.and(down)
    }

    /// Attaches the links until a signal arrives: a large number of them takes seconds.
    async fn attach(
        &mut self,
        network: &mut Network,
        how: How,
        signals: &mut Signals,
    ) -> Result<(), RunError> {
        for n in 0..self.plan.links.len() {
            network.attach(&self.plan, n, how)?;
            tokio::select! {
                biased;
                signal = signals.any() => {
                    self.signal = Some(signal);
                    return Ok(());
                }
                () = sleep(Duration::ZERO) => {}
            }
        }
        Ok(())
    }

    /// Logs the attached links, and prints them; a signal ends the wait for a reader that has stopped.
    async fn attached(&mut self, network: &mut Network, signals: &mut Signals) {
        for medium in &network.media {
            self.media.add(medium.source());
        }
        let own = self.experiment.notes().iter().cloned();
        let notes = network.notes.drain(..).chain(own);
        let notes: Vec<String> = notes.chain(self.settings.notes.clone()).collect();
        let line = describe::run(&self.plan, self.settings, network, &notes);
        self.experiment.line(Line::Run(Box::new(line.clone())));
        for (link, _) in &network.links {
            self.link(&link.name, LinkEvent::Attached);
        }
        // Also if it has none: those of other experiments on this host are not judged.
        self.experiment.judge_links(network.own_links());
        if !self.settings.quiet && self.signal.is_none() {
            self.say(line, signals).await;
        }
    }

    async fn say(&mut self, line: log::Run, signals: &mut Signals) {
        let (tell, said) = oneshot::channel::<()>();
        let progress = self.progress.clone();
        let say = move || {
            progress.aside(|| describe::say(&line));
            drop(tell);
        };
        // The same is in the log.
        let _ = spawn("emud-say", say);
        tokio::select! {
            biased;
            _ = said => {}
            signal = signals.any() => self.signal = Some(signal),
        }
    }

    fn programs(&self, network: &Arc<Network>, folders: &Folders) -> Programs {
        let socket = self.experiment.socket();
        Programs::new(Common {
            plan: self.plan.clone(),
            network: network.clone(),
            log: self.experiment.sender(),
            log_output: self.settings.log_output,
            quiet: self.settings.quiet,
            progress: self.progress.clone(),
            env: describe::environment(&self.plan, self.settings, network, socket),
            folders: folders.clone(),
            user: self.settings.user.clone(),
            root_prepares: self.settings.root_prepares,
            together: self.settings.together.clone(),
        })
    }

    fn phase(&self, phase: PhaseName) {
        self.progress.phase(match phase {
            PhaseName::Preparation => "preparation",
            PhaseName::Measurement => "measurement",
            PhaseName::CleanUp => "clean-up",
        });
        let mono_ns = now_ns();
        self.experiment
            .line(Line::Phase(PhaseLine { mono_ns, phase }));
    }

    fn link(&self, link: &str, event: LinkEvent) {
        self.experiment.line(Line::Link(LinkLine {
            mono_ns: now_ns(),
            link: link.to_owned(),
            event,
            what: vec![],
            toml: None,
            phase: None,
        }));
    }
}
