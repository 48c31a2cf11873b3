// SPDX-License-Identifier: Apache-2.0
//! An API server that is too busy for some requests: links stay, and are renewed.

use anyhow::{Result, ensure};
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
    not_known_yet(lab, web, agent).await
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

/// Fails if the link with this delay there and back in ms ends or is attached again.
async fn stays(lab: &Lab<'_>, web: &Sandbox, ms: f64) -> Result<()> {
    let before = number(&web.shown(&lab.emud)?, "/attached_s")?;
    sleep(2 * LEASE).await;
    let after = number(&web.shown(&lab.emud)?, "/attached_s")?;
    ensure!(after > before + LEASE.as_secs_f64(), "attached again");
    within("too busy", web.round_trip(1)?, ms, ms + SLACK_MS)
}
