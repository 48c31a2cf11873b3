// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's part of a run: what its agent passes on between etcd and the part.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{AGAIN, Agent, LONGEST_LOG, Part};
use crate::fleet::child::Child;
use crate::fleet::etcd::{Entry, Snapshot};
use crate::fleet::keys::LOST;
use crate::fleet::outbox::{Letter, Outbox, send};
use crate::fleet::plan::HostPlan;
use crate::fleet::protocol::{Built, FromChild, HostResult, Revision, Start, ToChild};
use crate::fleet::{ALIVE_EVERY, FleetError, LEASE};

/// An agent confirms the start so long after it was written: what dies until then ends the run before it.
const CONFIRM: Duration = Duration::from_millis(500);
/// A part that leaves more than this number of the agent's signs of life unanswered hangs, or is stopped.
const SILENT: u32 = 5;
/// Bytes of the log in one key: etcd's limit for a request is 1.5 MiB, and base64 adds a third.
const CHUNK: usize = 768 * 1024;

/// A run in progress.
pub(super) struct Active {
    pub(super) id: String,
    pub(super) child: Child,
    /// Whether the part has built all; `None`: it has not reported yet.
    built: Option<bool>,
    started: Option<Start>,
    done: BTreeSet<String>,
    over: bool,
    /// Changes, and whether the part knows their times.
    sets: BTreeMap<String, bool>,
    /// Whether the result is written; the child may still run.
    pub(super) result: bool,
    /// Signs of life since the last line of the part.
    silent: u32,
}

impl Agent<'_> {
    /// Shows the part that the agent has its lease. A part that hangs is killed, which ends it as any other
    /// that ends by itself.
    pub(super) fn alive(&self, active: &mut Active) {
        active.child.tell(&ToChild::Alive);
        active.silent += 1;
        // It may have much to measure and to build before, for which the controller has a limit.
        if active.silent > SILENT && active.built == Some(true) && !active.result {
            let seconds = (ALIVE_EVERY * SILENT).as_secs();
            (self.setup.note)(&format!(
                "its part did not answer for {seconds} s: it is killed"
            ));
            active.child.kill();
        }
    }

    /// Follows the keys of the run.
    pub(super) async fn changed(
        &mut self,
        active: &mut Option<Active>,
        now: &Snapshot,
        outbox: &Outbox,
    ) {
        if now.broken != self.broken {
            self.broken.clone_from(&now.broken);
            if let Some(why) = &now.broken {
                (self.setup.note)(&format!("the keys of the run cannot be followed: {why}"));
            }
        }
        if now.broken.is_some() || !now.known {
            // The lease decides.
            return;
        }
        // An earlier run had the previous registration of this host, which it has lost.
        let entry = now.entries.get(&self.keys.revision());
        let entry = entry.filter(|entry| entry.created > self.since);
        let lease = entry.map_or(0, |entry| entry.lease);
        let revision: Option<Revision> =
            entry.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        let id = revision.as_ref().map(|revision| revision.id.as_str());
        if let Some(old) = active.take_if(|active| Some(active.id.as_str()) != id) {
            if !old.result {
                (self.setup.note)(&format!("run {} is ended: its controller is gone", old.id));
            }
            old.child.end().await;
            let _ = outbox.send(Letter::Delete(self.keys.host(&self.setup.host)));
        }
        let Some(revision) = revision else { return };
        if active.is_none() && self.begun.as_ref() != Some(&revision.id) {
            self.begin(active, &revision, lease, outbox).await;
        }
        let Some(active) = active else { return };
        let start = now.entries.get(&self.keys.t0());
        if active.started.is_none()
            && let Some(start) = start.and_then(|entry| serde_json::from_slice(&entry.value).ok())
        {
            active.started = Some(start);
            active.child.tell(&ToChild::Start(start));
            let letter = Letter::Put(
                self.keys.started(&self.setup.host),
                active.id.clone().into_bytes(),
            );
            let outbox = outbox.clone();
            tokio::spawn(async move {
                sleep(CONFIRM).await;
                // The receiver ends with the lease.
                let _ = outbox.send(letter);
            });
        }
        let prefix = self.keys.done_nodes();
        let of_this_run = |(key, entry): (&String, &Entry)| {
            let node = key.strip_prefix(&prefix)?.to_owned();
            (entry.value == active.id.as_bytes()).then_some(node)
        };
        let done: BTreeSet<String> = now.entries.iter().filter_map(of_this_run).collect();
        if done != active.done {
            active.done = done.clone();
            active.child.tell(&ToChild::Done(done));
        }
        self.sets(active, now);
        if !active.over
            && let Some(why) = now.entries.get(&self.keys.over())
        {
            active.over = true;
            let is_lost = why.value == LOST.as_bytes();
            active.child.tell(&ToChild::Over(is_lost));
        }
    }

    /// Passes on changes of links, and when they take effect.
    fn sets(&self, active: &mut Active, now: &Snapshot) {
        let value = |key: String| Some(now.entries.get(&key)?.value.as_slice());
        let sets = self.keys.sets();
        let of = |key: &String| key.strip_prefix(&sets).map(str::to_owned);
        for id in now.entries.keys().filter_map(of) {
            if !active.sets.contains_key(&id)
                && let Some(asked) = value(sets.clone() + &id)
                && let Ok(asked) = serde_json::from_slice(asked)
            {
                active.sets.insert(id.clone(), false);
                active.child.tell(&ToChild::Set(id.clone(), asked));
            }
            if active.sets.get(&id) == Some(&false)
                && let Some(turn) = value(self.keys.turns() + &id)
                && let Ok(turn) = serde_json::from_slice(turn)
            {
                active.sets.insert(id.clone(), true);
                active.child.tell(&ToChild::Turn(id, turn));
            }
        }
    }

    /// Starts the part of a new run, if this host has one.
    async fn begin(
        &mut self,
        active: &mut Option<Active>,
        revision: &Revision,
        lease: i64,
        outbox: &Outbox,
    ) {
        self.begun = Some(revision.id.clone());
        match self.part(lease).await {
            Ok(None) => {}
            Ok(Some(child)) => {
                (self.setup.note)(&format!("run {} of {} begins", revision.id, revision.name));
                *active = Some(Active {
                    id: revision.id.clone(),
                    child,
                    built: None,
                    started: None,
                    done: BTreeSet::new(),
                    over: false,
                    sets: BTreeMap::new(),
                    result: false,
                    silent: 0,
                });
            }
            Err(e) => {
                let built = Built::failed(revision.id.clone(), &e);
                send(outbox, self.keys.built(&self.setup.host), &built);
            }
        }
    }

    /// Starts the child; `None`: this host has no plan under the lease of the run.
    async fn part(&self, lease: i64) -> Result<Option<Child>, FleetError> {
        let key = self.keys.plan(&self.setup.host);
        let since = Instant::now();
        let entry = loop {
            match self.client.get(&key).await {
                // As long as the lease lasts, that is not the end of the run.
                Err(FleetError::Unreachable(_)) if since.elapsed() < LEASE => sleep(AGAIN).await,
                done => break done?,
            }
        };
        let Some(entry) = entry.filter(|entry| entry.lease == lease) else {
            return Ok(None);
        };
        let text = String::from_utf8(entry.value);
        let text = text.map_err(|e| FleetError::Plan(format!("the plan: {e}")))?;
        serde_json::from_str::<HostPlan>(&text)
            .map_err(|e| FleetError::Plan(format!("the plan cannot be read: {e}")))?;
        match &self.setup.part {
            Part::Process(arguments) => Child::start(&text, arguments).map(Some),
            Part::Simulated(heard) => Ok(Some(Child::simulated(&text, heard.clone()))),
        }
    }

    /// Passes on what the part reports; `None`: it has ended.
    pub(super) async fn line(&self, active: &mut Active, line: Option<FromChild>, outbox: &Outbox) {
        let host = &self.setup.host;
        active.silent = 0;
        match line {
            Some(FromChild::Built(mut built)) => {
                active.built = Some(true);
                if let Built::Failed { run, .. } = &mut built {
                    active.built = Some(false);
                    run.clone_from(&active.id);
                }
                send(outbox, self.keys.built(host), &built);
            }
            Some(FromChild::Alive) => {}
            Some(FromChild::Done(node)) => self.sign(active, self.keys.done(&node), outbox),
            Some(FromChild::Complete) => self.sign(active, self.keys.complete(host), outbox),
            Some(FromChild::Set(id, done)) => send(outbox, self.keys.set_done(host, &id), &done),
            Some(FromChild::Result(result)) => self.result(active, *result, outbox),
            // It has said why, and ended.
            None if active.built == Some(false) => active.result = true,
            None => {
                let status = active.child.status().await;
                let message = format!("its part ended unexpectedly ({status})");
                (self.setup.note)(&message);
                if active.built.is_none() {
                    active.built = Some(false);
                    let built = Built::Failed {
                        run: active.id.clone(),
                        message: message.clone(),
                        code: 70,
                        peer: false,
                    };
                    send(outbox, self.keys.built(host), &built);
                }
                let result = HostResult {
                    run: String::new(),
                    judgement: None,
                    exits: vec![],
                    notes: vec![],
                    error: Some(message),
                    clock: None,
                    mono_ns: 0,
                    tunnels: BTreeMap::new(),
                    logs: 0,
                };
                self.result(active, result, outbox);
            }
        }
    }

    /// Writes the name of the run: what an earlier one wrote late does not count.
    fn sign(&self, active: &Active, key: String, outbox: &Outbox) {
        // The receiver ends with the lease.
        let _ = outbox.send(Letter::Put(key, active.id.clone().into_bytes()));
    }

    /// Writes the log, then the result, after which the controller reads the log.
    fn result(&self, active: &mut Active, mut result: HostResult, outbox: &Outbox) {
        let mut offset = 0;
        while offset < LONGEST_LOG {
            let room = usize::try_from(LONGEST_LOG - offset).unwrap_or(CHUNK);
            let chunk = match active.child.log(offset, CHUNK.min(room)) {
                Ok(chunk) if chunk.is_empty() => break,
                Ok(chunk) => chunk,
                Err(e) => {
                    result.notes.push(format!("the log cannot be read: {e}"));
                    break;
                }
            };
            offset += chunk.len() as u64;
            let key = self.keys.log(&self.setup.host, result.logs);
            result.logs += 1;
            let _ = outbox.send(Letter::Put(key, chunk));
        }
        if offset >= LONGEST_LOG {
            result.notes.push("the log is cut after 64 MiB".into());
        }
        active.result = true;
        result.run.clone_from(&active.id);
        send(outbox, self.keys.result(&self.setup.host), &result);
    }
}

/// Returns the next line of the part; never without one, or after its result.
pub(super) async fn next(active: &mut Option<Active>) -> Option<FromChild> {
    match active {
        Some(active) if !active.result => active.child.next().await,
        _ => std::future::pending().await,
    }
}
