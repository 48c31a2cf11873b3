// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every link of this host, in all network namespaces, read again and again: for metrics and for
//! `emud top`.
//!
//! Links are found by their programs, as in [`super::emulated`]. What does not change is read once;
//! a namespace is entered for each reading and left again, because an open socket would keep a
//! deleted namespace, and its interfaces, alive.

mod containers;
mod sample;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use aya::programs::ProgramInfo;

use super::attachment::Attachment;
use super::emulated::{is_gone, programs};
use super::maps::{DatapathError, Maps, Program};
use super::{LinkError, pieces};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::host::now_ns;
use crate::netlink::{Dropped, Namespace, Netlink, NetlinkError};
use crate::profile::Profile;

use containers::Containers;
pub use sample::{DirectionSample, LinkSample, StreamSample};

/// An attach takes less than this; what is not in force later was left behind.
const UNDER_WAY: Duration = Duration::from_secs(3);
/// Two checks this far apart must agree: `set` and `detach` change one object after the other.
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

/// What one interface is called, and what it and its qdiscs dropped.
type Inside = HashMap<u32, Dropped>;

/// A link that a previous reading found.
struct Known {
    there: Attachment,
    profile: Option<Profile>,
    control: abi::emud_control,
    since: Instant,
    /// Sentences, and when they were found, ns on CLOCK_MONOTONIC; `None`: not checked yet.
    tampered: Option<(Vec<String>, u64)>,
}

/// Reads all links of the host repeatedly.
#[derive(Default)]
pub struct Survey {
    /// By the id of the classifier.
    known: HashMap<u32, Known>,
    /// Ids to check for tampering, the next one last.
    to_check: Vec<u32>,
    containers: Containers,
}

impl std::fmt::Debug for Survey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

impl Survey {
    /// Creates a survey that knows no link yet. Each link takes 16 open files, so the limit of this
    /// process is raised as far as the kernel permits.
    pub fn new() -> Self {
        raise_file_limit();
        Self::default()
    }

    /// Reads every link.
    ///
    /// # Errors
    /// [`DatapathError::Search`]: this process may not see the BPF programs.
    pub fn snapshot(&mut self) -> Result<Snapshot, DatapathError> {
        let mut unreadable = self.find()?;
        let wanted = self
            .known
            .values()
            .map(|known| u64::from(known.control.netns));
        let spaces = found(wanted.collect());
        self.containers.of(&spaces);
        let insides = self.insides(&spaces, &mut unreadable);
        let mono_ns = now_ns();
        let mut links = Vec::new();
        for (id, known) in &self.known {
            let netns = known.control.netns;
            let names = (label(&spaces, netns), self.containers.names(netns));
            match known.sample(names, insides.get(&netns), mono_ns) {
                Ok(sample) => links.extend(sample),
                Err(e) => unreadable.push(format!("program {id}: {e}")),
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
            self.containers.expire();
            return true;
        };
        if let Some(known) = self.known.get_mut(&id) {
            known.check();
        }
        self.to_check.is_empty()
    }

    /// Checks every link that a snapshot found.
    pub fn check_all(&mut self) {
        for known in self.known.values_mut() {
            known.check();
        }
    }

    /// Updates the list of links; returns what could not be read.
    fn find(&mut self) -> Result<Vec<String>, DatapathError> {
        let (mut alive, mut unreadable) = (HashSet::new(), Vec::new());
        for program in programs() {
            let program = program?;
            let id = program.id();
            let of_emud = Program::emulates(program.name_as_str());
            if !of_emud || self.refresh(id) {
                alive.insert(id);
                continue;
            }
            match Known::read(&program) {
                Ok(Some(known)) => {
                    alive.insert(id);
                    self.known.insert(id, known);
                }
                Ok(None) => {}
                // Detached in the meantime.
                Err(_) if program.fd().is_err_and(|e| is_gone(&e)) => {}
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
        let wanted: HashSet<u32> = (self.known.values())
            .map(|known| known.control.netns)
            .collect();
        let mut insides = HashMap::new();
        for netns in wanted {
            let read = match spaces.get(&netns.into()) {
                Some(space) => space.within(|| Netlink::open()?.dropped()),
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

impl Known {
    /// `None`: an attach or detach is under way, or the program belongs to no interface.
    fn read(program: &ProgramInfo) -> Result<Option<Self>, LinkError> {
        let maps = match Maps::of_info(program) {
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
                program_id: program.id(),
                maps,
                saved,
            },
            control,
            since: Instant::now(),
            tampered: None,
        }))
    }

    /// `None`: an attach is under way.
    fn sample(
        &self,
        names: (String, String),
        inside: Option<&Inside>,
        now_ns: u64,
    ) -> Result<Option<LinkSample>, LinkError> {
        if self.since.elapsed() < UNDER_WAY && !pieces::in_force(&self.there)? {
            return Ok(None);
        }
        let sample = sample::read(self, names, inside, now_ns)?;
        Ok(Some(sample))
    }

    fn check(&mut self) {
        let netns = self.control.netns;
        let spaces = found(HashSet::from([netns.into()]));
        let found = match spaces.get(&netns.into()) {
            Some(space) => space.within(|| self.tampering()),
            None => Err(NetlinkError::NoNamespace(format!("net:[{netns}]"))),
        };
        // What cannot be checked keeps its last result, and the age of that shows it.
        if let Ok(Ok(found)) = found {
            self.tampered = Some((found, now_ns()));
        }
    }

    fn tampering(&self) -> Result<Vec<String>, LinkError> {
        let mut nl = Netlink::open()?;
        let first = self.tampering_once(&mut nl)?;
        if first.is_empty() {
            return Ok(first);
        }
        thread::sleep(CONFIRM);
        let second = self.tampering_once(&mut nl)?;
        let both = first.into_iter().filter(|one| second.contains(one));
        Ok(both.collect())
    }

    fn tampering_once(&self, nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
        let link = match nl.link_by_index(self.control.ifindex) {
            Ok(link) => link,
            Err(NetlinkError::NoInterface(_)) => {
                return Ok(vec!["the interface was deleted or moved".to_owned()]);
            }
            Err(e) => return Err(e.into()),
        };
        let found = pieces::tampering(nl, &link, &self.there)?;
        Ok(found.into_iter().map(|one| one.what).collect())
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

/// What a user calls a namespace; empty: that of this process.
fn label(spaces: &BTreeMap<u64, Namespace>, netns: u32) -> String {
    match spaces.get(&netns.into()) {
        Some(space) => space.label(),
        None => format!("net:[{netns}]"),
    }
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = Some(1 << 20);
    let limit = getrlimit(Resource::Nofile);
    let everything = Rlimit {
        current: wanted,
        maximum: wanted.max(limit.maximum),
    };
    let permitted = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without the permission fewer links can be read, and each one that cannot is reported.
    let _ =
        setrlimit(Resource::Nofile, everything).or_else(|_| setrlimit(Resource::Nofile, permitted));
}
