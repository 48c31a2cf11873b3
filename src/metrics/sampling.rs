// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that reads the links for a server: a reading takes too long for the server's own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::oneshot;

use super::recent::Recent;
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
    /// Why the last reading failed, if it did; exists as long as the thread does.
    failed: Weak<Mutex<Option<String>>>,
}

impl Sampling {
    /// Starts the thread; it ends with the last clone of this value.
    ///
    /// # Errors
    /// The kernel permits no further thread.
    pub fn start() -> io::Result<Self> {
        let (requests, asked) = channel();
        let builder = thread::Builder::new().name("emud-survey".into());
        let state = Arc::default();
        let failed = Arc::downgrade(&state);
        builder.spawn(move || run(&asked, &state))?;
        Ok(Self { requests, failed })
    }

    /// Checks that the thread runs and its last reading did not fail.
    ///
    /// # Errors
    /// A sentence: why.
    pub fn healthy(&self) -> Result<(), String> {
        let state = self.failed.upgrade().ok_or(ENDED)?;
        let failed = state.lock().map_err(|_| ENDED)?.clone();
        failed.map_or(Ok(()), Err)
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

fn run(asked: &Receiver<Answer>, failed: &Mutex<Option<String>>) {
    let (mut survey, mut recent) = (Survey::new(), Recent::default());
    // Not a time-out alone: frequent scrapes would put the checks off for ever.
    let mut next = Instant::now() + CHECK_EVERY;
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        match asked.recv_timeout(wait) {
            // The client may be gone.
            Ok(answer) => {
                let mut read = survey.snapshot();
                let _ = read.as_mut().map(|now| recent.fill(now));
                if let Ok(mut failed) = failed.lock() {
                    *failed = read.as_ref().err().map(ToString::to_string);
                }
                drop(answer.send(read));
            }
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
    let mut now = survey.snapshot()?;
    Recent::default().fill(&mut now);
    Ok(now)
}
