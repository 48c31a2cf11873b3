// SPDX-License-Identifier: Apache-2.0
//! The built agent on a node of an API server: one story, since the server takes long to start.
//! kubernetes/test.sh starts it in separate namespaces.

mod busy;
mod cluster;
mod node;
mod pods;
mod real;
mod steps;

use std::path::PathBuf;

use anyhow::{Context, Result};

#[tokio::test(flavor = "current_thread")]
async fn links_on_pods() -> Result<()> {
    let variable = |name: &str| {
        std::env::var(name).with_context(|| format!("{name} is not set: run kubernetes/test.sh"))
    };
    let folder = PathBuf::from(variable("EMUD_K8S_FOLDER")?);
    let cluster = cluster::Cluster::start(&folder).await?;
    let done = steps::all(&cluster, &variable("EMUD_BIN")?).await;
    pods::remove_groups();
    done
}
