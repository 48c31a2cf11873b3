// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that serves others. What they do to it cannot make a line late.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use emud_monitor::log::OnAlarm;
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::sleep;

use super::control::Allowed;
use super::on_alarm::{QUEUE, Runner};
use super::punctual::prompt;
use super::{ObserveError, Request, control, emulated, metrics};

/// Requests on their way to the observation.
/// Turns of the other tasks before the last one ends them.
const LAST_ANSWERS: usize = 16;

const REQUESTS: usize = 64;
/// How long commands may go on after the end.
const GRACE: Duration = Duration::from_secs(10);

/// What the thread does; each part may be missing.
#[derive(Debug, Default)]
pub struct SideParts {
    pub control: Option<UnixListener>,
    /// Who may report there.
    pub allowed: Allowed,
    /// Where only root can connect.
    pub root: Option<UnixListener>,
    pub metrics: Option<TcpListener>,
    /// Shell command to run once per alarm.
    pub on_alarm: Option<String>,
    /// Look for emulated links, which come and go.
    pub emulated: bool,
    /// And whether somebody else changes them: a run does so itself for its own links.
    pub tampering: bool,
}

/// The running thread.
#[derive(Debug)]
pub struct Side {
    end: oneshot::Sender<()>,
    hurry: oneshot::Sender<()>,
    done: oneshot::Receiver<Option<OnAlarm>>,
    remote: Remote,
}

/// Asks for something from within this process; never blocks.
#[derive(Debug, Clone)]
pub struct Remote {
    look: Arc<Notify>,
    requests: mpsc::Sender<Request>,
}

impl Remote {
    /// Emulated links may have come: looks for them now, not within a second.
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// Every resource may raise its alarms anew. Without room for the request, because others
    /// ask for too much, it is left: what is suppressed then is counted.
    pub fn reset(&self) {
        let (answer, _) = oneshot::channel();
        let _ = self.requests.try_send(Request::Reset(answer));
    }
}

/// What the observation needs of it: the requests, and where to send alarms for commands.
pub type Ends = (mpsc::Receiver<Request>, Option<mpsc::Sender<String>>);

impl Side {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`ObserveError::System`].
    pub fn start(parts: SideParts) -> Result<(Self, Ends), ObserveError> {
        let failed = |error| ObserveError::System {
            attempted: "starting a thread",
            error,
        };
        let (requests, requested) = mpsc::channel(REQUESTS);
        let (commands, runner) = match parts.on_alarm {
            Some(command) => {
                let (send, receive) = mpsc::channel(QUEUE);
                (Some(send), Some(Runner::new(command, receive)))
            }
            None => (None, None),
        };
        let (end, ended) = oneshot::channel();
        let (hurry, hurried) = oneshot::channel();
        let (tell, done) = oneshot::channel();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let serving = {
            let _within = runtime.enter();
            Serving::new([parts.control, parts.root], parts.metrics).map_err(failed)?
        };
        let remote = Remote {
            look: Arc::default(),
            requests,
        };
        let Remote { look, requests } = remote.clone();
        let work = async move {
            serving.begin(parts.allowed, &requests);
            if parts.emulated {
                tokio::spawn(emulated::follow(requests, look, parts.tampering));
            }
            let counts = run(runner, ended, hurried).await;
            // A client whose report ended the observation has not read its answer yet.
            for _ in 0..LAST_ANSWERS {
                tokio::task::yield_now().await;
            }
            // Nobody waits for it if the observation failed.
            let _ = tell.send(counts);
        };
        thread::Builder::new()
            .name("emud-side".into())
            .spawn(move || {
                prompt();
                runtime.block_on(work);
            })
            .map_err(failed)?;
        let side = Self {
            end,
            hurry,
            done,
            remote,
        };
        Ok((side, (requested, commands)))
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Ends it. Commands have some seconds to end, or until `hurry` is ready. Returns what
    /// became of them.
    pub async fn finish(self, hurry: impl Future<Output = ()>) -> Option<OnAlarm> {
        let _ = self.end.send(());
        let mut done = self.done;
        tokio::select! {
            counts = &mut done => return counts.ok().flatten(),
            () = hurry => {}
        }
        let _ = self.hurry.send(());
        done.await.ok().flatten()
    }
}

struct Serving {
    /// For programs, for root.
    control: [Option<tokio::net::UnixListener>; 2],
    metrics: Option<tokio::net::TcpListener>,
}

impl Serving {
    fn new(control: [Option<UnixListener>; 2], metrics: Option<TcpListener>) -> io::Result<Self> {
        let served = |listener: Option<UnixListener>| {
            let served = |listener: UnixListener| {
                listener.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(listener)
            };
            listener.map(served).transpose()
        };
        let [programs, root] = control;
        if let Some(listener) = &metrics {
            listener.set_nonblocking(true)?;
        }
        Ok(Self {
            control: [served(programs)?, served(root)?],
            metrics: metrics.map(tokio::net::TcpListener::from_std).transpose()?,
        })
    }

    fn begin(self, allowed: Allowed, requests: &mpsc::Sender<Request>) {
        for (listener, allowed) in self.control.into_iter().zip([allowed, Allowed::default()]) {
            if let Some(listener) = listener {
                tokio::spawn(control::serve(listener, allowed, requests.clone()));
            }
        }
        if let Some(listener) = self.metrics {
            tokio::spawn(metrics::serve(listener, requests.clone()));
        }
    }
}

/// Until the end was asked for, and the commands have ended.
async fn run(
    runner: Option<Runner>,
    ended: oneshot::Receiver<()>,
    hurried: oneshot::Receiver<()>,
) -> Option<OnAlarm> {
    let Some(mut runner) = runner else {
        let _ = ended.await;
        return None;
    };
    tokio::select! {
        () = runner.serve() => {}
        _ = ended => {}
    }
    tokio::select! {
        () = runner.serve() => {}
        Ok(()) = hurried => runner.kill().await,
        () = sleep(GRACE) => runner.kill().await,
    }
    Some(runner.counts)
}
