// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a run: plans, start, end, results.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::sets::Sets;
use super::{Divided, Ended, Request, Times};
use crate::fleet::etcd::{Client, Compare, Lease, Op, Snapshot};
use crate::fleet::keys::Keys;
use crate::fleet::merge::{HostClock, HostLog};
use crate::fleet::plan::HostPlan;
use crate::fleet::protocol::{Built, HostResult, Ready, Revision, Start, digest, first_begin};
use crate::fleet::verdict::{EarlyEnd, HostEnd};
use crate::fleet::{FleetError, LEAD, LEASE};
use crate::host::signals::Signals;

/// Besides the scenario's own time for the preparation: for measurements and many links.
const BUILD: Duration = Duration::from_secs(60);
/// Besides the scenario's own time for the clean-up of a host.
const REPORT: Duration = Duration::from_secs(30);
/// Pause before the start is requested again.
const AGAIN: Duration = Duration::from_millis(100);
/// What `emud fleet stop` makes of a run that has not started.
const STOPPED_EARLY: &str = "the run was stopped before the start";
/// etcd's default limit of a request is 1.5 MiB, and base64 adds a third.
const MAX_BYTES: usize = 1024 * 1024;
/// Its default limit of steps in a transaction is 128.
const MAX_STEPS: usize = 100;

pub(super) struct Controller<'a> {
    pub(super) client: &'a Client,
    pub(super) keys: &'a Keys,
    pub(super) request: &'a Request,
    pub(super) divided: &'a Divided,
    pub(super) lease: Lease,
    pub(super) agents: watch::Receiver<Snapshot>,
    pub(super) hosts: watch::Receiver<Snapshot>,
    pub(super) run: watch::Receiver<Snapshot>,
    pub(super) lost: watch::Receiver<bool>,
    pub(super) revision: Revision,
    /// Of each host's plan.
    pub(super) digests: BTreeMap<String, String>,
    /// Before the request that wrote the run, with which the parts begin.
    pub(super) begun: Instant,
    pub(super) sets: Sets,
}

/// Why a wait ended early.
enum Early {
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
        self.start(&ended.built).await?;
        ended.times.start = Some(all);
        ended.times.started = all.elapsed();
        ended.early = self.complete(signals).await?;
        let over = Op::Put(self.keys.over(), b"over".to_vec(), self.lease);
        self.surely(over).await?;
        self.results(&mut ended, signals).await?;
        Ok(ended)
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        self.divided.plans.keys().cloned().collect()
    }

    /// The agents that take part are still the same ones.
    fn agents_are_there(&self) -> Vec<Compare> {
        let of = |host: &String| {
            let created = self.divided.created.get(host).copied().unwrap_or(0);
            Compare::Created(self.keys.agent(host), created)
        };
        self.divided.plans.keys().map(of).collect()
    }

    /// The report that each host has built its digest is still there: it expires with the lease of
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

    /// Returns the first host whose condition, of those that begin with one of each host, does not hold.
    async fn left(&self, when: &[Compare]) -> String {
        for (host, condition) in self.divided.plans.keys().zip(when) {
            if let Ok(false) = self.client.txn(slice::from_ref(condition), &[]).await {
                return host.clone();
            }
        }
        // It is there again, or etcd is not.
        "a host".into()
    }

    /// Claims the fleet, then writes the plans, and last the run: agents begin with that.
    async fn write_plans(&mut self) -> Result<(), FleetError> {
        let mut puts = vec![];
        for (host, plan) in &self.divided.plans {
            let text = serde_json::to_vec(plan);
            let text = text.map_err(|e| FleetError::Plan(format!("the plan of {host}: {e}")))?;
            if text.len() > MAX_BYTES {
                return Err(FleetError::Plan(format!(
                    "the plan of {host} has {} bytes, a key of etcd takes {MAX_BYTES}: use shorter \
                     traces, or more hosts",
                    text.len()
                )));
            }
            self.digests.insert(host.clone(), digest(&text));
            puts.push(Op::Put(self.keys.plan(host), text, self.lease));
        }
        let id = serde_json::to_vec(&self.digests).unwrap_or_default();
        self.revision.id = format!("{}-{}", &digest(&id)[..8], self.lease.0 & 0xffff_ffff);
        self.claim().await?;
        let mine = [self.is_mine()];
        for part in batches(&puts) {
            let written = self.client.txn(&mine, part).await;
            if !written.map_err(|e| self.too_many(e))? {
                return Err(FleetError::LeaseLost(LEASE.as_secs()));
            }
        }
        let mut when = self.agents_are_there();
        when.extend(mine);
        let put = Op::Put(self.keys.revision(), self.own(), self.lease);
        self.begun = Instant::now();
        match self.client.txn(&when, &[put]).await {
            Ok(true) => {}
            Ok(false) => {
                let host = self.left(&when).await;
                let why = format!("{host} left before the run began");
                return Err(FleetError::Absent(why));
            }
            Err(e) => return Err(self.too_many(e)),
        }
        let bytes: usize = puts.iter().map(Op::bytes).sum();
        (self.request.note)(&format!(
            "run {}: {} hosts, {bytes} bytes of plans",
            self.revision.id,
            self.divided.plans.len()
        ));
        Ok(())
    }

    /// Excludes other runs, and removes what an earlier one has left.
    async fn claim(&self) -> Result<(), FleetError> {
        let key = self.keys.claim();
        let steps = [
            Op::Delete(self.keys.hosts()),
            Op::Delete(self.keys.done_nodes()),
            Op::Delete(self.keys.plans()),
            Op::Put(key.clone(), self.own(), self.lease),
        ];
        if self
            .client
            .txn(&[Compare::Absent(key.clone())], &steps)
            .await?
        {
            return Ok(());
        }
        let other = self.client.get(&key).await?;
        if other
            .as_ref()
            .is_some_and(|entry| entry.lease == self.lease.0)
        {
            // The answer was lost, and the request repeated at the next member.
            return Ok(());
        }
        let other: Option<Revision> =
            other.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        let name = other.map_or_else(String::new, |other| format!(" of {}", other.name));
        Err(FleetError::Busy(format!(
            "another run{name} is active (`emud fleet status`)"
        )))
    }

    fn own(&self) -> Vec<u8> {
        serde_json::to_vec(&self.revision).unwrap_or_default()
    }

    fn is_mine(&self) -> Compare {
        Compare::Value(self.keys.claim(), self.own())
    }

    /// The run and its start are conditional on each host, and etcd limits a transaction.
    fn too_many(&self, error: FleetError) -> FleetError {
        match error {
            FleetError::Rejected { message, .. } if message.contains("too many operations") => {
                FleetError::Plan(format!(
                    "etcd takes fewer than {} conditions in a transaction: start its members with \
                     --max-txn-ops {}",
                    self.divided.plans.len() + 1,
                    (self.divided.plans.len() + 1).next_power_of_two()
                ))
            }
            other => other,
        }
    }

    pub(super) fn value<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let now = self.hosts.borrow();
        let entry = now.entries.get(key)?;
        serde_json::from_slice(&entry.value).ok()
    }

    /// Returns the result of a host in this run.
    fn result(&self, host: &str) -> Option<HostResult> {
        let result: HostResult = self.value(&self.keys.result(host))?;
        (result.run == self.revision.id).then_some(result)
    }

    fn is_complete(&self, host: &str) -> bool {
        let now = self.hosts.borrow();
        let entry = now.entries.get(&self.keys.complete(host));
        entry.is_some_and(|entry| entry.value == self.revision.id.as_bytes())
    }

    /// Returns hosts of this run whose agent is not there any more.
    fn gone(&self) -> BTreeSet<String> {
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

    /// Writes a key. As long as the lease lasts, a missing answer is not the end of the run.
    pub(super) async fn surely(&self, op: Op) -> Result<(), FleetError> {
        let ops = [op];
        loop {
            match self.client.txn(&[], &ops).await {
                Err(FleetError::Unreachable(_)) if !*self.lost.borrow() => sleep(AGAIN).await,
                done => return done.map(drop),
            }
        }
    }

    /// Returns whether the run is stopped.
    fn is_over(&self) -> bool {
        self.run.borrow().entries.contains_key(&self.keys.over())
    }

    /// Waits for a change of any key, a signal, or a time.
    async fn change(
        &mut self,
        until: Instant,
        signals: &mut Signals,
    ) -> Result<Option<Early>, FleetError> {
        tokio::select! {
            biased;
            _ = self.lost.wait_for(|lost| *lost) => Err(FleetError::LeaseLost(LEASE.as_secs())),
            signal = signals.any() => Ok(Some(Early::Signal(signal))),
            _ = self.hosts.changed() => Ok(None),
            _ = self.agents.changed() => Ok(None),
            _ = self.run.changed() => Ok(None),
            () = sleep_until(until) => Ok(Some(Early::Late)),
        }
    }

    async fn all_built(
        &mut self,
        within: Duration,
        signals: &mut Signals,
    ) -> Result<Result<BTreeMap<String, Ready>, i32>, FleetError> {
        let until = Instant::now() + within;
        let mut built = BTreeMap::new();
        let mut missing = self.names();
        loop {
            for host in missing.clone() {
                match self.value(&self.keys.built(&host)) {
                    // That of an earlier run does not count.
                    Some(Built::Ready(ready)) if Some(&ready.digest) == self.digests.get(&host) => {
                        missing.remove(&host);
                        built.insert(host, ready);
                    }
                    Some(Built::Failed { run, message, .. }) if run == self.revision.id => {
                        return Err(FleetError::Unmet(format!("{host}: {message}")));
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
            match self.change(until, signals).await? {
                None => {}
                Some(Early::Signal(signal)) => return Ok(Err(signal)),
                Some(Early::Late) => {
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

    /// Writes the time of the start, if all hosts still have what they have built. A cluster that
    /// elects a leader takes nothing for some seconds: each further request has a later start.
    async fn start(&mut self, built: &BTreeMap<String, Ready>) -> Result<(), FleetError> {
        let key = self.keys.t0();
        let mut when = self.built_is_there();
        when.push(Compare::Absent(key.clone()));
        when.push(Compare::Absent(self.keys.over()));
        // No part began before the request to write the run, so that the start is not too early,
        // however late the reports were read.
        let begun_ns = first_begin(built.values());
        loop {
            let at = Instant::now() + LEAD;
            let since = u64::try_from((at - self.begun).as_nanos()).unwrap_or(u64::MAX);
            let start = Start {
                reference_ns: begun_ns.saturating_add(since),
            };
            let text = serde_json::to_vec(&start).unwrap_or_default();
            let put = Op::Put(key.clone(), text, self.lease);
            let rejected = match self.client.txn_once(&when, &[put]).await {
                Ok(true) => {
                    self.sets.begin(start, at);
                    return Ok(());
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
                    return Ok(());
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
            if *self.lost.borrow() {
                return Err(FleetError::LeaseLost(LEASE.as_secs()));
            }
        }
    }

    /// Waits until the programs of all hosts have ended, a host is lost, or it is stopped.
    async fn complete(&mut self, signals: &mut Signals) -> Result<Option<EarlyEnd>, FleetError> {
        // No end: a scenario may have no limit.
        let never = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        loop {
            let hosts = self.names();
            let complete = hosts.iter().all(|host| self.is_complete(host));
            // A part that ended by itself has failed; without it the others measure something else.
            let failed = hosts.iter().any(|host| self.result(host).is_some());
            self.sets().await?;
            if complete || failed || !self.gone().is_empty() {
                return Ok(None);
            }
            if self.is_over() {
                return Ok(Some(EarlyEnd::Stop));
            }
            let until = self.sets.next().unwrap_or(never);
            if let Some(Early::Signal(signal)) = self.change(until, signals).await? {
                return Ok(Some(EarlyEnd::Signal(signal)));
            }
        }
    }

    /// Waits for the results of all hosts that are there.
    async fn results(
        &mut self,
        ended: &mut Ended,
        signals: &mut Signals,
    ) -> Result<(), FleetError> {
        let plans = self.divided.plans.values();
        let longest = plans.map(HostPlan::longest_clean_up).max();
        let within = longest.unwrap_or_default() + REPORT;
        let until = Instant::now() + within;
        loop {
            let gone = self.gone();
            for host in self.names() {
                if ended.hosts.contains_key(&host) {
                    continue;
                }
                if let Some(result) = self.result(&host) {
                    let clock = ended.built.get(&host).and_then(|ready| ready.clock);
                    ended
                        .logs
                        .push(self.log(&host, &result, ended.built.get(&host)));
                    let result = Box::new(result);
                    ended
                        .hosts
                        .insert(host, HostEnd::Reported { result, clock });
                } else if gone.contains(&host) {
                    let why = "its agent does not renew its lease any more".to_owned();
                    ended.hosts.insert(host, HostEnd::Lost(why));
                }
            }
            if ended.hosts.len() == self.divided.plans.len() {
                return Ok(());
            }
            match self.change(until, signals).await? {
                None => {}
                Some(Early::Signal(signal)) => ended.early = Some(EarlyEnd::Signal(signal)),
                Some(Early::Late) => break,
            }
            if matches!(ended.early, Some(EarlyEnd::Signal(_)))
                && until.saturating_duration_since(Instant::now()) < within / 2
            {
                break;
            }
        }
        for host in self.names() {
            let why = format!("it did not report within {} s", within.as_secs());
            ended.hosts.entry(host).or_insert(HostEnd::Lost(why));
        }
        Ok(())
    }

    fn log(&self, host: &str, result: &HostResult, ready: Option<&Ready>) -> HostLog {
        let now = self.hosts.borrow();
        let chunk = |n| Some(now.entries.get(&self.keys.log(host, n))?.value.as_slice());
        let chunks: Vec<_> = (0..result.logs).map_while(chunk).collect();
        if chunks.len() < result.logs as usize {
            (self.request.note)(&format!(
                "the log of {host} is incomplete: etcd has no more of it"
            ));
        }
        let text = chunks.concat();
        let start = ready.and_then(|ready| Some((ready.mono_ns, ready.clock?)));
        let end = result.clock.map(|clock| (result.mono_ns, clock));
        HostLog {
            host: host.to_owned(),
            text,
            clock: HostClock {
                start: start.map_or((0, 0), |(at, clock)| (at, clock.offset_ns)),
                end: end.map(|(at, clock)| (at, clock.offset_ns)),
                bound_ns: [start, end]
                    .into_iter()
                    .flatten()
                    .map(|(_, c)| c.bound_ns)
                    .max()
                    .unwrap_or(0),
            },
        }
    }

    /// Deletes all keys of the run; those of agents that were lost have gone with their lease.
    pub(super) async fn clear(&self) -> Result<(), FleetError> {
        let all = [
            self.keys.run(),
            self.keys.hosts(),
            self.keys.plans(),
            self.keys.claim(),
        ]
        .map(Op::Delete);
        // Not those of another run.
        self.client.txn(&[self.is_mine()], &all).await.map(drop)
    }
}

fn lost_early(host: &str) -> FleetError {
    FleetError::Absent(format!("{host} was lost before the start"))
}

/// Divides steps into transactions that etcd takes.
fn batches(mut steps: &[Op]) -> Vec<&[Op]> {
    let mut out = vec![];
    while !steps.is_empty() {
        let mut bytes = 0;
        let fits = |op: &&Op| {
            bytes += op.bytes();
            bytes <= MAX_BYTES
        };
        let count = steps.iter().take(MAX_STEPS).take_while(fits).count();
        let (batch, rest) = steps.split_at(count.max(1));
        out.push(batch);
        steps = rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_as_large_as_etcd_takes() {
        let put = |bytes| Op::Put(String::new(), vec![0; bytes], Lease(1));
        let sizes = |all: &[Op]| batches(all).iter().map(|b| b.len()).collect::<Vec<_>>();
        assert!(batches(&[]).is_empty());
        assert_eq!(sizes(&vec![put(1); 250]), [100, 100, 50]);
        let half = MAX_BYTES / 2;
        assert_eq!(sizes(&[put(half), put(half), put(1)]), [2, 1]);
        assert_eq!(sizes(&[put(MAX_BYTES), put(1), put(half)]), [1, 2]);
    }
}
