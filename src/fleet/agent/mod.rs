// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud agent`: holds the key of a host, and carries out its part of runs.

mod active;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{interval, sleep};

use super::clock::Responder;
use super::etcd::{Access, Client, Compare, Lease, Op, mirror};
use super::facts::{Facts, SystemClock, own_address};
use super::keys::{Keys, unusable};
use super::outbox::{Letter, keep, lease_end};
use super::{ALIVE_EVERY, FleetError, LEASE};
use crate::host::signals::Signals;
use crate::host::single_threaded;

/// Pause before etcd is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The state of the clock is written again after this time.
const FACTS_EVERY: Duration = Duration::from_secs(10);
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
    /// How its parts are carried out.
    pub part: Part,
    /// Called with sentences for the user.
    pub note: fn(&str),
}

/// How the part of a host is carried out.
#[derive(Debug, Clone)]
pub enum Part {
    /// `emud fleet-part` with these arguments.
    Process(Vec<String>),
    /// Simulated, without nodes and links: [`super::simulate`].
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
        let (tell, mut lost) = watch::channel(None);
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
        let mut alive = interval(ALIVE_EVERY);
        let done = loop {
            tokio::select! {
                biased;
                why = lease_end(&mut lost) => break Err(FleetError::LeaseLost(why)),
                line = active::next(&mut active) => {
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
                    }
                }
                _ = alive.tick() => {
                    if let Some(active) = &mut active {
                        self.alive(active);
                    }
                }
            }
        };
        if let Some(active) = active {
            (self.setup.note)(&format!("run {} is ended with the lease", active.id));
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
}
