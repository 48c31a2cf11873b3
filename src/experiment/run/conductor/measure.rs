// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preparation of the programs, and the measured phase.

use std::future::pending;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emud_monitor::log::{ExitLine, PhaseName};
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::Run;
use crate::experiment::run::media_watch::Found;
use crate::experiment::run::network::Network;
use crate::experiment::run::programs::Programs;
use crate::experiment::run::sampler::{Parts, Sampler};
use crate::experiment::run::{RunError, deadline, sets, together};
use crate::experiment::scenario::Node;
use crate::host::now_ns;
use crate::host::signals::Signals;
use crate::monitor::session::experiment::SETTLED;

/// Interval of checks of the counters if no samples are requested.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause between preparation and measurement: long enough for idle time on each CPU, then up to a
/// limit until no contention is in progress.
const REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(2);
/// How long programs may take to end after a forwarded signal before they are killed.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);

/// Why the measured phase ended.
enum Over {
    Complete,
    Time,
    Contention,
    /// The experiment ended on another host.
    Elsewhere,
    Signal(i32),
}

impl Run<'_> {
    /// Prepares the programs and carries out the measured phase.
    pub(super) async fn with_network(
        &mut self,
        network: &Arc<Network>,
        programs: &Rc<Programs>,
        signals: &mut Signals,
    ) -> Result<(), RunError> {
        let together = self.settings.together.as_ref();
        let failed = Arc::new(Mutex::new(Vec::new()));
        if let Some(together) = together {
            tokio::task::spawn_local(together.follow(programs.done.clone()));
            let user = self.settings.user.clone();
            let sets = sets::follow(
                together.clone(),
                Arc::downgrade(network),
                user,
                failed.clone(),
            );
            tokio::task::spawn_local(sets);
            network.end_after(deadline::LAST_RESORT)?;
            let moved_on = deadline::follow(together.clone(), Arc::downgrade(network));
            tokio::task::spawn_local(moved_on);
        }
        let prepared = async {
            programs.prepare().await?;
            self.rest().await;
            if let Some(together) = together {
                let at_ns = together.ready().await;
                network.begin_at(at_ns)?;
                if let Some(why) = together::late("the measured phase began", at_ns, now_ns())
                    && let Ok(mut failed) = failed.lock()
                {
                    failed.push(why);
                }
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
            // Another host was lost before the start: no program starts here either.
            () = self.over_elsewhere() => return Ok(()),
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
        // That of a part counts from the start of all hosts.
        if together.is_none() {
            network.begin_motion(now_ns())?;
        }
        self.phase(PhaseName::Measurement);
        self.experiment.begin_measuring();
        self.measured = true;
        let over = self.measure(programs, signals).await;
        self.experiment.end_measuring();
        self.found(sampler.finish());
        if let Ok(mut failed) = failed.lock() {
            self.facts.invalid.append(&mut failed);
        }
        let (over, exits) = over?;
        self.failed_services(programs, &exits).await;
        match over {
            Over::Signal(signal) => self.signal = Some(signal),
            Over::Time | Over::Elsewhere => self.never_started(&exits),
            _ => {}
        }
        self.exits = exits;
        Ok(())
    }

    /// Waits after the attach of links: its CPU time must not count in the measured phase.
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

    /// Notes services that failed: one that is missing makes the measurement invalid. One that serves a single
    /// client may end after it, with success.
    async fn failed_services(&mut self, programs: &Programs, exits: &[ExitLine]) {
        let last = exits.iter().map(|exit| exit.mono_ns).max();
        let is_lost =
            |exit: &&ExitLine| exit.failed() || last.is_none_or(|last| exit.mono_ns < last);
        let ended = programs.ended_services().await;
        let lost = (ended.iter().filter(|exit| !exit.ended_by_emud)).filter(is_lost);
        self.facts.invalid.extend(lost.map(|exit| {
            format!(
                "{}: the service `{}` ended with {} before the programs did",
                exit.node,
                exit.command.join(" "),
                exit.status()
            )
        }));
    }

    /// Notes programs under test that were never started: without an exit nothing else reports
    /// them.
    fn never_started(&mut self, exits: &[ExitLine]) {
        let under_test = |node: &&Node| !node.service && node.command.is_some();
        let nodes = self.plan.nodes.iter().filter(under_test);
        let missing = nodes.filter(|node| exits.iter().all(|exit| exit.node != node.name));
        self.facts.invalid.extend(missing.map(|node| {
            format!(
                "{}: the program was not started before the measured phase ended",
                node.name
            )
        }));
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => pending().await,
    }
}
