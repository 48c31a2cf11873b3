// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that reads the links for a server: a reading takes too long for the server's own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::oneshot;

use crate::datapath::maps::DatapathError;
use crate::datapath::survey::{Snapshot, Survey};

/// Between two checks for tampering, of which each takes up to 1 ms: 5 % of a CPU.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Between two rounds of checks.
const ROUND: Duration = Duration::from_millis(500);

const ENDED: &str = "the reader of the links has ended";

type Answer = oneshot::Sender<Result<Snapshot, DatapathError>>;

/// Reads the links of the host on request, and checks them for tampering in between.
#[derive(Debug, Clone)]
pub struct Sampling {
    requests: Sender<Answer>,
    /// Exists as long as the thread does.
    thread: Weak<()>,
}

impl Sampling {
    /// Starts the thread; it ends with the last clone of this value.
    ///
    /// # Errors
    /// The kernel permits no further thread.
    pub fn start() -> io::Result<Self> {
        let (requests, asked) = channel();
        let builder = thread::Builder::new().name("emud-survey".into());
        let running = Arc::new(());
        let thread = Arc::downgrade(&running);
        builder.spawn(move || {
            run(&asked);
            drop(running);
        })?;
        Ok(Self { requests, thread })
    }

    /// Whether the thread runs.
    ///
    /// # Errors
    /// A sentence: it has ended.
    pub fn healthy(&self) -> Result<(), String> {
        match self.thread.upgrade() {
            Some(_) => Ok(()),
            None => Err(ENDED.to_owned()),
        }
    }

    /// Returns all links now.
    ///
    /// # Errors
    /// A sentence: they cannot be read.
    pub async fn snapshot(&self) -> Result<Snapshot, String> {
        let ending = || ENDED.to_owned();
        let (answer, answered) = oneshot::channel();
        self.requests.send(answer).map_err(|_| ending())?;
        let read = answered.await.map_err(|_| ending())?;
        read.map_err(|e| e.to_string())
    }
}

fn run(asked: &Receiver<Answer>) {
    let mut survey = Survey::new();
    // Not a time-out alone: frequent scrapes would put the checks off for ever.
    let mut next = Instant::now() + CHECK_EVERY;
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        match asked.recv_timeout(wait) {
            // The client may be gone.
            Ok(answer) => drop(answer.send(survey.snapshot())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= next {
            let pause = if survey.check_next() {
                ROUND
            } else {
                CHECK_EVERY
            };
            next = Instant::now() + pause;
        }
    }
}

/// Returns all links with the result of a check for tampering.
///
/// # Errors
/// They cannot be read.
pub fn checked_once() -> Result<Snapshot, DatapathError> {
    let mut survey = Survey::new();
    survey.snapshot()?;
    survey.check_all();
    survey.snapshot()
}
