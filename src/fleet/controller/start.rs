// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the plans to the start: all hosts have built their part, and all know when it is.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::steps::{AGAIN, Controller, Early};
use crate::fleet::etcd::{Compare, Op};
use crate::fleet::protocol::{Built, Ready, Start, first_begin};
use crate::fleet::{FleetError, LEAD, LEASE};
use crate::host::nanoseconds;
use crate::host::signals::Signals;

/// From the end of a lease until all have heard of it.
const SEEN: Duration = Duration::from_secs(1);
/// How long before the start a run can still be cancelled: its agents read that and end their parts.
const CANCEL: Duration = Duration::from_millis(300);
/// An etcd that takes longer to write may be electing a leader, or its disk is slow.
const PROMPT: Duration = Duration::from_millis(300);
/// What a run says that could not be cancelled for certain.
const MAYBE: &str = "etcd did not answer then, so programs of other hosts may have started";
/// Reason of the verdict if `emud fleet stop` ends a run that has not started.
pub(super) const STOPPED_EARLY: &str = "the run was stopped before the start";

impl Controller<'_> {
    pub(super) async fn all_built(
        &mut self,
        within: Duration,
        signals: &mut Signals,
    ) -> Result<Result<BTreeMap<String, Ready>, i32>, FleetError> {
        let until = Instant::now() + within;
        let mut built = BTreeMap::new();
        let mut missing = self.names();
        // One host says that another one does not answer, until when the lease of that one shows whether it is lost.
        let mut failure: Option<(Instant, String)> = None;
        loop {
            for host in missing.clone() {
                match self.value(&self.keys.built(&host)) {
                    // That of an earlier run does not count.
                    Some(Built::Ready(ready)) if Some(&ready.digest) == self.digests.get(&host) => {
                        missing.remove(&host);
                        built.insert(host, ready);
                    }
                    Some(Built::Failed {
                        run, message, peer, ..
                    }) if run == self.revision.id => {
                        let why = format!("{host}: {message}");
                        if !peer {
                            return Err(FleetError::Unmet(why));
                        }
                        failure.get_or_insert((Instant::now() + LEASE + SEEN, why));
                    }
                    _ => {}
                }
            }
            if let Some(host) = self.gone().pop_first() {
                return Err(lost_early(&host));
            }
            if self.is_over() {
                return Err(FleetError::Unmet(STOPPED_EARLY.into()));
            }
            if missing.is_empty() {
                return Ok(Ok(built));
            }
            let by = failure.as_ref().map_or(until, |(by, _)| until.min(*by));
            match self.change(by, signals).await? {
                None => {}
                Some(Early::Signal(signal)) => return Ok(Err(signal)),
                Some(Early::Late) => {
                    if let Some((_, why)) = failure {
                        return Err(FleetError::Unmet(why));
                    }
                    let missing = Vec::from_iter(missing).join(", ");
                    let broken = [&self.hosts, &self.agents].map(|w| w.borrow().broken.clone());
                    let broken = broken.into_iter().flatten().next();
                    return Err(FleetError::Unmet(format!(
                        "not built within {} s: {missing}{}",
                        within.as_secs(),
                        broken.map_or(String::new(), |why| format!(" ({why})"))
                    )));
                }
            }
        }
    }

    /// Writes the time of the start, if all hosts still have what they have built, and returns when it
    /// is. A cluster that elects a leader takes nothing for some seconds: each further request has a
    /// later start.
    pub(super) async fn start(
        &mut self,
        built: &BTreeMap<String, Ready>,
    ) -> Result<Instant, FleetError> {
        let key = self.keys.t0();
        let mut when = self.built_is_there();
        when.push(Compare::Absent(key.clone()));
        when.push(Compare::Absent(self.keys.over()));
        // No part began before the request to write the run, so that the start is not too early,
        // however late the reports were read.
        let begun_ns = first_begin(built.values());
        loop {
            let at = Instant::now() + LEAD;
            let since = nanoseconds(at - self.begun);
            let start = Start {
                reference_ns: begun_ns.saturating_add(since),
            };
            let text = serde_json::to_vec(&start).unwrap_or_default();
            let put = Op::Put(key.clone(), text, self.lease);
            let rejected = match self.client.txn_once(&when, &[put]).await {
                Ok(true) => {
                    self.sets.begin(start, at);
                    return Ok(at);
                }
                Ok(false) => true,
                Err(FleetError::Unreachable(_)) => false,
                Err(e) => return Err(self.too_many(e)),
            };
            // An earlier request may have happened, though its answer was lost.
            match self.client.get(&key).await {
                Ok(Some(entry)) => {
                    let start: Start = serde_json::from_slice(&entry.value)
                        .map_err(|e| FleetError::Plan(format!("the start: {e}")))?;
                    let since_ns = start.reference_ns.saturating_sub(begun_ns);
                    let at = self.begun + Duration::from_nanos(since_ns);
                    self.sets.begin(start, at);
                    return Ok(at);
                }
                Ok(None) if rejected => {
                    if self.client.get(&self.keys.over()).await?.is_some() {
                        return Err(FleetError::Unmet(STOPPED_EARLY.into()));
                    }
                    return Err(lost_early(&self.left(&when).await));
                }
                Ok(None) | Err(FleetError::Unreachable(_)) => sleep(AGAIN).await,
                Err(e) => return Err(e),
            }
            if let Some(why) = *self.lost.borrow() {
                return Err(FleetError::LeaseLost(why));
            }
        }
    }

    /// Returns the conditions that the report of each host is still there: it expires with the lease of
    /// its agent, which writes it again if the answer was lost.
    fn built_is_there(&self) -> Vec<Compare> {
        let now = self.hosts.borrow();
        let of = |host: &String| {
            let key = self.keys.built(host);
            // 0 would hold for a key that does not exist.
            let created = now.entries.get(&key).map_or(-1, |entry| entry.created);
            Compare::Created(key, created)
        };
        let mut all: Vec<_> = self.divided.plans.keys().map(of).collect();
        all.push(self.is_mine());
        all
    }

    /// Waits until all agents have confirmed the start, which they do 1.5 s before it: the lease of one that
    /// died outlives it by up to 6 s. Returns a signal that came first.
    ///
    /// # Errors
    /// `emud fleet stop`, or one has not, in time for the others to end before the start. The latter only if etcd
    /// wrote all the time: while it elects a leader, or waits for its disk, no agent can confirm, and the verdict
    /// names a host that was late or lost.
    pub(super) async fn confirmed(
        &mut self,
        at: Instant,
        signals: &mut Signals,
    ) -> Result<Option<i32>, FleetError> {
        // An answer that took long left too little time.
        let mut answers = Instant::now() + LEAD * 3 / 4 < at;
        let mut next = Instant::now();
        loop {
            // Before what the parts report of their end.
            if self.is_over() {
                return Err(FleetError::Unmet(STOPPED_EARLY.into()));
            }
            if let Some(host) = self.failed() {
                return Err(lost_early(&host));
            }
            let missing = self.unconfirmed();
            if missing.is_empty() {
                return Ok(None);
            }
            if Instant::now() + CANCEL >= at {
                if !answers {
                    return Ok(None);
                }
                let cancelled = timeout(CANCEL * 2 / 3, self.clear()).await;
                let what = match cancelled {
                    Ok(Ok(_)) => "no program was started on any host",
                    _ => MAYBE,
                };
                let missing = missing.join(", ");
                return Err(FleetError::Absent(format!(
                    "{missing} did not confirm the start: {what}"
                )));
            }
            if Instant::now() >= next {
                let ping = Op::Put(self.keys.ping(), vec![], self.lease);
                let written = timeout(PROMPT, self.client.txn_once(&[], &[ping])).await;
                answers &= matches!(written, Ok(Ok(true)));
                next = Instant::now() + AGAIN;
            }
            if let Some(Early::Signal(signal)) = self.change(next, signals).await? {
                return Ok(Some(signal));
            }
        }
    }

    /// Returns the hosts whose agents have not confirmed the start of this run.
    fn unconfirmed(&self) -> Vec<String> {
        let has = |host: &String| self.is_signed(&self.keys.started(host));
        self.names().into_iter().filter(|host| !has(host)).collect()
    }
}

fn lost_early(host: &str) -> FleetError {
    FleetError::Absent(format!("{host} was lost before the start"))
}
