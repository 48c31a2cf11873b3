// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud agent`: holds the key of a host, and carries out its part of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{interval, sleep};

use super::child::Child;
use super::clock::Responder;
use super::etcd::{Access, Client, Compare, Lease, Op, Snapshot, mirror};
use super::facts::{Facts, SystemClock, own_address};
use super::keys::{Keys, unusable};
use super::outbox::{Letter, Outbox, keep, send};
use super::plan::HostPlan;
use super::protocol::{Built, FromChild, HostResult, Revision, Start, ToChild};
use super::{FleetError, LEASE};
use crate::host::signals::Signals;
use crate::host::single_threaded;

/// Pause before etcd is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The state of the clock is written again after this time, and the part moves the end of its links on.
const FACTS_EVERY: Duration = Duration::from_secs(10);
/// Bytes of the log in one key: etcd's limit for a request is 1.5 MiB, and base64 adds a third.
const CHUNK: usize = 768 * 1024;
/// Longest log that is sent.
const LONGEST_LOG: u64 = 64 * 1024 * 1024;

/// Settings of an agent.
#[derive(Debug)]
pub struct Setup {
    /// How etcd is reached.
    pub access: Access,
    /// Agents and controllers of one name belong together.
    pub fleet: String,
    /// Name of the host.
    pub host: String,
    /// Address in the underlay; `None`: that from which etcd is reached.
    pub address: Option<IpAddr>,
    /// Share of experiments; `None`: the number of CPUs.
    pub weight: Option<f64>,
    /// Whether programs run as root.
    pub allow_root: bool,
    /// What carries out its parts.
    pub part: Part,
    /// Called with sentences for the user.
    pub note: fn(&str),
}

/// What carries out the part of a host.
#[derive(Debug, Clone)]
pub enum Part {
    /// `emud fleet-part` with these arguments.
    Process(Vec<String>),
    /// Nothing is built: [`super::simulate`].
    Simulated(mpsc::UnboundedSender<Instant>),
}

/// Runs until a signal arrives.
///
/// # Errors
/// A wrong setting, or another agent has the name.
pub fn run(setup: &Setup) -> Result<(), FleetError> {
    if let Some(why) = unusable(&setup.host).or(unusable(&setup.fleet)) {
        return Err(FleetError::Plan(format!("--host or --fleet: {why}")));
    }
    let runtime = single_threaded().map_err(FleetError::system("start a runtime"))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(FleetError::system("catch signals"))?;
        let client = Client::new(&setup.access)?;
        tokio::select! {
            // Dropping the child kills it; a part that ends in time has ended before.
            _ = signals.any() => Ok(()),
            done = serve_forever(setup, &client) => done,
        }
    })
}

async fn serve_forever(setup: &Setup, client: &Client) -> Result<(), FleetError> {
    let (host, port) = client.member();
    let address = match setup.address {
        Some(address) => address,
        None => own_address(&host, port).map_err(FleetError::system(format!(
            "find the address towards {host}"
        )))?,
    };
    let responder = Responder::start(address);
    let responder = responder.map_err(FleetError::system(format!("listen at {address}")))?;
    let facts = Facts::collect(address, &responder, setup.weight, setup.allow_root)?;
    serve(setup, client, facts).await
}

/// Registers the host, again after every loss of its lease.
pub(super) async fn serve(setup: &Setup, client: &Client, facts: Facts) -> Result<(), FleetError> {
    let mut agent = Agent {
        setup,
        client,
        keys: Keys::new(&setup.fleet),
        facts,
        since: 0,
        begun: None,
        broken: None,
    };
    loop {
        match agent.registered().await {
            Err(
                e @ (FleetError::Unreachable(_)
                | FleetError::LeaseLost(_)
                | FleetError::Rejected { .. }),
            ) => {
                (setup.note)(&e.to_string());
                sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

struct Agent<'a> {
    setup: &'a Setup,
    client: &'a Client,
    keys: Keys,
    facts: Facts,
    /// Revision of the store at which it registered.
    since: i64,
    /// The last run that it has begun, or in which it has no part.
    begun: Option<String>,
    /// Why the keys of the run cannot be followed at present.
    broken: Option<String>,
}

/// A run in progress.
struct Active {
    id: String,
    child: Child,
    built: bool,
    started: Option<Start>,
    done: BTreeSet<String>,
    over: bool,
    /// Changes, and whether the part knows their times.
    sets: BTreeMap<String, bool>,
    /// Whether the result is written; the child may still run.
    result: bool,
}

impl Agent<'_> {
    /// Registers the host, then serves it until the lease is lost.
    async fn registered(&mut self) -> Result<(), FleetError> {
        let lease = self.client.grant(LEASE).await?;
        self.since = self.register(lease).await?;
        (self.setup.note)(&format!(
            "{} is registered in fleet {} as {}",
            self.setup.host, self.setup.fleet, self.facts.address
        ));
        let (outbox, letters) = mpsc::unbounded_channel();
        let (tell, mut lost) = watch::channel(false);
        let tasks = tokio::spawn(keep(
            self.client.clone(),
            lease,
            letters,
            tell,
            self.setup.note,
        ));
        let mut run = mirror(self.client, self.keys.run());
        let mut active = None;
        let mut facts = interval(FACTS_EVERY);
        let done = loop {
            tokio::select! {
                biased;
                () = is_true(&mut lost) => {
                    break Err(FleetError::LeaseLost(LEASE.as_secs()));
                }
                line = next(&mut active) => {
                    if let Some(now) = &mut active {
                        self.line(now, line, &outbox).await;
                    }
                }
                changed = run.changed() => {
                    if changed.is_err() {
                        break Err(FleetError::Unreachable("the watch ended".into()));
                    }
                    let now = run.borrow_and_update().clone();
                    self.changed(&mut active, &now, &outbox).await;
                }
                _ = facts.tick() => {
                    if let Ok(clock) = SystemClock::read() {
                        self.facts.clock = clock;
                    }
                    let letter = Letter::Put(self.keys.agent(&self.setup.host), self.text());
                    let _ = outbox.send(letter);
                    if let Some(active) = &active {
                        active.child.cut_log(LONGEST_LOG);
                        active.child.tell(&ToChild::Alive);
                    }
                }
            }
        };
        if let Some(active) = active {
            (self.setup.note)(&format!("run {} is ended: the lease is lost", active.id));
            active.child.end().await;
        }
        tasks.abort();
        done
    }

    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(&self.facts).unwrap_or_default()
    }

    /// Returns at which revision of the store the key was created. That of an agent that was killed
    /// stays until its lease expires.
    async fn register(&self, lease: Lease) -> Result<i64, FleetError> {
        let key = self.keys.agent(&self.setup.host);
        let since = Instant::now();
        loop {
            let put = Op::Put(key.clone(), self.text(), lease);
            let absent = Compare::Absent(key.clone());
            match self.client.txn(&[absent], &[put]).await {
                // It may have happened.
                Ok(_) | Err(FleetError::Unreachable(_)) => {}
                Err(e) => return Err(e),
            }
            // Nor does `false` say that the key is another agent's: a request whose answer was lost
            // is repeated at the next member.
            let there = self.client.get(&key).await?;
            if let Some(own) = there.filter(|entry| entry.lease == lease.0) {
                return Ok(own.created);
            }
            if since.elapsed() > LEASE * 2 {
                return Err(FleetError::Busy(format!(
                    "another agent of fleet {} has the name {}",
                    self.setup.fleet, self.setup.host
                )));
            }
            self.client.renew(lease).await?;
            sleep(AGAIN).await;
        }
    }

    /// Follows the keys of the run.
    async fn changed(&mut self, active: &mut Option<Active>, now: &Snapshot, outbox: &Outbox) {
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
        }
        let prefix = self.keys.done_nodes();
        let of_this_run = |(key, entry): (&String, &super::etcd::Entry)| {
            let node = key.strip_prefix(&prefix)?.to_owned();
            (entry.value == active.id.as_bytes()).then_some(node)
        };
        let done: BTreeSet<String> = now.entries.iter().filter_map(of_this_run).collect();
        if done != active.done {
            active.done = done.clone();
            active.child.tell(&ToChild::Done(done));
        }
        self.sets(active, now);
        if !active.over && now.entries.contains_key(&self.keys.over()) {
            active.over = true;
            active.child.tell(&ToChild::Over);
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
                    built: false,
                    started: None,
                    done: BTreeSet::new(),
                    over: false,
                    sets: BTreeMap::new(),
                    result: false,
                });
            }
            Err(e) => {
                let (message, code) = (e.to_string(), e.exit_code());
                let run = revision.id.clone();
                send(
                    outbox,
                    self.keys.built(&self.setup.host),
                    &Built::Failed { run, message, code },
                );
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
    async fn line(&self, active: &mut Active, line: Option<FromChild>, outbox: &Outbox) {
        let host = &self.setup.host;
        match line {
            Some(FromChild::Built(mut built)) => {
                active.built = true;
                if let Built::Failed { run, .. } = &mut built {
                    run.clone_from(&active.id);
                }
                send(outbox, self.keys.built(host), &built);
            }
            Some(FromChild::Done(node)) => self.sign(active, self.keys.done(&node), outbox),
            Some(FromChild::Complete) => self.sign(active, self.keys.complete(host), outbox),
            Some(FromChild::Set(id, done)) => send(outbox, self.keys.set_done(host, &id), &done),
            Some(FromChild::Result(result)) => self.result(active, *result, outbox),
            None => {
                let status = active.child.status().await;
                let message = format!("its part ended unexpectedly ({status})");
                (self.setup.note)(&message);
                if !active.built {
                    active.built = true;
                    let built = Built::Failed {
                        run: active.id.clone(),
                        message: message.clone(),
                        code: 70,
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

async fn is_true(flag: &mut watch::Receiver<bool>) {
    // An error: nobody will change it any more.
    let _ = flag.wait_for(|flag| *flag).await;
}

async fn next(active: &mut Option<Active>) -> Option<FromChild> {
    match active {
        Some(active) if !active.result => active.child.next().await,
        _ => std::future::pending().await,
    }
}
