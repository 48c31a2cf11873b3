// SPDX-License-Identifier: Apache-2.0
//! The end of a deleted Link, and entries of nodes that have left the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;

use crate::agent::{Agent, RETRY};
use crate::link::{FINALIZER, Link};
use crate::status::WriteError;

impl Agent {
    /// Lets deleted Links go that no node has any more, and removes entries of nodes that are gone. Returns
    /// the time until that has to be repeated.
    pub(crate) async fn release(&mut self, links: &[Arc<Link>]) -> Duration {
        let mut wait = self.lease;
        for link in links {
            let nodes = nodes(link);
            let deleted = link.metadata.deletion_timestamp.is_some();
            let has = link.finalizers().iter().any(|f| f == FINALIZER);
            if deleted && has && nodes.is_empty() {
                match self.api.release(link).await {
                    Ok(()) | Err(WriteError::Deleted | WriteError::Conflict) => {}
                    Err(e) => {
                        eprintln!("emud-k8s: {}: {e}", link.name_any());
                        wait = wait.min(RETRY);
                    }
                }
                continue;
            }
            for node in to_look_up(&nodes, &self.node, deleted) {
                self.look_up(link, node).await;
            }
        }
        let lease = self.lease;
        self.looked_up.retain(|_, at| at.elapsed() < lease);
        wait
    }

    async fn look_up(&mut self, link: &Link, node: &str) {
        let recent = |at: &Instant| at.elapsed() < self.lease;
        if self.looked_up.get(node).is_some_and(recent) {
            return;
        }
        match self.api.node_exists(node).await {
            Ok(true) => drop(self.looked_up.insert(node.to_owned(), Instant::now())),
            Ok(false) => {
                let entries = link.status.iter().flat_map(|status| &status.pods);
                for (key, _) in entries.filter(|(_, pod)| pod.node == node) {
                    if let Err(e) = self.api.write(link, key, None).await {
                        eprintln!("emud-k8s: {}: {key}: {e}", link.name_any());
                    }
                }
            }
            Err(e) => eprintln!("emud-k8s: node {node}: {e}"),
        }
    }
}

fn nodes(link: &Link) -> BTreeSet<&str> {
    let entries = link.status.iter().flat_map(|status| status.pods.values());
    entries.map(|pod| pod.node.as_str()).collect()
}

/// Of a deleted Link all other nodes. Otherwise the next one only, so that the nodes of a large cluster do not all
/// look up all others.
fn to_look_up<'a>(nodes: &BTreeSet<&'a str>, own: &str, deleted: bool) -> Vec<&'a str> {
    let others = || nodes.iter().copied().filter(|node| *node != own);
    match deleted {
        true => others().collect(),
        false if !nodes.contains(own) => vec![],
        false => {
            let next = others()
                .find(|node| *node > own)
                .or_else(|| others().next());
            next.into_iter().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_looked_up_by_the_one_before_it() {
        let nodes = BTreeSet::from(["a", "b", "c"]);
        let of = |own, deleted| to_look_up(&nodes, own, deleted);
        assert_eq!(of("a", false), ["b"]);
        assert_eq!(of("b", false), ["c"]);
        assert_eq!(of("c", false), ["a"]);
        assert_eq!(of("d", false), Vec::<&str>::new());
        assert_eq!(of("a", true), ["b", "c"]);
        assert_eq!(of("d", true), ["a", "b", "c"]);
        assert_eq!(
            to_look_up(&BTreeSet::from(["a"]), "a", false),
            Vec::<&str>::new()
        );
    }
}
