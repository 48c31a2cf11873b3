// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of an experiment's monitor.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use emud_monitor::log::{Clock, EndReason, Format, Judgement, Log, Outlet, SortedLog};
use emud_monitor::{Config, Monitor};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::at_end::Asked;
use super::control::{Allowed, BoundSocket};
use super::witness::{Episodes, SETTLED};
use super::{
    Finished, MonitorSide, Observation, ObserveError, Remote, Setup, SideParts, StartError, Until,
    Witness, monitor, pressure, punctual, sockets,
};
use crate::host::single_threaded;
use crate::metrics::Media;

/// Time limit for a slow disk at the end: 64 MiB at 2 MB/s.
const LAST_LINES: Duration = Duration::from_secs(30);

/// Objects that the thread takes over.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) users: Vec<u32>,
    pub(crate) metrics: Option<(TcpListener, Media)>,
    pub(crate) clock: Clock,
    pub(crate) log: SortedLog,
    pub(crate) episodes: watch::Sender<Episodes>,
    /// Gets one message: the thread runs, or the reason why not.
    pub(crate) begin: mpsc::Sender<Result<Begun, StartError>>,
    pub(crate) ended: oneshot::Receiver<Asked>,
    /// Gets the judgement and returns it with the exit code.
    pub(crate) judge: mpsc::Sender<Judgement>,
    pub(crate) agree: mpsc::Receiver<Judgement>,
}

/// A running monitor.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) notes: Vec<String>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) remote: Remote,
}

/// Resources that end with the thread.
struct Running {
    observation: Observation<Monitor>,
    side: MonitorSide,
    /// Removed when dropped.
    _places: [Option<BoundSocket>; 2],
}

/// Returns `None` if it could not begin, or the result is not requested.
pub(crate) fn observe(parts: Parts) -> Option<Finished> {
    let runtime = match single_threaded() {
        Ok(runtime) => runtime,
        Err(error) => {
            let attempted = "starting a thread";
            let failed = ObserveError::System { attempted, error };
            let _ = parts.begin.send(Err(failed.into()));
            return None;
        }
    };
    runtime.block_on(run(parts))
}

async fn run(parts: Parts) -> Option<Finished> {
    let mut episodes = parts.episodes.subscribe();
    let mut ended = parts.ended;
    // The starting thread waits for this.
    let reports = (parts.users, parts.metrics);
    let mut running = match begin(
        parts.config,
        reports,
        parts.clock,
        parts.log,
        parts.episodes,
    ) {
        Ok((running, begun)) => {
            let _ = parts.begin.send(Ok(begun));
            running
        }
        Err(e) => {
            let _ = parts.begin.send(Err(e));
            return None;
        }
    };
    let mut asked = None;
    let over = async {
        asked = Some((&mut ended).await.ok());
        // Episodes that are still open then last until the end.
        let _ = timeout(SETTLED, episodes.wait_for(|so_far| !so_far.any_open())).await;
        EndReason::Done
    };
    let observation = &mut running.observation;
    let stopped = observation.run(Until::default(), over).await;
    observation.close();
    let asked = match asked {
        Some(asked) => asked,
        // The monitor stopped working; the experiment continues.
        None => ended.await.ok(),
    }?;
    running.side.finish(std::future::pending()).await;
    let judgement = running.observation.judge(&stopped, &asked);
    parts.judge.send(judgement).ok()?;
    let judgement = parts.agree.recv().ok()?;
    Some(running.observation.finish(stopped, None, Some(judgement)))
}

fn begin(
    config: Config,
    (users, metrics): (Vec<u32>, Option<(TcpListener, Media)>),
    clock: Clock,
    log: SortedLog,
    episodes: watch::Sender<Episodes>,
) -> Result<(Running, Begun), StartError> {
    let mut notes = vec![];
    let [programs, root] = sockets(None, &mut notes)?;
    let ((place, control), (root_place, root)) = (programs.unzip(), root.unzip());
    let path = place.as_ref().map(|place| place.path.clone());
    let (metrics, media) = metrics.unzip();
    let (side, (requests, commands)) = MonitorSide::start(SideParts {
        control,
        allowed: Allowed::new(config.alarms.reporters, users),
        root,
        metrics,
        media: media.unwrap_or_default(),
        emulated: config.emulator.is_some(),
        ..SideParts::default()
    })?;
    let monitor = monitor(&config)?;
    // Not earlier: the kernel's verifier works in this thread, too.
    notes.extend(punctual());
    let psi = pressure(&config, &mut notes)?;
    let setup = Setup {
        log: Log::new(clock, Format::Json, Outlet::Sorted(log), None),
        psi,
        config,
        socket: path.as_ref().map(|path| path.display().to_string()),
        requests,
        commands,
        notes: notes.clone(),
        witness: Some(Witness::new(episodes)),
        patience: LAST_LINES,
    };
    let mut observation = Observation::new(monitor, setup);
    // Before other senders can write. Errors of a log are reported at its end.
    let _ = observation.start();
    notes.extend(observation.unknown());
    let begun = Begun {
        notes,
        socket: path,
        remote: side.remote().clone(),
    };
    let running = Running {
        observation,
        side,
        _places: [place, root_place],
    };
    Ok((running, begun))
}
