// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud fleet status` and `emud fleet plan` print.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::FleetError;
use super::controller::agents;
use super::etcd::Client;
use super::facts::Facts;
use super::keys::Keys;
use super::plan::HostPlan;
use super::protocol::{Built, Revision};
use crate::experiment::scenario::Plan;

/// Version of the format.
pub const FLEET_SCHEMA: &str = "emud-fleet/1";

/// A fleet: its agents, and the run in progress.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// Version of the format.
    #[schemars(extend("const" = FLEET_SCHEMA))]
    pub schema: &'static str,
    /// Agents by host.
    pub agents: BTreeMap<String, Agent>,
    /// The run in progress; null: none.
    pub run: Option<Run>,
}

/// A host that takes part.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Agent {
    /// Address of tunnels and probes.
    pub address: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// MemTotal of /proc/meminfo in bytes.
    pub memory_bytes: u64,
    /// Share of experiments, relative to other hosts.
    pub weight: f64,
    /// Programs run as root.
    pub allow_root: bool,
    /// A daemon synchronises the clock.
    pub clock_synchronised: bool,
    /// Offset of the clock in ns that is not corrected yet, as that daemon estimates it.
    pub clock_offset_ns: i64,
    /// Largest error of the clock in ns, as that daemon estimates it.
    pub clock_bound_ns: u64,
    /// Why the host cannot take part; null: it can.
    pub problem: Option<String>,
}

/// A run in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Run {
    /// Name of the run.
    pub id: String,
    /// Name of the scenario.
    pub name: String,
    /// State of each host: "building", "built", "failed", "running", "complete", "ended".
    pub hosts: BTreeMap<String, String>,
}

impl From<Facts> for Agent {
    fn from(facts: Facts) -> Self {
        Self {
            address: facts.address.to_string(),
            cpus: facts.cpus,
            memory_bytes: facts.memory_bytes,
            weight: facts.weight,
            allow_root: facts.allow_root,
            clock_synchronised: facts.clock.synchronised,
            clock_offset_ns: facts.clock.offset_ns,
            clock_bound_ns: facts.clock.bound_ns,
            problem: facts.problem(),
        }
    }
}

/// Reads the state of a fleet.
///
/// # Errors
/// etcd does not answer.
pub async fn status(client: &Client, keys: &Keys) -> Result<Status, FleetError> {
    let agents = agents(client, keys).await?;
    let of = |(host, (_, facts)): (String, (i64, Facts))| (host, Agent::from(facts));
    Ok(Status {
        schema: FLEET_SCHEMA,
        agents: agents.into_iter().map(of).collect(),
        run: run(client, keys).await?,
    })
}

async fn run(client: &Client, keys: &Keys) -> Result<Option<Run>, FleetError> {
    let Some(entry) = client.get(&keys.revision()).await? else {
        return Ok(None);
    };
    let Ok(revision) = serde_json::from_slice::<Revision>(&entry.value) else {
        return Ok(None);
    };
    let started = client.get(&keys.t0()).await?.is_some();
    let (plans, _) = client.range(&keys.plans()).await?;
    let (entries, _) = client.range(&keys.hosts()).await?;
    let mut hosts = BTreeMap::new();
    for (key, plan) in plans {
        let Some(host) = key.strip_prefix(&keys.plans()) else {
            continue;
        };
        if plan.lease != entry.lease {
            continue;
        }
        let host = host.to_owned();
        let built = entries.get(&keys.built(&host));
        let built = built.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        let state = match built {
            _ if entries.contains_key(&keys.result(&host)) => "ended",
            _ if entries.contains_key(&keys.complete(&host)) => "complete",
            Some(Built::Failed { .. }) => "failed",
            Some(Built::Ready(_)) if started => "running",
            Some(Built::Ready(_)) => "built",
            None => "building",
        };
        hosts.insert(host, state.to_owned());
    }
    Ok(Some(Run {
        id: revision.id,
        name: revision.name,
        hosts,
    }))
}

impl Status {
    /// Formats it for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (host, agent) in &self.agents {
            let clock = match agent.clock_synchronised {
                true => format!(
                    "clock off by {:.3} ms, within {:.3} ms",
                    agent.clock_offset_ns as f64 / 1e6,
                    agent.clock_bound_ns as f64 / 1e6
                ),
                false => "clock not synchronised".to_owned(),
            };
            let gib = agent.memory_bytes as f64 / f64::from(1 << 30);
            // Writing to a String does not fail.
            let _ = writeln!(
                out,
                "{host:15} {:15} {} CPUs, {gib:.1} GiB, weight {}, {clock}{}",
                agent.address,
                agent.cpus,
                agent.weight,
                if agent.allow_root { ", root" } else { "" },
            );
            if let Some(problem) = &agent.problem {
                let _ = writeln!(out, "    -> {problem}");
            }
        }
        match &self.run {
            None => out += "no run\n",
            Some(run) => {
                let _ = writeln!(out, "run {} of {}", run.id, run.name);
                for (host, state) in &run.hosts {
                    let _ = writeln!(out, "    {host:15} {state}");
                }
            }
        }
        out
    }
}

/// Lists the nodes, links and tunnels of each host, and what cannot be on several. `whole`: the plan that
/// was divided.
pub fn plan_text(plans: &BTreeMap<String, HostPlan>, whole: &Plan) -> String {
    let mut out = String::new();
    for (host, plan) in plans {
        let names = |names: Vec<&str>| names.join(" ");
        let nodes = names(plan.nodes.iter().map(|node| node.name.as_str()).collect());
        let links = names(plan.links.iter().map(|link| link.name.as_str()).collect());
        let _ = writeln!(out, "{host}\n    nodes {nodes}");
        if !links.is_empty() {
            let _ = writeln!(out, "    links {links}");
        }
        for line in undivided(plan, whole) {
            let _ = writeln!(out, "    {line}");
        }
        for tunnel in &plan.tunnels {
            let _ = writeln!(out, "    tunnel {} to {}", tunnel.name, tunnel.host);
        }
    }
    out
}

/// Returns a sentence for each medium and bottleneck of a host. A medium has one thread, and a bottleneck is
/// a part of the profile of an interface.
fn undivided(here: &HostPlan, whole: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for medium in &whole.media {
        let stations: Vec<_> = (medium.stations.iter().map(|station| station.node.as_str()))
            .filter(|name| here.nodes.iter().any(|node| node.name == *name))
            .collect();
        if !stations.is_empty() {
            let (word, name) = (medium.word(), &medium.interface);
            all.push(format!(
                "{word} {name} stays here, with {}",
                stations.join(" ")
            ));
        }
    }
    let is_here = |name: &String| here.links.iter().any(|link| link.name == *name);
    for link in whole.links.iter().filter(|link| is_here(&link.name)) {
        let named: String = (link.profile.links.iter())
            .map(|named| format!(" {}", named.name))
            .collect();
        for bottleneck in &link.profile.bottlenecks {
            let name = &bottleneck.name;
            all.push(format!(
                "bottleneck {name} stays here, with link {}{named}",
                link.name
            ));
        }
    }
    all
}
