// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud fleet run`: writes the plans, the start and the end of a run.

mod plans;
mod results;
mod sets;
mod start;
mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::experiment::scenario::Plan;
use crate::fleet::etcd::{Client, Compare, Lease, Op, mirror};
use crate::fleet::facts::Facts;
use crate::fleet::keys::{Keys, STOPPED};
use crate::fleet::merge::HostLog;
use crate::fleet::outbox::renew;
use crate::fleet::placement::{Host, place};
use crate::fleet::plan::{HostPlan, Options, divide, reachable};
use crate::fleet::protocol::{Ready, Revision};
use crate::fleet::verdict::{EarlyEnd, HostEnd};
use crate::fleet::{FleetError, LEASE};
use crate::host::signals::Signals;
use crate::host::single_threaded;

use steps::{Controller, Sets};

pub use sets::set;

/// A run that the controller carries out.
#[derive(Debug)]
pub struct Request {
    /// The scenario, expanded.
    pub plan: Plan,
    /// The hosts that take part; `None`: all with an agent.
    pub hosts: Option<Vec<String>>,
    /// Options, the same for all hosts.
    pub options: Options,
    /// Wires that are faster stay on one host.
    pub fast_ns: u64,
    /// Called with sentences for the user.
    pub note: fn(&str),
}

/// Where each node of a plan goes, before anything is written.
#[derive(Debug)]
pub struct Divided {
    /// The hosts that take part, by name.
    pub agents: Vec<(String, Facts)>,
    /// Revision at which each agent's key was created.
    pub created: BTreeMap<String, i64>,
    /// The part of each host.
    pub plans: BTreeMap<String, HostPlan>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Ended {
    /// How the part of each host ended.
    pub hosts: BTreeMap<String, HostEnd>,
    /// The log of each host that reported.
    pub logs: Vec<HostLog>,
    /// Reports of the hosts that have built their parts.
    pub built: BTreeMap<String, Ready>,
    /// What ended it before its programs did.
    pub early: Option<EarlyEnd>,
    /// Number of its keys, which it has deleted at the end.
    pub keys: u64,
    /// How long its steps took.
    pub times: Times,
}

/// How long the steps of a run took.
#[derive(Debug, Default)]
pub struct Times {
    /// Until the plans and the run were written.
    pub plans: Duration,
    /// From then on, until the reports of all hosts were read.
    pub built: Duration,
    /// When the start was requested.
    pub start: Option<Instant>,
    /// How long etcd took for that.
    pub started: Duration,
}

/// Reads the agents of a fleet.
///
/// # Errors
/// etcd does not answer.
pub async fn agents(
    client: &Client,
    keys: &Keys,
) -> Result<BTreeMap<String, (i64, Facts)>, FleetError> {
    let (entries, _) = client.range(&keys.agents()).await?;
    let of = |(key, entry): (String, crate::fleet::etcd::Entry)| {
        let host = key.strip_prefix(&keys.agents())?.to_owned();
        Some((
            host,
            (entry.created, serde_json::from_slice(&entry.value).ok()?),
        ))
    };
    Ok(entries.into_iter().filter_map(of).collect())
}

/// Divides a plan among the agents that are there.
///
/// # Errors
/// [`FleetError::Absent`]: an agent is missing; [`FleetError::Placement`], [`FleetError::Plan`].
pub async fn divided(
    client: &Client,
    keys: &Keys,
    request: &Request,
) -> Result<Divided, FleetError> {
    let mut all = agents(client, keys).await?;
    if let Some(wanted) = &request.hosts {
        if let Some(missing) = wanted.iter().find(|host| !all.contains_key(*host)) {
            let there: Vec<_> = all.keys().map(String::as_str).collect();
            return Err(FleetError::Absent(format!(
                "there is no agent of {missing} (there are: {})",
                there.join(", ")
            )));
        }
        all.retain(|host, _| wanted.contains(host));
    }
    if all.is_empty() {
        return Err(FleetError::Absent(
            "there are no agents (start `emud agent` on each host)".into(),
        ));
    }
    for (host, (_, facts)) in &all {
        if let Some(why) = facts.problem() {
            return Err(FleetError::Plan(format!("{host} cannot take part: {why}")));
        }
    }
    let hosts: Vec<Host> = (all.iter())
        .map(|(name, (_, facts))| Host {
            name: name.clone(),
            weight: facts.weight,
        })
        .collect();
    let host_of = place(&request.plan, &hosts, request.fast_ns)?;
    let created = all
        .iter()
        .map(|(host, (created, _))| (host.clone(), *created))
        .collect();
    let agents: Vec<_> = all
        .into_iter()
        .map(|(host, (_, facts))| (host, facts))
        .collect();
    reachable(&host_of, &agents)?;
    let id = crate::host::random_seed().map_err(FleetError::system("draw a number"))?;
    let plans = divide(
        &request.plan,
        &host_of,
        &agents,
        &request.options,
        id as u32,
    )?;
    Ok(Divided {
        agents,
        created,
        plans,
    })
}

/// Carries out a run from the transaction that writes the plans to the deletion of all its keys.
///
/// # Errors
/// It did not start: another run is active, a host left, or could not build its part. Nothing of it
/// is left then.
pub async fn run(client: &Client, keys: &Keys, request: &Request) -> Result<Ended, FleetError> {
    let mut signals = Signals::new().map_err(FleetError::system("catch signals"))?;
    let divided = divided(client, keys, request).await?;
    carry_out(client, keys, request, &divided, &mut signals).await
}

/// Does [`run`] of a scenario that is divided already.
///
/// # Errors
/// As [`run`].
pub(super) async fn carry_out(
    client: &Client,
    keys: &Keys,
    request: &Request,
    divided: &Divided,
    signals: &mut Signals,
) -> Result<Ended, FleetError> {
    let lease = client.grant(LEASE).await?;
    let (tell, lost) = watch::channel(None);
    let own = client.clone();
    let keeper = tokio::spawn(async move { tell.send_replace(Some(renew(&own, lease).await)) });
    let mut controller = Controller {
        client,
        keys,
        request,
        divided,
        lease,
        agents: mirror(client, keys.agents()),
        hosts: mirror(client, keys.hosts()),
        run: mirror(client, keys.run()),
        lost,
        revision: Revision {
            id: String::new(),
            name: request.plan.name.clone(),
        },
        digests: BTreeMap::new(),
        begun: Instant::now(),
        sets: Sets::default(),
    };
    let done = controller.carry_out(signals).await;
    // What stays expires.
    let keys = controller.clear().await.unwrap_or_default();
    keeper.abort();
    // With it all keys of the controller; agents end what still runs.
    let _ = client.revoke(lease).await;
    done.map(|ended| Ended { keys, ..ended })
}

/// Ends the active run; false: there is none.
///
/// # Errors
/// etcd does not answer.
pub async fn stop(client: &Client, keys: &Keys) -> Result<bool, FleetError> {
    let Some(revision) = client.get(&keys.revision()).await? else {
        return Ok(false);
    };
    let same = Compare::Created(keys.revision(), revision.created);
    let over = Op::Put(keys.over(), STOPPED.into(), Lease(revision.lease));
    client.txn(&[same], &[over]).await
}

/// Runs work that talks to etcd.
///
/// # Errors
/// Those of the work, or the kernel starts no runtime.
pub fn block_on<T>(work: impl Future<Output = Result<T, FleetError>>) -> Result<T, FleetError> {
    let runtime = single_threaded();
    runtime
        .map_err(FleetError::system("start a runtime"))?
        .block_on(work)
}
