// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of containers for the namespaces of links. Engines are queried when a namespace appears
//! and from time to time: that takes some ms, or [`PATIENCE`] for an engine that hangs.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::container;
use crate::datapath::host_wide::contained;
use crate::netlink::Namespace;

/// A scrape does not wait longer for an engine that does not answer; its containers have the begin
/// of their ID as a name then.
const PATIENCE: Duration = Duration::from_secs(1);
/// The containers of a pod come and go while its namespace stays.
const EXPIRES: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Containers {
    /// By inode number of the namespace; empty: no container.
    names: HashMap<u64, String>,
    read: Option<Instant>,
}

impl Containers {
    /// Finds the containers of these namespaces, if there is a new one among them.
    pub fn of(&mut self, spaces: &BTreeMap<u64, Namespace>) {
        let is_known = |(inode, space): (&u64, &Namespace)| {
            // The containers of the host's own network are not meant.
            space.here || self.names.contains_key(inode)
        };
        if spaces.iter().all(is_known) {
            return;
        }
        self.names = spaces.keys().map(|inode| (*inode, String::new())).collect();
        self.read = Some(Instant::now());
        // Without them links have no container, as before it is found.
        let (Ok(running), Ok((namespaces, _))) = (container::running(PATIENCE), Namespace::all())
        else {
            return;
        };
        for namespace in namespaces.iter().filter(|namespace| !namespace.here) {
            let Some(name) = self.names.get_mut(&namespace.id.inode) else {
                continue;
            };
            let inside = contained(namespace, &running.all);
            *name = inside
                .map(|container| container.name.as_str())
                .collect::<Vec<_>>()
                .join("+");
        }
    }

    /// Returns the names of the containers in a namespace, joined by `+`.
    pub fn names(&self, netns: u32) -> String {
        self.names.get(&netns.into()).cloned().unwrap_or_default()
    }

    /// Makes the next reading query again, if the last one is long ago.
    pub fn expire(&mut self) {
        if self.read.is_some_and(|read| read.elapsed() > EXPIRES) {
            self.names.clear();
        }
    }
}
