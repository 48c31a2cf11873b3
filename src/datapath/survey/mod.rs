// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every link of this host, in all network namespaces, read again and again: for metrics and for
//! `emud top`.
//!
//! Links are found by their programs, as in [`super::emulated`]. What does not change is read once;
//! a namespace is entered for each reading and left again, because an open socket would keep a
//! deleted namespace, and its interfaces, alive.

mod containers;
#[cfg(test)]
pub(crate) mod made_up;
mod sample;
mod tampering;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use super::LinkError;
use super::attachment::Attachment;
use super::maps::{Classifiers, DatapathError, Maps, is_gone};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::host::{now_ns, open_files};
use crate::netlink::{Dropped, Namespace, Netlink, NetlinkError};
use crate::profile::Profile;

use containers::{Containers, Links};
pub use sample::{DirectionSample, LinkSample, StreamSample};
use tampering::Listed;

/// An attach takes less than this; what is not in force later was left behind.
const UNDER_WAY: Duration = Duration::from_secs(3);

/// Between two checks of a link that must agree.
const CONFIRM: Duration = Duration::from_millis(20);

/// All links at a moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Time of the reading, ns on CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// By namespace and interface.
    pub links: Vec<LinkSample>,
    /// Sentences about links that exist and could not be read, such as those of another version.
    pub unreadable: Vec<String>,
}

/// Drops of the interfaces of a namespace and their qdiscs, and the names of the links' interfaces.
struct Inside {
    dropped: HashMap<u32, Dropped>,
    names: HashMap<u32, String>,
    /// Indices of emud's devices.
    devices: HashMap<String, u32>,
}

/// A link that a previous reading found.
struct Known {
    there: Attachment,
    profile: Option<Profile>,
    control: abi::emud_control,
    since: Instant,
    /// Sentences, and when they were found, ns on CLOCK_MONOTONIC; `None`: not checked yet.
    tampered: Option<(Vec<String>, u64)>,
    /// Findings that the last check had for the first time.
    suspected: Option<Vec<String>>,
}

/// Reads all links of the host repeatedly.
#[derive(Default)]
pub struct Survey {
    /// By the id of the classifier.
    known: HashMap<u32, Known>,
    classifiers: Classifiers,
    /// Ids to check for tampering, the next one last.
    to_check: Vec<u32>,
    /// The qdiscs that checks compare with, of the namespace of the last one.
    qdiscs: Option<Listed>,
    containers: Containers,
}

impl std::fmt::Debug for Survey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

impl Survey {
    /// Creates a survey that knows no link yet. Each link takes 20 open files, so the limit of this
    /// process is raised as far as the kernel permits.
    pub fn new() -> Self {
        open_files::allow(open_files::MANY);
        Self::default()
    }

    /// Reads every link.
    ///
    /// # Errors
    /// [`DatapathError::Search`]: this process may not see the BPF programs.
    pub fn snapshot(&mut self) -> Result<Snapshot, DatapathError> {
        let mut unreadable = self.find()?;
        let mut links = Links::new();
        for known in self.known.values() {
            let there = links.entry(known.control.netns.into()).or_default();
            there.insert(known.there.maps.id);
        }
        let spaces = found(links.keys().copied().collect());
        self.containers.of(&spaces, links);
        let mono_ns = now_ns();
        let (known, mut figures) = (&self.known, Vec::new());
        // Each takes half of the time. This thread may be the one that found its own namespace.
        let insides = thread::scope(|scope| {
            scope.spawn(|| figures.extend(known.values().map(|one| (one, one.sample(mono_ns)))));
            self.insides(&spaces, &mut unreadable)
        });
        let mut links = Vec::new();
        for (known, read) in figures {
            match read {
                Ok(Some(mut sample)) => {
                    let netns = known.control.netns;
                    sample.netns = label(&spaces, netns);
                    sample.container = self.containers.names(netns);
                    if let Some(inside) = insides.get(&netns) {
                        sample.locate(known, inside);
                    }
                    links.push(sample);
                }
                Ok(None) => {}
                Err(e) => unreadable.push(format!("program {}: {e}", known.there.program_id)),
            }
        }
        links.sort_by(|a, b| a.key().cmp(&b.key()));
        // While a link is attached again, the kernel may still have its predecessor.
        links.dedup_by(|later, earlier| later.key() == earlier.key());
        Ok(Snapshot {
            mono_ns,
            links,
            unreadable,
        })
    }

    /// Checks the next link for parts that another process deleted or changed, which takes up to
    /// 1 ms; returns whether this was the last one of a round.
    pub fn check_next(&mut self) -> bool {
        let Some(id) = self.to_check.pop() else {
            self.to_check = self.known.keys().copied().collect();
            self.to_check.sort_unstable();
            self.qdiscs = None;
            return true;
        };
        if let Some(known) = self.known.get_mut(&id) {
            known.check(&mut self.qdiscs);
        }
        self.to_check.is_empty()
    }

    /// Checks every link that a snapshot found.
    pub fn check_all(&mut self) {
        let mut all: Vec<_> = self.known.values_mut().collect();
        all.sort_by_key(|known| known.control.netns);
        all.retain_mut(|known| known.check(&mut self.qdiscs));
        if !all.is_empty() {
            thread::sleep(CONFIRM);
            self.qdiscs = None;
        }
        for known in all {
            known.check(&mut self.qdiscs);
        }
    }

    /// Updates the list of links; returns what could not be read.
    fn find(&mut self) -> Result<Vec<String>, DatapathError> {
        let (mut alive, mut unreadable) = (HashSet::new(), Vec::new());
        for id in self.classifiers.list()? {
            if self.refresh(id) {
                alive.insert(id);
                continue;
            }
            match Known::read(id) {
                Ok(Some(known)) => {
                    alive.insert(id);
                    self.known.insert(id, known);
                }
                Ok(None) => {}
                // Detached in the meantime.
                Err(_) if is_gone(id) => {}
                Err(e) => unreadable.push(format!("program {id}: {e}")),
            }
        }
        self.known.retain(|id, _| alive.contains(id));
        Ok(unreadable)
    }

    /// Returns whether a link is known and what is known is current.
    fn refresh(&mut self, id: u32) -> bool {
        let Some(known) = self.known.get_mut(&id) else {
            return false;
        };
        match known.there.maps.control() {
            Ok(now) if now.generation == known.control.generation => {
                known.control = now;
                true
            }
            _ => {
                self.known.remove(&id);
                false
            }
        }
    }

    /// Enters each namespace that has a link.
    fn insides(
        &self,
        spaces: &BTreeMap<u64, Namespace>,
        unreadable: &mut Vec<String>,
    ) -> HashMap<u32, Inside> {
        let mut by_netns: HashMap<u32, Vec<&Known>> = HashMap::new();
        for known in self.known.values() {
            by_netns.entry(known.control.netns).or_default().push(known);
        }
        let mut insides = HashMap::new();
        for (netns, links) in by_netns {
            let read = match spaces.get(&netns.into()) {
                Some(space) => space.within(|| Inside::read(&links)),
                None => Err(NetlinkError::NoNamespace(format!("net:[{netns}]"))),
            };
            match read.and_then(|inside| inside) {
                Ok(inside) => {
                    insides.insert(netns, inside);
                }
                Err(e) => unreadable.push(format!("network namespace net:[{netns}]: {e}")),
            }
        }
        insides
    }
}

impl Inside {
    /// Reads the namespace of the calling thread, in which these links are.
    fn read(links: &[&Known]) -> Result<Self, NetlinkError> {
        let dropped = Netlink::open()?.dropped()?;
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
            .map_err(|e| NetlinkError::io("read the names of interfaces", &e.into()))?;
        let name = |known: &&Known| {
            let index = known.control.ifindex;
            Some((index, netdevice::index_to_name(&socket, index).ok()?))
        };
        let devices = links.iter().flat_map(|known| &known.there.saved.devices);
        let device = |name: &String| {
            let index = netdevice::name_to_index(&socket, name).ok()?;
            Some((name.clone(), index))
        };
        Ok(Self {
            dropped,
            names: links.iter().filter_map(name).collect(),
            devices: devices.flatten().filter_map(device).collect(),
        })
    }
}

impl Known {
    /// Reads a link; `None`: an attach or detach is under way, or the program belongs to no interface.
    fn read(program_id: u32) -> Result<Option<Self>, LinkError> {
        let maps = match Maps::of_program(program_id) {
            Err(DatapathError::Abi { found: 0 }) => return Ok(None),
            maps => maps?,
        };
        let (control, saved) = (maps.control()?, maps.saved()?);
        if control.netns == 0 || saved.is_empty() {
            return Ok(None);
        }
        let saved: super::saved::Saved = serde_json::from_slice(&saved)?;
        Ok(Some(Self {
            profile: Profile::parse(&saved.profile, "the kernel").ok(),
            there: Attachment {
                program_id,
                maps,
                saved,
            },
            control,
            since: Instant::now(),
            tampered: None,
            suspected: None,
        }))
    }

    /// Samples the link; `None`: an attach is under way.
    fn sample(&self, now_ns: u64) -> Result<Option<LinkSample>, LinkError> {
        if self.since.elapsed() < UNDER_WAY && !self.there.is_in_force()? {
            return Ok(None);
        }
        let sample = sample::read(self, now_ns)?;
        Ok(Some(sample))
    }

    fn emulated(&self) -> impl Iterator<Item = u32> {
        let emulated = self.there.saved.directions;
        (DIRECTIONS.into_iter()).filter(move |direction| emulated[*direction as usize])
    }
}

/// Returns the namespaces with these inode numbers that can be entered.
fn found(wanted: HashSet<u64>) -> BTreeMap<u64, Namespace> {
    Namespace::find(&wanted).unwrap_or_default()
}

/// Returns the name of a namespace for users; empty: that of this process.
fn label(spaces: &BTreeMap<u64, Namespace>, netns: u32) -> String {
    match spaces.get(&netns.into()) {
        Some(space) => space.label(),
        None => format!("net:[{netns}]"),
    }
}
