// SPDX-License-Identifier: Apache-2.0
//! An API server that is too busy for some requests: links stay, and are renewed.

use std::time::Duration;

use anyhow::{Result, ensure};
use emud_k8s::link::{PodLink, State};
use serde_json::json;
use tokio::time::sleep;

use crate::cluster::Process;
use crate::node::{LEASE, Lab, number, within};
use crate::pods::Sandbox;
use crate::steps::SLACK_MS;

/// Uses a ConfigMap of the step before.
pub async fn all(lab: &Lab<'_>, web: &Sandbox, agent: Process) -> Result<Process> {
    // Only that of the tests can be made busy.
    if lab.cluster.is_real {
        return Ok(agent);
    }
    let agent = not_known_yet(lab, web, agent).await?;
    not_announced(lab, web).await?;
    not_removed(lab).await?;
    Ok(agent)
}

/// A new agent renews a link whose profile it cannot read yet.
async fn not_known_yet(lab: &Lab<'_>, web: &Sandbox, agent: Process) -> Result<Process> {
    let from = json!({ "configMap": "profiles", "key": "slow" });
    let spec = json!({ "profileFrom": from });
    lab.link("kept", "web", spec).await?;
    lab.attached("kept", "web").await?;
    drop(agent);
    lab.busy().await?;
    let agent = lab.agent()?;
    stays(lab, web, 10.0).await?;
    lab.busy().await?;
    lab.delete("kept").await?;
    lab.gone("kept").await?;
    Ok(agent)
}

/// What is attached stays as long as nothing else can be announced.
async fn not_announced(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let spec = json!({ "profile": "link.delay = '20ms'" });
    lab.link("exchanged", "web", spec).await?;
    let digest = lab.attached("exchanged", "web").await?.applied;
    lab.busy().await?;
    let up = json!({ "direction": "up" });
    lab.change("exchanged", up).await?;
    stays(lab, web, 40.0).await?;
    lab.busy().await?;
    let is = |e: &PodLink| e.state == State::Attached && e.applied != digest;
    lab.entry("exchanged", "web", "changed", is).await?;
    within("one way", web.round_trip(1)?, 20.0, 20.0 + SLACK_MS)?;
    lab.delete("exchanged").await?;
    lab.gone("exchanged").await
}

/// An entry that cannot be removed is tried again, but not all the time.
async fn not_removed(lab: &Lab<'_>) -> Result<()> {
    let log = lab.cluster.folder.join("agent.log");
    let spec = json!({ "profile": "link.delay = '20ms'" });
    lab.link("left", "web", spec).await?;
    lab.attached("left", "web").await?;
    lab.busy().await?;
    let before = std::fs::read_to_string(&log)?.len();
    let none = json!({ "selector": { "matchLabels": { "app": "none" } } });
    lab.change("left", none).await?;
    sleep(Duration::from_secs(3)).await;
    let text = std::fs::read_to_string(&log)?;
    let tries = text[before..].matches("default/left: n1/web: ").count();
    ensure!((1..8).contains(&tries), "{tries} attempts in 3 s");
    lab.busy().await?;
    lab.without_pods("left").await?;
    lab.delete("left").await?;
    lab.gone("left").await
}

/// Fails if the link with this delay there and back in ms ends or is attached again.
async fn stays(lab: &Lab<'_>, web: &Sandbox, ms: f64) -> Result<()> {
    let before = number(&web.shown(&lab.emud)?, "/attached_s")?;
    sleep(2 * LEASE).await;
    let after = number(&web.shown(&lab.emud)?, "/attached_s")?;
    ensure!(after > before + LEASE.as_secs_f64(), "attached again");
    within("too busy", web.round_trip(1)?, ms, ms + SLACK_MS)
}
