// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out one run, from the creation of its network to the removal.

use std::fs::File;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::log::{
    ExitLine, Judgement, Line, LinkEvent, LinkLine, PhaseLine, PhaseName, mono_ns,
};
use rustix::process::Signal;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::datapath::attach::HolderStart;
use crate::experiment::scenario::Plan;
use crate::host::runtime::invoking_user;
use crate::host::signals::Signals;
use crate::metrics::Media;
use crate::monitor::session::experiment::{Experiment, ExperimentSetup, Facts, Finished, SETTLED};

use super::artefacts::Folders;
use super::links::How;
use super::media::OnAir;
use super::network::Network;
use super::programs::{Common, Programs};
use super::sampler::{Found, Parts, Sampler};
use super::{Progress, RunError, Settings, artefacts, describe, together, verdict};

/// Interval of checks of the counters if no samples are requested.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause between preparation and measurement: long enough for idle time on each CPU, then up to a
/// limit until no contention is in progress.
const REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(2);
/// How long programs may take to end after a forwarded signal before they are killed.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);

/// How long links of a part outlive its measured phase if nothing removes them.
const LAST_RESORT: Duration = Duration::from_secs(60);

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What the monitor found.
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

/// Why the measured phase ended.
enum Over {
    Complete,
    Time,
    Contention,
    /// The experiment ended on another host.
    Elsewhere,
    Signal(i32),
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
    let system = |what| move |error| RunError::System { what, error };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("starting a runtime"))?;
    let _within = runtime.enter();
    let mut signals = Signals::new().map_err(system("catching signals"))?;
    let media = Media::default();
    let metrics = settings.metrics.as_ref().map(|at| at.try_clone());
    let experiment = Experiment::start(ExperimentSetup {
        config: settings.config.clone(),
        user: reporter(settings),
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

/// Returns the user who may report: of a part of a larger run nobody called emud through sudo.
fn reporter(settings: &Settings) -> Option<u32> {
    let of_programs = settings.user.as_ref().map(|user| user.uid.as_raw());
    invoking_user().or(of_programs.filter(|_| settings.together.is_some()))
}

/// Returns whether a single program has exclusive use of emud's terminal.
fn alone_at_terminal(plan: &Plan) -> bool {
    plan.text.is_none() && crate::experiment::run::terminal::is_there()
}

struct Run<'a> {
    plan: Rc<Plan>,
    settings: &'a Settings,
    experiment: &'a Experiment,
    /// For the metrics.
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
    /// The three phases. Everything created is removed in any case; the first error is returned.
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
            None => Network::build(&self.plan, folders, self.settings.seed)?,
        };
        if let Err(e) = self.attach(&mut network, how, signals).await {
            // The earlier error is returned.
            let _ = network.take_down();
            return Err(e);
        }
        self.attached(&mut network);
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

    /// Logs the attached links.
    fn attached(&mut self, network: &mut Network) {
        for medium in &network.media {
            self.media.add(medium.source());
        }
        let own = self.experiment.notes().iter().cloned();
        let notes = network.notes.drain(..).chain(own);
        let notes: Vec<String> = notes.chain(self.settings.notes.clone()).collect();
        let line = describe::run(&self.plan, self.settings, network, &notes);
        if !self.settings.quiet {
            self.progress.aside(|| describe::say(&line));
        }
        self.experiment.line(Line::Run(Box::new(line)));
        for (link, _) in &network.links {
            self.link(&link.name, LinkEvent::Attached);
        }
        let netns = network.namespaces();
        if !netns.is_empty() {
            self.experiment.judge_links_in(&netns);
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

    /// The preparation of the programs, and the measured phase.
    async fn with_network(
        &mut self,
        network: &Arc<Network>,
        programs: &Rc<Programs>,
        signals: &mut Signals,
    ) -> Result<(), RunError> {
        let together = self.settings.together.as_ref();
        if let Some(together) = together {
            tokio::task::spawn_local(together.follow(programs.done.clone()));
        }
        let prepared = async {
            programs.prepare().await?;
            self.rest().await;
            if let Some(together) = together {
                let at_ns = together.ready().await;
                network.begin_at(at_ns, self.deadline(at_ns))?;
                together::sleep_until(at_ns).await;
            }
            Ok::<(), RunError>(())
        };
        tokio::select! {
            biased;
            signal = signals.any() => {
                self.signal = Some(signal);
                return Ok(());
            }
            prepared = prepared => prepared?,
        }
        let sampler = Sampler::start(Parts {
            network: network.clone(),
            every: self.settings.sample.unwrap_or(LOOK_EVERY),
            lines: self.settings.sample.is_some(),
            log: self.experiment.sender(),
            progress: self.progress.clone(),
        })
        .map_err(|error| RunError::System {
            what: "starting a thread",
            error,
        })?;
        network.media.iter().try_for_each(OnAir::begin_motion)?;
        self.phase(PhaseName::Measurement);
        self.experiment.begin_measuring();
        self.measured = true;
        let over = self.measure(programs, signals).await;
        self.experiment.end_measuring();
        self.found(sampler.finish());
        self.failed_services(programs);
        let (over, exits) = over?;
        self.exits = exits;
        if let Over::Signal(signal) = over {
            self.signal = Some(signal);
        }
        Ok(())
    }

    /// Attaching links uses CPU time, which must not count in the measured phase.
    async fn rest(&self) {
        sleep(REST).await;
        let mut episodes = self.experiment.episodes();
        // Contention that lasts longer is not caused by emud, and belongs to the verdict.
        let _ = timeout(LONGEST_REST, episodes.wait_for(|so_far| !so_far.any_open())).await;
    }

    /// Waits until the programs have ended, or their time or that of the run is over. Returns the
    /// reason, and the exits of the started programs.
    async fn measure(
        &self,
        programs: &Rc<Programs>,
        signals: &mut Signals,
    ) -> Result<(Over, Vec<ExitLine>), RunError> {
        let measuring = programs.measure();
        tokio::pin!(measuring);
        let over = tokio::select! {
            biased;
            signal = signals.any() => {
                programs.close();
                programs.pass_on(Signal::from_named_raw(signal).unwrap_or(Signal::TERM));
                tokio::select! {
                    exits = &mut measuring => return Ok((Over::Signal(signal), exits?)),
                    () = sleep(AFTER_SIGNAL) => {}
                    _ = signals.any() => {}
                }
                Over::Signal(signal)
            }
            exits = &mut measuring => {
                let exits = exits?;
                return Ok((self.others(Over::Complete, signals).await, exits));
            }
            () = after(self.plan.measure_for) => Over::Time,
            () = self.contention() => Over::Contention,
            () = self.over_elsewhere() => Over::Elsewhere,
        };
        programs.end_under_test().await;
        let exits = measuring.await?;
        Ok((self.others(over, signals).await, exits))
    }

    /// Returns when the links of a part end by themselves, the last resort if all processes are
    /// stopped; `None`: the measured phase has no limit.
    fn deadline(&self, start_ns: u64) -> Option<u64> {
        let lasts = self.plan.measure_for? + LAST_RESORT;
        let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
        Some(start_ns.saturating_add(lasts))
    }

    /// Services and routers of this host stay until the programs of all hosts have ended.
    async fn others(&self, over: Over, signals: &mut Signals) -> Over {
        let Some(together) = self.settings.together.as_ref() else {
            return over;
        };
        if matches!(over, Over::Signal(_)) {
            return over;
        }
        together.complete();
        tokio::select! {
            biased;
            signal = signals.any() => Over::Signal(signal),
            () = together.over() => over,
        }
    }

    async fn over_elsewhere(&self) {
        match self.settings.together.as_ref() {
            Some(together) => together.over().await,
            None => pending().await,
        }
    }

    /// Shows the number of alarms on the terminal; ready as soon as one lowers the verdict, if the
    /// run ends at contention.
    async fn contention(&self) {
        let mut episodes = self.experiment.episodes();
        let settled = sleep(SETTLED);
        tokio::pin!(settled);
        loop {
            {
                let so_far = episodes.borrow_and_update();
                self.progress.alarms(so_far.alarms());
                if self.settings.abort_on_contention && self.experiment.is_touched_by(&so_far) {
                    return;
                }
            }
            tokio::select! {
                changed = episodes.changed() => if changed.is_err() {
                    return pending().await;
                },
                () = &mut settled, if !settled.is_elapsed() => {}
            }
        }
    }

    fn found(&mut self, found: Found) {
        self.facts.failures.extend(found.failures);
        self.facts.invalid.extend(found.gone);
    }

    /// A missing service makes the measurement invalid.
    fn failed_services(&mut self, programs: &Programs) {
        let lost = programs.lost_services();
        let lost = lost.iter().filter(|exit| !exit.ended_by_emud);
        self.facts.invalid.extend(lost.map(|exit| {
            format!(
                "{}: the service `{}` ended with {} before the programs did",
                exit.node,
                exit.command.join(" "),
                exit.status()
            )
        }));
    }

    /// Ends the remaining programs, then runs the plan's clean-up; a signal ends that, too.
    async fn clean_up(&mut self, network: &Network, programs: &Programs, signals: &mut Signals) {
        self.phase(PhaseName::CleanUp);
        programs.end().await;
        let mut failed = vec![];
        let commands = async {
            programs.clean_up(&mut failed).await;
            programs.end().await;
        };
        self.unless_cut_short(commands, signals).await;
        programs.end().await;
        self.notes.extend(failed);
        self.notes.extend(programs.unprinted());
        let mut kept = vec![];
        let keeping = async {
            for node in &programs.common.plan.nodes {
                kept.extend(artefacts::keep(&programs.common, node).await);
            }
        };
        self.unless_cut_short(keeping, signals).await;
        for line in kept {
            if let Some(error) = &line.error {
                let note = format!("{}: {}: {error}", line.node, line.path);
                self.notes.push(note);
            }
            self.experiment.line(Line::Artefact(line));
        }
        self.notes.extend(network.media.iter().map(OnAir::summary));
        for (link, _) in &network.links {
            self.link(&link.name, LinkEvent::Detached);
        }
    }

    async fn unless_cut_short(&mut self, work: impl Future<Output = ()>, signals: &mut Signals) {
        tokio::select! {
            biased;
            signal = signals.any() => {
                self.signal.get_or_insert(signal);
                self.notes.push(format!("signal {signal} cut the clean-up short"));
            }
            () = work => {}
        }
    }

    fn phase(&self, phase: PhaseName) {
        self.progress.phase(match phase {
            PhaseName::Preparation => "preparation",
            PhaseName::Measurement => "measurement",
            PhaseName::CleanUp => "clean-up",
        });
        let mono_ns = mono_ns();
        self.experiment
            .line(Line::Phase(PhaseLine { mono_ns, phase }));
    }

    fn link(&self, link: &str, event: LinkEvent) {
        self.experiment.line(Line::Link(LinkLine {
            mono_ns: mono_ns(),
            link: link.to_owned(),
            event,
            what: vec![],
            toml: None,
            phase: None,
        }));
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => pending().await,
    }
}
