// SPDX-License-Identifier: Apache-2.0
//! What the agent writes to the API server: its entries in the status of Links, and the finalizer.

use std::cell::Cell;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::link::{FINALIZER, Link, PodLink};

/// Calls of the API server. None of them holds up the agent: it has links to renew.
pub struct Api8s {
    client: Client,
    /// How long a call waits; then none is made for twice this time.
    patience: Duration,
    silent_until: Cell<Option<Instant>>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The Link is gone or about to go.
    #[error("the Link is being deleted")]
    Deleted,
    /// Another node was faster; the next event has its change.
    #[error("the Link has changed meanwhile")]
    Conflict,
    #[error("the API server does not answer")]
    Silent,
    #[error("{}", reason(.0))]
    Kube(kube::Error),
}

/// Without the fields of the answer, which kube adds.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 404 => Self::Deleted,
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            _ => Self::Kube(error),
        }
    }
}

impl Api8s {
    /// Uses this client; `lease` is that of the links.
    pub fn new(client: Client, lease: Duration) -> Self {
        Self {
            client,
            patience: lease / 6,
            silent_until: Cell::new(None),
        }
    }

    /// The client itself waits without end.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        let now = Instant::now();
        if self.silent_until.get().is_some_and(|until| now < until) {
            return Err(WriteError::Silent);
        }
        let Ok(done) = tokio::time::timeout(self.patience, call).await else {
            let until = Instant::now() + 2 * self.patience;
            self.silent_until.set(Some(until));
            return Err(WriteError::Silent);
        };
        Ok(done?)
    }

    /// Writes an entry before the Link is attached, so that its deletion waits for this node.
    ///
    /// # Errors
    /// The Link is being deleted, or the API server rejects it: nothing may be attached then.
    pub async fn announce(
        &self,
        link: &Link,
        key: &str,
        entry: &PodLink,
    ) -> Result<(), WriteError> {
        if !link.finalizers().iter().any(|f| f == FINALIZER) {
            let mut finalizers = link.finalizers().to_vec();
            finalizers.push(FINALIZER.to_owned());
            self.set_finalizers(link, &finalizers).await?;
        }
        let after = self.write(link, key, Some(entry)).await?;
        let kept = after.finalizers().iter().any(|f| f == FINALIZER);
        match after.metadata.deletion_timestamp.is_none() && kept {
            true => Ok(()),
            false => Err(WriteError::Deleted),
        }
    }

    /// Writes an entry, or removes it. No other node writes this key, so nothing can be lost.
    ///
    /// # Errors
    /// The Link is gone, or the API server rejects it.
    pub async fn write(
        &self,
        link: &Link,
        key: &str,
        entry: Option<&PodLink>,
    ) -> Result<Link, WriteError> {
        let value = entry.map_or(Ok(Value::Null), serde_json::to_value);
        let value = value.map_err(|e| WriteError::Kube(kube::Error::SerdeError(e)))?;
        // With the UID: a Link that was created again under this name is another one.
        let patch = json!({
            "metadata": { "uid": link.metadata.uid },
            "status": { "pods": { key: value } },
        });
        let (api, patch) = (self.links(link), Patch::Merge(patch));
        let options = PatchParams::default();
        let name = link.name_any();
        self.answer(api.patch_status(&name, &options, &patch)).await
    }

    /// Lets a deleted Link go.
    ///
    /// # Errors
    /// A node has written to it since: it has an entry now.
    pub async fn release(&self, link: &Link) -> Result<(), WriteError> {
        let others = link.finalizers().iter().filter(|f| *f != FINALIZER);
        let others: Vec<String> = others.cloned().collect();
        self.set_finalizers(link, &others).await
    }

    async fn set_finalizers(&self, link: &Link, finalizers: &[String]) -> Result<(), WriteError> {
        // With the version that the decision is based on, so that one of a later version fails.
        let patch = json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": link.resource_version(),
        }});
        let (api, patch) = (self.links(link), Patch::Merge(patch));
        let options = PatchParams::default();
        let name = link.name_any();
        self.answer(api.patch(&name, &options, &patch)).await?;
        Ok(())
    }

    /// Returns whether the node belongs to the cluster.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn node_exists(&self, node: &str) -> Result<bool, WriteError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let found = self.answer(nodes.get_metadata_opt(node)).await?;
        Ok(found.is_some())
    }

    fn links(&self, link: &Link) -> Api<Link> {
        Api::namespaced(self.client.clone(), &link.namespace().unwrap_or_default())
    }
}
