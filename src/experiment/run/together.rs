// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is one host's part of a larger one: it reports what it has reached, and continues when
//! all hosts have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::datapath::LinkError;
use crate::host::now_ns;
use crate::host::timespec;
use crate::profile::Profile;

/// A timer of the runtime may be up to 1 ms late and a busy thread later: the rest is slept in the
/// kernel.
const ROUGHLY: Duration = Duration::from_millis(5);
/// Later than this after its time, the start or a change is a failure of the run.
const LATE_NS: u64 = 1_000_000;

/// Returns what makes the run invalid if this host, at `now_ns`, learns only now that `what` was to
/// happen at `at_ns`.
pub(super) fn late(what: &str, at_ns: u64, now_ns: u64) -> Option<String> {
    let late_ns = now_ns.saturating_sub(at_ns);
    (late_ns > LATE_NS).then(|| {
        let late_ms = late_ns as f64 / 1e6;
        format!("{what} {late_ms:.3} ms late: this host learned its time then")
    })
}

/// A report of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Its network, links and services are there.
    Ready,
    /// The program of this node has ended, or its service is ready.
    Done(String),
    /// Its programs have ended.
    Complete,
    /// A change of links of this host is written into the kernel, or is not possible: why, and the
    /// exit code.
    Set(String, Result<(), (String, u8)>),
}

/// State of the other parts as one knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Start of the measured phase in ns of this host's CLOCK_MONOTONIC.
    pub start_at_ns: Option<u64>,
    /// Nodes of other hosts whose programs have ended: no node waits for them any more.
    pub done: BTreeSet<String>,
    /// Whether the measured phase is over.
    pub over: bool,
    /// Whether it is over because a host is lost.
    pub lost: bool,
    /// Changes of links by name.
    pub sets: BTreeMap<String, Set>,
    /// How often the agent has said that it has its lease.
    pub alive: u64,
}

/// A change of links, all at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Names of links of the plan; others are those of other hosts.
    pub links: BTreeSet<String>,
    /// As for `emud set`.
    pub changes: Vec<String>,
    /// When it takes effect, in ns of this host's CLOCK_MONOTONIC; inner `None`: never.
    pub at_ns: Option<Option<u64>>,
}

/// Returns the profile of a link of this name after assignments of `emud set`: of a link between
/// hosts, the profile is not the whole link.
pub type ChangeLink = dyn Fn(&str, &Profile, &[String]) -> Result<Profile, LinkError> + Send + Sync;

/// The connection of a part to the others.
#[derive(Clone)]
pub struct Together {
    say: mpsc::UnboundedSender<Said>,
    hear: watch::Receiver<Heard>,
    /// How a link changes.
    pub(super) change: Arc<ChangeLink>,
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

impl Together {
    /// Returns the connection of a part.
    pub fn new(
        say: mpsc::UnboundedSender<Said>,
        hear: watch::Receiver<Heard>,
        change: Arc<ChangeLink>,
    ) -> Self {
        Self { say, hear, change }
    }

    /// Reports that everything is built, and waits for the time of the start.
    pub(super) async fn ready(&self) -> u64 {
        self.say(Said::Ready);
        let mut hear = self.hear.clone();
        loop {
            if let Some(at_ns) = hear.borrow_and_update().start_at_ns {
                return at_ns;
            }
            if hear.changed().await.is_err() {
                // The process is about to end.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Reports the end of a node's program.
    pub(super) fn done(&self, node: &str) {
        self.say(Said::Done(node.to_owned()));
    }

    /// Reports that the programs of this part have ended.
    pub(super) fn complete(&self) {
        self.say(Said::Complete);
    }

    /// Waits for the end of the measured phase.
    pub(super) async fn over(&self) {
        let mut hear = self.hear.clone();
        if hear.wait_for(|heard| heard.over).await.is_err() {
            std::future::pending().await
        }
    }

    /// Adds the nodes of other hosts to `done`, until the run ends.
    pub(super) fn follow(
        &self,
        done: watch::Sender<BTreeSet<String>>,
    ) -> impl Future<Output = ()> + use<> {
        let mut hear = self.hear.clone();
        async move {
            loop {
                let elsewhere = hear.borrow_and_update().done.clone();
                done.send_if_modified(|done| {
                    let before = done.len();
                    done.extend(elsewhere);
                    done.len() > before
                });
                if hear.changed().await.is_err() {
                    return;
                }
            }
        }
    }

    pub(super) fn hear(&self) -> watch::Receiver<Heard> {
        self.hear.clone()
    }

    pub(super) fn say(&self, what: Said) {
        // The receiver is gone if the process is about to end.
        let _ = self.say.send(what);
    }
}

/// Sleeps until a time of CLOCK_MONOTONIC.
pub(super) async fn sleep_until(at_ns: u64) {
    let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
    sleep(left.saturating_sub(ROUGHLY)).await;
    // A signal ends it early, which starts the programs up to 5 ms early; the links keep the time.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at_ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_1_ms_is_late() {
        let at_ns = 5_000_000_000;
        for in_time in [0, at_ns - 1, at_ns, at_ns + 1_000_000] {
            assert_eq!(late("it began", at_ns, in_time), None, "{in_time}");
        }
        let why = late("it began", at_ns, at_ns + 1_000_001).unwrap();
        assert!(why.starts_with("it began 1.000 ms late"), "{why}");
    }
}
