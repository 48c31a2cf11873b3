// SPDX-License-Identifier: Apache-2.0
//! What the agent knows of the cluster: Links, the pods of its node, and what Links refer to.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::link::Link;
use crate::plan::{Others, Unknown};

/// A watch that keeps its objects; it ends when it is dropped.
struct Watch<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    /// Why the API server has denied the first list.
    denied: Arc<OnceLock<String>>,
    task: JoinHandle<()>,
    used: bool,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Drop for Watch<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    fn start(api: Api<K>, config: watcher::Config, changed: Arc<Notify>) -> Self {
        let (store, writer) = reflector::store();
        let denied = Arc::new(OnceLock::new());
        let events = watcher(api, config).default_backoff();
        let told = denied.clone();
        let task = tokio::spawn(async move {
            let events = reflector::reflector(writer, events);
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(_) => changed.notify_one(),
                    Err(e) => {
                        eprintln!("emud-k8s: watch of {}: {e}", K::kind(&()));
                        if let Some(message) = denied_by(e)
                            && told.set(message).is_ok()
                        {
                            changed.notify_one();
                        }
                    }
                }
            }
        });
        Self {
            store,
            denied,
            task,
            used: true,
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.store.wait_until_ready().now_or_never(), Some(Ok(())))
    }

    fn all(&self) -> Result<Vec<Arc<K>>, Unknown> {
        match (self.is_ready(), self.denied.get()) {
            (true, _) => Ok(self.store.state()),
            (false, Some(message)) => Err(Unknown::Denied(message.clone())),
            (false, None) => Err(Unknown::Yet),
        }
    }
}

/// The message of an API server that denies a list. One that is only too busy gets the request again, and links stay meanwhile.
fn denied_by(error: watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 403 => {
            Some(status.message)
        }
        _ => None,
    }
}

/// All Links, and the pods of the node.
type Known = (Vec<Arc<Link>>, Vec<Arc<Pod>>);

/// The watches of one node.
pub struct Watches {
    client: Client,
    /// Something has changed.
    pub changed: Arc<Notify>,
    links: Watch<Link>,
    pods: Watch<Pod>,
    /// By namespace and name: only those that Links name.
    config_maps: HashMap<(String, String), Watch<ConfigMap>>,
    /// By namespace: only those whose pods are peers.
    peers: HashMap<String, Watch<Pod>>,
}

impl Watches {
    /// Starts those of all Links and of the pods of a node.
    pub fn start(client: &Client, node: &str) -> Self {
        let changed = Arc::new(Notify::new());
        let of_node = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        let config = watcher::Config::default();
        Self {
            client: client.clone(),
            links: Watch::start(Api::all(client.clone()), config, changed.clone()),
            pods: Watch::start(Api::all(client.clone()), of_node, changed.clone()),
            changed,
            config_maps: HashMap::new(),
            peers: HashMap::new(),
        }
    }

    /// Returns `None` until both are known.
    pub fn known(&self) -> Option<Known> {
        Some((self.links.all().ok()?, self.pods.all().ok()?))
    }

    /// Ends the watches that were not used since the last call.
    pub fn tidy(&mut self) {
        tidy(&mut self.config_maps);
        tidy(&mut self.peers);
    }
}

fn tidy<Key: Hash + Eq, K: Resource<DynamicType = ()> + Clone + 'static>(
    watches: &mut HashMap<Key, Watch<K>>,
) {
    watches.retain(|_, watch| std::mem::take(&mut watch.used));
}

impl Others for Watches {
    fn config_map(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<ConfigMap>>, Unknown> {
        let key = (namespace.to_owned(), name.to_owned());
        let watch = self.config_maps.entry(key).or_insert_with(|| {
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            let api = Api::namespaced(self.client.clone(), namespace);
            Watch::start(api, config, self.changed.clone())
        });
        watch.used = true;
        Ok(watch.all()?.pop())
    }

    fn pods_of(&mut self, namespace: &str) -> Result<Vec<Arc<Pod>>, Unknown> {
        let watch = self.peers.entry(namespace.to_owned()).or_insert_with(|| {
            let api = Api::namespaced(self.client.clone(), namespace);
            Watch::start(api, watcher::Config::default(), self.changed.clone())
        });
        watch.used = true;
        watch.all()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_busy_server_denies_nothing() {
        let of = |code| {
            let status = Status::failure("why", "Reason").with_code(code);
            denied_by(watcher::Error::InitialListFailed(kube::Error::Api(
                status.boxed(),
            )))
        };
        assert_eq!(of(403).as_deref(), Some("why"));
        for busy in [401, 429, 500, 503, 504] {
            assert_eq!(of(busy), None, "{busy}");
        }
    }
}
