// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that serves clients, separate so that clients cannot delay a line.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::log::OnAlarm;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::sleep;

use super::control::Allowed;
use super::metrics::Served;
use super::on_alarm::{QUEUE, Runner};
use super::punctual::prompt;
use super::{ObserveError, Request, control, emulated};
use crate::host::{single_threaded, spawn};
use crate::metrics::{Media, Sampling, serve};

/// Maximum number of requests in transit to the observation: rounds of the other tasks before the
/// end.
const LAST_ANSWERS: usize = 16;

const REQUESTS: usize = 64;
/// Time limit for commands after the end.
const GRACE: Duration = Duration::from_secs(10);

/// The tasks of the thread; each part is optional.
#[derive(Debug, Default)]
pub struct SideParts {
    /// The socket for reports.
    pub control: Option<UnixListener>,
    /// The users that may report there.
    pub allowed: Allowed,
    /// The socket to which only root can connect.
    pub root: Option<UnixListener>,
    /// The socket on which metrics are served.
    pub metrics: Option<TcpListener>,
    /// Media whose stations are among the metrics.
    pub media: Media,
    /// Shell command to run once per alarm.
    pub on_alarm: Option<String>,
    /// Whether to search for emulated links, which come and go.
    pub emulated: bool,
    /// Whether to check for changes by other processes: a run checks its own links itself.
    pub tampering: bool,
}

/// The running thread.
#[derive(Debug)]
pub struct MonitorSide {
    end: oneshot::Sender<()>,
    hurry: oneshot::Sender<()>,
    done: oneshot::Receiver<Option<OnAlarm>>,
    remote: Remote,
}

/// Sends requests from within this process; never blocks.
#[derive(Debug, Clone)]
pub struct Remote {
    look: Arc<Notify>,
    requests: mpsc::Sender<Request>,
}

impl Remote {
    /// Searches for emulated links immediately, instead of within a second.
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// Resets the limit of every resource. If the queue of requests is full, the request is
    /// dropped: suppressed alarms are still counted.
    pub fn reset(&self) {
        let (answer, _) = oneshot::channel();
        let _ = self.requests.try_send(Request::Reset(answer));
    }
}

/// The ends of the channels for the observation: requests, and alarms for commands.
pub type Ends = (mpsc::Receiver<Request>, Option<mpsc::Sender<String>>);

impl MonitorSide {
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
        let runtime = single_threaded().map_err(failed)?;
        let deaf = parts.root.is_none();
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
            serving.begin(parts.allowed, parts.media, &requests);
            if parts.emulated {
                tokio::spawn(emulated::follow(requests, look, parts.tampering, deaf));
            }
            let counts = run(runner, ended, hurried).await;
            // A client whose report ended the observation has not read its answer yet.
            for _ in 0..LAST_ANSWERS {
                tokio::task::yield_now().await;
            }
            // If the observation failed, there is no receiver.
            let _ = tell.send(counts);
        };
        spawn("emud-side", move || {
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

    /// Returns the handle by which other threads reach this one.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Ends the thread. Commands have some seconds to end, or until `hurry` is ready. Returns the
    /// results of the commands.
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
    /// The socket for programs, and the one for root.
    control: [Option<tokio::net::UnixListener>; 2],
    metrics: Option<(tokio::net::TcpListener, Sampling)>,
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
            metrics: match metrics {
                Some(listener) => {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    Some((listener, Sampling::start()?))
                }
                None => None,
            },
        })
    }

    fn begin(self, allowed: Allowed, media: Media, requests: &mpsc::Sender<Request>) {
        for (listener, allowed) in self.control.into_iter().zip([allowed, Allowed::default()]) {
            if let Some(listener) = listener {
                tokio::spawn(control::serve(listener, allowed, requests.clone()));
            }
        }
        if let Some((listener, links)) = self.metrics {
            let requests = requests.clone();
            let served = Served {
                requests,
                links,
                media,
            };
            tokio::spawn(serve(listener, served));
        }
    }
}

/// Runs until the end is requested and the commands have ended.
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
