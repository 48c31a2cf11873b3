// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of containers for the namespaces of links. Engines are queried when a namespace appears
//! and from time to time: that takes some ms, or [`PATIENCE`] for an engine that hangs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::container;
use crate::datapath::host_wide::contained;
use crate::netlink::Namespace;

/// A scrape does not wait longer for an engine that does not answer; its containers have the beginning
/// of their ID as a name then.
const PATIENCE: Duration = Duration::from_secs(1);
/// The containers of a pod come and go while its namespace stays.
const EXPIRES: Duration = Duration::from_secs(30);

/// Links by the inode number of their namespace.
pub(super) type Links = BTreeMap<u64, BTreeSet<u32>>;

#[derive(Debug, Default)]
pub(super) struct Containers {
    /// By inode number of the namespace.
    names: HashMap<u64, Occupant>,
    read: Option<Instant>,
}

#[derive(Debug, Default)]
struct Occupant {
    /// Empty: no container.
    name: String,
    /// Ids of the links that the namespace had at the last reading. The kernel gives the number of a
    /// namespace that is gone to the next one at once, but no link outlives its namespace.
    links: BTreeSet<u32>,
}

impl Containers {
    /// Finds the containers of these namespaces, if there is a new one among them, or if that was long
    /// ago.
    pub fn of(&mut self, spaces: &BTreeMap<u64, Namespace>, mut links: Links) {
        // The containers of the host's own network are not meant.
        links.retain(|inode, _| spaces.get(inode).is_some_and(|space| !space.here));
        if self.knows(&links, Instant::now()) {
            return;
        }
        let unnamed = |(inode, links)| {
            let name = String::new();
            (inode, Occupant { name, links })
        };
        self.names = links.into_iter().map(unnamed).collect();
        self.read = Some(Instant::now());
        // Without them links have no container, as before it is found.
        let (Ok(running), Ok((namespaces, _))) = (container::running(PATIENCE), Namespace::all())
        else {
            return;
        };
        for namespace in namespaces.iter().filter(|namespace| !namespace.here) {
            let Some(found) = self.names.get_mut(&namespace.id.inode) else {
                continue;
            };
            let inside = contained(namespace, &running.all);
            found.name = inside
                .map(|container| container.name.as_str())
                .collect::<Vec<_>>()
                .join("+");
        }
    }

    /// Returns whether the containers of all namespaces with links are known, and forgets those of
    /// others.
    fn knows(&mut self, links: &Links, now: Instant) -> bool {
        let since = |read| now.saturating_duration_since(read);
        if self.read.is_some_and(|read| since(read) > EXPIRES) {
            self.names.clear();
        }
        self.names.retain(|inode, found| {
            let there = links.get(inode);
            there.is_some_and(|there| !there.is_disjoint(&found.links))
        });
        for (inode, there) in links {
            match self.names.get_mut(inode) {
                Some(found) => found.links.clone_from(there),
                None => return false,
            }
        }
        true
    }

    /// Returns the names of the containers in a namespace, joined by `+`.
    pub fn names(&self, netns: u32) -> String {
        let found = self.names.get(&netns.into());
        found.map(|found| found.name.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a reading: namespaces and their links.
    fn links(of: &[(u64, &[u32])]) -> Links {
        let ids = |ids: &[u32]| ids.iter().copied().collect();
        of.iter().map(|(inode, of)| (*inode, ids(of))).collect()
    }

    fn named(at: Instant) -> Containers {
        let found = |links: &[u32]| Occupant {
            name: "web".to_owned(),
            links: links.iter().copied().collect(),
        };
        Containers {
            names: HashMap::from([(1, found(&[10])), (2, found(&[20, 21]))]),
            read: Some(at),
        }
    }

    /// The kernel gives the number of a namespace to the next one.
    #[test]
    fn a_namespace_that_is_gone_has_no_name() {
        let now = Instant::now();
        let mut containers = named(now);
        assert!(containers.knows(&links(&[(1, &[10]), (2, &[20, 21])]), now));
        assert!(containers.knows(&links(&[(1, &[10])]), now));
        assert_eq!(containers.names(2), "");
        assert!(!containers.knows(&links(&[(1, &[10]), (2, &[20])]), now));
    }

    /// Between two readings.
    #[test]
    fn a_namespace_with_other_links_is_another_one() {
        let now = Instant::now();
        let mut containers = named(now);
        assert!(!containers.knows(&links(&[(1, &[11]), (2, &[20, 21])]), now));
        assert_eq!(containers.names(1), "");
        // Links come and go while others stay.
        let mut containers = named(now);
        assert!(containers.knows(&links(&[(1, &[10]), (2, &[21, 22])]), now));
        assert!(containers.knows(&links(&[(1, &[10]), (2, &[22])]), now));
        assert_eq!(containers.names(2), "web");
    }

    /// Without a check for tampering, which `emud top --json` does otherwise.
    #[test]
    fn names_are_found_again_from_time_to_time() {
        let now = Instant::now();
        let mut containers = named(now);
        let there = links(&[(1, &[10]), (2, &[20, 21])]);
        assert!(containers.knows(&there, now + EXPIRES));
        assert!(!containers.knows(&there, now + EXPIRES + Duration::from_secs(1)));
        assert_eq!(containers.names(1), "");
    }
}
