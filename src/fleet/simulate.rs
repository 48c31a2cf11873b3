// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many hosts a cluster of etcd coordinates: agents without nodes. The controller, the agents'
//! side of the store and all keys are those of a real run.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::agent::{Part, Setup, serve};
use super::clock::Responder;
use super::controller::{Divided, Ended, Request, agents, block_on, carry_out};
use super::etcd::{Access, Client, Op, mirror};
use super::facts::Facts;
use super::keys::Keys;
use super::plan::{HostPlan, MTU, Options, PORT, divide};
use super::verdict::HostEnd;
use super::{FleetError, LEASE};
use crate::experiment::scenario::{Overrides, Plan, Scenario};
use crate::host::signals::Signals;
use crate::text::columns;

/// How long the agents may take to register.
const JOIN: Duration = Duration::from_secs(120);
/// Most links of one host: each needs a node at the other end.
pub const MAX_LINKS: u32 = 1023;

/// Times and sizes of a run of simulated agents.
#[derive(Debug)]
pub struct Simulated {
    agents: u32,
    links: u32,
    /// Bytes of all plans.
    bytes: usize,
    /// Number of keys at the end, those of the agents included.
    keys: u64,
    joined: Duration,
    ended: Ended,
    /// When each agent knew the start, from its request on.
    heard: Vec<Duration>,
    /// Resident memory of all members in bytes after the run, and bytes that they sent during it.
    memory: Option<f64>,
    sent: Option<f64>,
}

/// Carries out a run of this many agents with this many links each.
///
/// # Errors
/// As for a run; [`FleetError::Unmet`] if they do not register within 120 s.
pub fn simulate(
    access: &Access,
    count: u32,
    links: u32,
    note: fn(&str),
) -> Result<Simulated, FleetError> {
    enough_files()?;
    let id = crate::host::random_seed().map_err(FleetError::system("draw a number"))?;
    let fleet = format!("simulated-{:08x}", id as u32);
    let responder = Responder::start([127, 0, 0, 1].into());
    let responder = responder.map_err(FleetError::system("listen at 127.0.0.1"))?;
    let facts = Facts::collect([127, 0, 0, 1].into(), &responder, None, false)?;
    let (tell, heard) = mpsc::unbounded_channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let others = {
        let (access, fleet, facts) = (access.clone(), fleet.clone(), facts.clone());
        thread::spawn(move || {
            block_on(async {
                let client = Client::new(&access)?;
                let mut all = JoinSet::new();
                for n in 0..count {
                    let (client, facts) = (client.clone(), facts.clone());
                    let setup = Setup {
                        access: access.clone(),
                        fleet: fleet.clone(),
                        host: host(n),
                        address: None,
                        weight: None,
                        allow_root: false,
                        part: Part::Simulated(tell.clone()),
                        note: |_| {},
                    };
                    all.spawn(async move { serve(&setup, &client, facts).await });
                }
                tokio::select! {
                    _ = stopped => Ok(()),
                    Some(Ok(Err(e))) = all.join_next() => Err(e),
                }
            })
        })
    };
    let keys = Keys::new(&fleet);
    let done = block_on(async {
        let client = Client::new(access)?;
        let done = one_run(&client, &keys, &facts, (count, links), heard, note).await;
        // Their leases take the other keys along.
        let _ = client.txn(&[], &[Op::Delete(keys.all())]).await;
        done
    });
    let _ = stop.send(());
    match others.join() {
        Ok(Err(e)) => Err(e),
        _ => done,
    }
}

async fn one_run(
    client: &Client,
    keys: &Keys,
    facts: &Facts,
    (count, links): (u32, u32),
    mut heard: mpsc::UnboundedReceiver<Instant>,
    note: fn(&str),
) -> Result<Simulated, FleetError> {
    let mut signals = Signals::new().map_err(FleetError::system("catch signals"))?;
    let begun = Instant::now();
    let mut there = mirror(client, keys.agents());
    let complete = async {
        let all = there.wait_for(|now| now.entries.len() == count as usize);
        all.await.is_ok()
    };
    let complete = tokio::select! {
        signal = signals.any() => return Err(FleetError::Unmet(format!("ended by signal {signal}"))),
        complete = timeout(JOIN, complete) => complete == Ok(true),
    };
    if !complete {
        return Err(FleetError::Unmet(format!(
            "{} of {count} agents are registered after {} s",
            there.borrow().entries.len(),
            JOIN.as_secs()
        )));
    }
    let joined = begun.elapsed();
    drop(there);
    let request = request(links, note)?;
    let divided = divided(client, keys, facts, &request).await?;
    let plans = divided.plans.values();
    let bytes = plans.map(|plan| serde_json::to_vec(plan).map_or(0, |text| text.len()));
    let bytes = bytes.sum();
    let sent = "etcd_network_client_grpc_sent_bytes_total";
    let before = client.metric(sent).await;
    let ended = carry_out(client, keys, &request, &divided, &mut signals).await?;
    let after = client.metric(sent).await;
    let lost = |end: &&HostEnd| matches!(end, HostEnd::Lost(_));
    let lost = ended.hosts.values().filter(lost).count();
    if lost > 0 {
        let problem = format!(
            "{lost} of {count} agents lost their lease of {} s",
            LEASE.as_secs()
        );
        return Err(FleetError::Absent(problem));
    }
    let mut times = vec![];
    while let Ok(at) = heard.try_recv() {
        let start = ended.times.start;
        times.extend(start.map(|start| at.saturating_duration_since(start.into_std())));
    }
    times.sort_unstable();
    Ok(Simulated {
        agents: count,
        links,
        bytes,
        keys: ended.keys + u64::from(count),
        joined,
        heard: times,
        ended,
        memory: client.metric("process_resident_memory_bytes").await,
        sent: before.zip(after).map(|(before, after)| after - before),
    })
}

fn host(n: u32) -> String {
    format!("h{n:04}")
}

/// Returns a request for a node with links to nodes of another host.
fn request(links: u32, note: fn(&str)) -> Result<Request, FleetError> {
    let mut text =
        "name = \"simulated\"\n[node.own]\nhost = \"a\"\ncommand = \"ping -c 20 n0\"\n".to_owned();
    for n in 0..links {
        text += &format!(
            "[node.n{n}]\nhost = \"b\"\n[link.l{n}]\nbetween = [\"own\", \"n{n}\"]\n\
             profile.link = {{ delay = \"20ms\", rate = \"100Mbit\" }}\n"
        );
    }
    let plan = Scenario::parse(&text, "simulated", Path::new(""))
        .and_then(|scenario| scenario.plan(&Overrides::default()));
    Ok(Request {
        plan: plan.map_err(|e| FleetError::Plan(e.to_string()))?,
        hosts: None,
        options: Options {
            seed: 1,
            size: None,
            port: PORT,
            mtu: MTU,
            tolerance_ns: 0,
            clock_bound_ns: 0,
            sample_ns: None,
            monitor: None,
        },
        fast_ns: 0,
        note,
    })
}

/// Gives every agent the part of host `a`.
async fn divided(
    client: &Client,
    keys: &Keys,
    facts: &Facts,
    request: &Request,
) -> Result<Divided, FleetError> {
    let pair = ["a", "b"].map(|name| (name.to_owned(), facts.clone()));
    let of = |plan: &Plan| {
        plan.nodes
            .iter()
            .map(|n| usize::from(n.name != "own"))
            .collect()
    };
    let host_of: Vec<usize> = of(&request.plan);
    let parts = divide(&request.plan, &host_of, &pair, &request.options, 0)?;
    let there = agents(client, keys).await?;
    let reference = there.keys().next().cloned();
    let part = |name: &String| {
        let own = parts.get("a")?.clone();
        Some(HostPlan {
            host: name.clone(),
            reference: reference.clone().filter(|first| first != name),
            ..own
        })
    };
    let plans = there
        .keys()
        .filter_map(|name| Some((name.clone(), part(name)?)));
    Ok(Divided {
        plans: plans.collect(),
        created: there
            .iter()
            .map(|(name, (at, _))| (name.clone(), *at))
            .collect(),
        agents: there
            .into_iter()
            .map(|(name, (_, facts))| (name, facts))
            .collect(),
    })
}

/// Raises the limit of open files: each agent has a watch and, at times, a request under way.
fn enough_files() -> Result<(), FleetError> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
        .map_err(|e| FleetError::system("raise the limit of open files")(e.into()))
}

/// Returns a table of several runs.
pub fn text(all: &[Simulated]) -> String {
    let head = [
        "agents",
        "links",
        "keys",
        "plans",
        "register",
        "plan",
        "build",
        "start",
        "known 50 %",
        "99 %",
        "all",
        "etcd",
        "sent",
    ]
    .map(str::to_owned);
    columns(std::iter::once(head).chain(all.iter().map(Simulated::row)))
}

impl Simulated {
    fn row(&self) -> [String; 13] {
        let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
        let share = |share: f64| {
            let last = self.heard.len().checked_sub(1)?;
            self.heard
                .get((last as f64 * share).round() as usize)
                .copied()
        };
        let known = |at: f64| match self.heard.len() == self.agents as usize {
            true => share(at).map_or("-".into(), ms),
            false => "-".into(),
        };
        let mib = |bytes: Option<f64>| match bytes {
            None => "not measured".into(),
            Some(bytes) => format!("{:.1} MiB", bytes / f64::from(1 << 20)),
        };
        let times = &self.ended.times;
        [
            self.agents.to_string(),
            (self.agents * self.links).to_string(),
            self.keys.to_string(),
            format!("{:.1} MiB", self.bytes as f64 / f64::from(1 << 20)),
            ms(self.joined),
            ms(times.plans),
            ms(times.built),
            ms(times.started),
            known(0.5),
            known(0.99),
            known(1.0),
            mib(self.memory),
            mib(self.sent),
        ]
    }
}
