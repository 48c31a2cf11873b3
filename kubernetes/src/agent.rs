// SPDX-License-Identifier: Apache-2.0
//! The agent of a node: compares what Links say with what is attached, and acts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};

use crate::cgroup::{self, Network};
use crate::emud::{Emud, Shown};
use crate::link::{Link, PodLink, State};
use crate::plan::{self, Refused, Setup};
use crate::status::{Api8s, WriteError};
use crate::watches::Watches;

/// A burst of events is one round.
const BURST: Duration = Duration::from_millis(50);
/// How often something is tried again for which there is no event.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// The agent of a node.
pub struct Agent {
    pub(crate) node: String,
    pub(crate) emud: Emud,
    /// How long a link outlives this agent.
    pub(crate) lease: Duration,
    pub(crate) api: Api8s,
    watches: Watches,
    pub(crate) held: HashMap<Key, Held>,
    /// When other nodes were looked up.
    pub(crate) looked_up: HashMap<String, Instant>,
}

/// A Link by namespace and name, and the key of its entry for a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub namespace: String,
    pub link: String,
    pub entry: String,
}

impl Key {
    pub fn new(link: &Link, entry: &str) -> Self {
        Self {
            namespace: link.namespace().unwrap_or_default(),
            link: link.name_any(),
            entry: entry.to_owned(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}/{}: {}", self.namespace, self.link, self.entry)
    }
}

/// What this agent knows of a Link on a pod.
#[derive(Debug)]
pub(crate) struct Held {
    /// What the status has, or will have.
    pub entry: PodLink,
    pub written: bool,
    /// What is attached, if this agent has attached it or found it unchanged.
    pub running: Option<Setup>,
    /// What the last check was for.
    pub wanted: Option<Result<Setup, Refused>>,
    /// The pod of the last check.
    pub pod_version: Option<String>,
    /// The last attempt to remove it has failed.
    pub leaves: bool,
    pub next_check: Instant,
}

impl Agent {
    /// Starts the watches.
    pub fn new(client: &Client, node: String, emud: Emud, lease: Duration) -> Self {
        Self {
            watches: Watches::start(client, &node),
            api: Api8s::new(client.clone(), lease),
            node,
            emud,
            lease,
            held: HashMap::new(),
            looked_up: HashMap::new(),
        }
    }

    /// Acts until the process ends. Links then last for the rest of their lease: the next agent of
    /// the node continues them.
    pub async fn run(&mut self) {
        let changed = self.watches.changed.clone();
        loop {
            let wait = self.round().await;
            tokio::select! {
                () = changed.notified() => tokio::time::sleep(BURST).await,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Returns the time until the next round if nothing changes.
    async fn round(&mut self) -> Duration {
        let Some((links, pods)) = self.watches.known() else {
            return RETRY;
        };
        let now = Timestamp::now();
        let items = plan::plan(&self.node, &links, &pods, &mut self.watches, now);
        self.watches.tidy();
        let key = |item: &plan::Item| {
            let entry = plan::key(&self.node, &item.pod.name_any());
            Key::new(&item.link, &entry)
        };
        let items: Vec<_> = items.into_iter().map(|item| (key(&item), item)).collect();
        let stay: HashSet<Key> = items.iter().map(|(key, _)| key.clone()).collect();
        // First: another Link may wait for the interface.
        self.remove_others(&links, &stay).await;
        for (key, item) in items {
            self.tend(key, item).await;
        }
        let waits = self.release(&links).await;
        let now = Instant::now();
        let checks = self.held.values().map(|held| held.next_check);
        let next = checks.map(|at| at.saturating_duration_since(now)).min();
        next.unwrap_or(self.lease).min(waits).max(BURST)
    }

    /// Detaches and forgets every entry of this node whose Link or pod is gone, or no longer belongs
    /// to the other.
    async fn remove_others(&mut self, links: &[Arc<Link>], stay: &HashSet<Key>) {
        let by_key = |key: &Key| {
            let same = |link: &&Arc<Link>| {
                link.name_any() == key.link && link.namespace().as_ref() == Some(&key.namespace)
            };
            links.iter().find(same).cloned()
        };
        let mut gone: HashMap<Key, PodLink> = HashMap::new();
        for link in links {
            let entries = link.status.iter().flat_map(|status| &status.pods);
            for (entry, pod) in entries.filter(|(_, pod)| pod.node == self.node) {
                gone.insert(Key::new(link, entry), pod.clone());
            }
        }
        let held = self.held.iter();
        gone.extend(held.map(|(key, held)| (key.clone(), held.entry.clone())));
        let waits = |key: &Key| {
            let held = self.held.get(key);
            held.is_some_and(|held| held.leaves && held.next_check > Instant::now())
        };
        gone.retain(|key, _| !stay.contains(key) && !waits(key));
        for (key, entry) in gone {
            if let Err(message) = self.undo(&entry).await {
                eprintln!("emud-k8s: {key}: {message}");
                self.failed_to_detach(&key, entry, message, by_key(&key))
                    .await;
                continue;
            }
            let written = match by_key(&key) {
                Some(link) => self.api.write(&link, &key.entry, None).await.map(drop),
                None => Ok(()),
            };
            match written {
                Ok(()) | Err(WriteError::Deleted | WriteError::Conflict) => {
                    if self.held.remove(&key).is_some() {
                        eprintln!("emud-k8s: {key}: removed");
                    }
                }
                Err(e) => {
                    eprintln!("emud-k8s: {key}: {e}");
                    self.remove_later(key, entry, false);
                }
            }
        }
    }

    async fn failed_to_detach(
        &mut self,
        key: &Key,
        entry: PodLink,
        message: String,
        link: Option<Arc<Link>>,
    ) {
        let entry = PodLink {
            state: State::Failed,
            message: Some(message),
            ..entry
        };
        let written = match link {
            Some(link) => self
                .api
                .write(&link, &key.entry, Some(&entry))
                .await
                .is_ok(),
            None => true,
        };
        self.remove_later(key.clone(), entry, written);
    }

    fn remove_later(&mut self, key: Key, entry: PodLink, written: bool) {
        let held = Held {
            entry,
            written,
            running: None,
            wanted: None,
            pod_version: None,
            leaves: true,
            next_check: Instant::now() + RETRY,
        };
        self.held.insert(key, held);
    }

    /// Returns the link of an entry with its network, if it is there: nothing else on that interface.
    pub(crate) async fn found(&self, entry: &PodLink) -> Result<Option<(Network, Shown)>, String> {
        if entry.applied.is_none() {
            return Ok(None);
        }
        let network = cgroup::network(&entry.uid).map_err(|e| e.to_string())?;
        let Some(network) = network else {
            return Ok(None);
        };
        let shown = self.emud.show(&network, &entry.interface).await;
        let shown = shown.map_err(|e| e.to_string())?;
        let shown = shown.filter(|shown| is_of(shown, entry));
        Ok(shown.map(|shown| (network, shown)))
    }

    /// Removes the link of an entry, if it is there.
    pub(crate) async fn undo(&self, entry: &PodLink) -> Result<(), String> {
        let Some((network, _)) = self.found(entry).await? else {
            return Ok(());
        };
        let done = self.emud.detach(&network, &entry.interface).await;
        done.map_err(|e| e.to_string())
    }
}

/// Returns whether a link is that of an entry: each of this agent's has the seed that the entry
/// had first, and ends by itself.
pub(crate) fn is_of(shown: &Shown, entry: &PodLink) -> bool {
    let seed = entry.seed.and_then(|seed| u64::try_from(seed).ok());
    seed == Some(shown.seed) && shown.ends_in_s.is_some()
}
