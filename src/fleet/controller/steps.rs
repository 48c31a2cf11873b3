// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a run, and what they know.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Divided, Ended, Request, Times};
use crate::fleet::etcd::{Client, Compare, Lease, Op, Snapshot};
use crate::fleet::keys::Keys;
use crate::fleet::outbox::lease_end;
use crate::fleet::protocol::{HostResult, Revision, Start};
use crate::fleet::verdict::{EarlyEnd, HostEnd};
use crate::fleet::{FleetError, LeaseEnd};
use crate::host::signals::Signals;

/// Besides the scenario's own time for the preparation: for measurements and many links.
const BUILD: Duration = Duration::from_secs(60);
/// Pause before the start is requested again.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// The changes of a run.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The start on the reference's clock, and when it is.
    pub(super) start: Option<(Start, Instant)>,
    /// Until when each change may be prepared; `None`: it is decided.
    pub(super) until: BTreeMap<String, Option<Instant>>,
}

impl Sets {
    /// Notes the start, and when it is.
    pub fn begin(&mut self, start: Start, at: Instant) {
        self.start = Some((start, at));
    }

    /// Returns when the next change has to be decided.
    pub fn next(&self) -> Option<Instant> {
        self.until.values().flatten().min().copied()
    }
}

pub(super) struct Controller<'a> {
    pub(super) client: &'a Client,
    pub(super) keys: &'a Keys,
    pub(super) request: &'a Request,
    pub(super) divided: &'a Divided,
    pub(super) lease: Lease,
    pub(super) agents: watch::Receiver<Snapshot>,
    pub(super) hosts: watch::Receiver<Snapshot>,
    pub(super) run: watch::Receiver<Snapshot>,
    pub(super) lost: watch::Receiver<Option<LeaseEnd>>,
    pub(super) revision: Revision,
    /// Digest of each host's plan.
    pub(super) digests: BTreeMap<String, String>,
    /// Before the request that wrote the run, with which the parts begin.
    pub(super) begun: Instant,
    pub(super) sets: Sets,
}

/// Why a wait ended early.
pub(super) enum Early {
    Signal(i32),
    Late,
}

impl Controller<'_> {
    pub(super) async fn carry_out(&mut self, signals: &mut Signals) -> Result<Ended, FleetError> {
        let begun = Instant::now();
        self.write_plans().await?;
        let mut ended = Ended {
            hosts: BTreeMap::new(),
            logs: vec![],
            built: BTreeMap::new(),
            early: None,
            keys: 0,
            times: Times {
                plans: begun.elapsed(),
                ..Times::default()
            },
        };
        let written = Instant::now();
        let within = self.request.plan.ready_within + BUILD;
        match self.all_built(within, signals).await? {
            Ok(built) => ended.built = built,
            Err(signal) => {
                ended.early = Some(EarlyEnd::Signal(signal));
                return Ok(ended);
            }
        }
        let all = Instant::now();
        ended.times.built = all - written;
        let at = match self.start(&ended.built).await {
            // It may have been written, though no answer came: then parts begin.
            Err(FleetError::LeaseLost(_)) => Instant::now(),
            at => at?,
        };
        ended.times.start = Some(all);
        ended.times.started = all.elapsed();
        let signal = match self.confirmed(at, signals).await {
            // The parts may begin before they notice it.
            Err(FleetError::LeaseLost(_)) => None,
            confirmed => confirmed?,
        };
        if let Some(signal) = signal {
            ended.early = Some(EarlyEnd::Signal(signal));
            return Ok(ended);
        }
        match self.measured(at, &mut ended, signals).await {
            Ok(()) => {}
            Err(e @ FleetError::Unmet(_)) => return Err(e),
            // Programs have run: that has a verdict, and a log.
            Err(e) => {
                for host in self.names() {
                    let lost = || HostEnd::Lost(format!("what it measured was not read: {e}"));
                    ended.hosts.entry(host).or_insert_with(lost);
                }
            }
        }
        Ok(ended)
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        self.divided.plans.keys().cloned().collect()
    }

    pub(super) fn is_mine(&self) -> Compare {
        Compare::Value(self.keys.claim(), self.own())
    }

    /// Returns the first host whose condition, of those that begin with one of each host, does not hold.
    pub(super) async fn left(&self, when: &[Compare]) -> String {
        for (host, condition) in self.divided.plans.keys().zip(when) {
            if let Ok(false) = self.client.txn(slice::from_ref(condition), &[]).await {
                return host.clone();
            }
        }
        // It is there again, or etcd is not.
        "a host".into()
    }

    pub(super) fn value<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let now = self.hosts.borrow();
        let entry = now.entries.get(key)?;
        serde_json::from_slice(&entry.value).ok()
    }

    /// Returns the result of a host in this run.
    pub(super) fn result(&self, host: &str) -> Option<HostResult> {
        let result: HostResult = self.value(&self.keys.result(host))?;
        (result.run == self.revision.id).then_some(result)
    }

    /// Returns a host whose part ended by itself: without it the others measure something else.
    pub(super) fn failed(&self) -> Option<String> {
        let has = |host: &String| self.result(host).is_some();
        self.names().into_iter().find(has)
    }

    /// Returns whether an agent has written this key in this run.
    pub(super) fn is_signed(&self, key: &str) -> bool {
        let now = self.hosts.borrow();
        let entry = now.entries.get(key);
        entry.is_some_and(|entry| entry.value == self.revision.id.as_bytes())
    }

    /// Returns hosts of this run whose agent is not there any more.
    pub(super) fn gone(&self) -> BTreeSet<String> {
        let now = self.agents.borrow();
        if now.broken.is_some() || !now.known {
            return BTreeSet::new();
        }
        let there = |host: &String| {
            let entry = now.entries.get(&self.keys.agent(host));
            entry.map(|entry| entry.created) == self.divided.created.get(host).copied()
        };
        self.names()
            .into_iter()
            .filter(|host| !there(host))
            .collect()
    }

    /// Carries out a transaction. As long as the lease lasts, a missing answer is not the end of the run; it may
    /// have happened then, so that its conditions do not hold any more.
    pub(super) async fn surely(&self, when: &[Compare], then: &[Op]) -> Result<bool, FleetError> {
        loop {
            match self.client.txn(when, then).await {
                Err(FleetError::Unreachable(_)) if self.lost.borrow().is_none() => {
                    sleep(AGAIN).await;
                }
                done => return done,
            }
        }
    }

    /// Returns whether the run is stopped.
    pub(super) fn is_over(&self) -> bool {
        self.run.borrow().entries.contains_key(&self.keys.over())
    }

    /// Waits for a change of any key, a signal, or a time.
    pub(super) async fn change(
        &mut self,
        until: Instant,
        signals: &mut Signals,
    ) -> Result<Option<Early>, FleetError> {
        tokio::select! {
            biased;
            why = lease_end(&mut self.lost) => Err(FleetError::LeaseLost(why)),
            signal = signals.any() => Ok(Some(Early::Signal(signal))),
            _ = self.hosts.changed() => Ok(None),
            _ = self.agents.changed() => Ok(None),
            _ = self.run.changed() => Ok(None),
            () = sleep_until(until) => Ok(Some(Early::Late)),
        }
    }

    /// Deletes all keys of the run, and returns how many there were; those of agents that were lost have gone with
    /// their lease.
    pub(super) async fn clear(&self) -> Result<u64, FleetError> {
        let all = [
            self.keys.run(),
            self.keys.hosts(),
            self.keys.plans(),
            self.keys.ping(),
            self.keys.claim(),
        ];
        // Not those of another run.
        self.client.delete(&[self.is_mine()], all).await
    }
}
