// SPDX-License-Identifier: MIT OR Apache-2.0
//! The links of all network namespaces of the host, with the containers that these belong to.

use std::fs;

use rustix::process::geteuid;

use super::detach::{self, Done};
use super::emulated::Search;
use super::engine::hold::signal;
use super::show::list::Listed;
use super::space::{InSpace, Space};
use super::{LinkError, attachment, devices, reports, sweep, undo};
use crate::container::{self, Container};
use crate::netlink::{Namespace, Netlink, NetlinkError};

/// Something of each namespace that has any, or why it could not be had.
pub type OfEach<'a, T> = Vec<(&'a Space, Result<Vec<T>, LinkError>)>;

/// All network namespaces of the host.
#[derive(Debug)]
pub struct Host {
    spaces: Vec<(Namespace, Space)>,
    /// Sentences on what could not be found.
    pub notes: Vec<String>,
    /// Sentences on links in namespaces that cannot be entered.
    pub unreachable: Vec<String>,
}

impl Host {
    /// Finds the namespaces, the one of the calling thread first.
    ///
    /// # Errors
    /// [`LinkError::NotRootForAll`], or /proc cannot be read.
    pub fn read() -> Result<Self, LinkError> {
        if !geteuid().is_root() {
            return Err(LinkError::NotRootForAll);
        }
        let containers = container::running(container::PATIENCE)?;
        let mut spaces = vec![];
        let (namespaces, denied) = Namespace::all()?;
        for namespace in namespaces {
            // A container may share the network of the host.
            let inside = contained(&namespace, &containers.all).map(|container| InSpace {
                name: container.name.clone(),
                id: container.id.clone(),
                engine: container.engine.clone(),
            });
            let (pid, command) = process_of(&namespace);
            let space = Space {
                inode: namespace.id.inode,
                here: namespace.here,
                names: namespace.names.clone(),
                containers: inside.collect(),
                pid,
                command,
            };
            spaces.push((namespace, space));
        }
        // By name, this one first.
        spaces.sort_by_cached_key(|(_, space)| (!space.here, space.to_string()));
        let mut host = Self {
            spaces,
            notes: containers.notes,
            unreachable: vec![],
        };
        if let Some(pid) = denied.first() {
            host.notes.push(format!(
                "processes whose network namespace cannot be opened: {}, such as process {pid} \
                 (this needs CAP_SYS_PTRACE)",
                denied.len()
            ));
        }
        host.note_unreachable();
        Ok(host)
    }

    /// Links in a namespace to which only a descriptor refers.
    fn note_unreachable(&mut self) {
        let found = match Search::default().run() {
            Ok(found) => found.links,
            Err(e) => return self.notes.push(e.to_string()),
        };
        let known = |inode: u32| (self.spaces.iter()).any(|(_, s)| s.inode == u64::from(inode));
        let mut lost: Vec<(u32, u32)> = (found.iter())
            .filter(|link| !known(link.netns))
            .map(|link| (link.netns, link.interface))
            .collect();
        lost.dedup();
        self.unreachable.extend(lost.iter().map(|(netns, ifindex)| {
            format!(
                "the link on interface {ifindex} of network namespace {netns} cannot be reached: no process and \
                 no name of `ip netns` that is visible here refers to it"
            )
        }));
    }

    /// Lists the links of each namespace that has any, or why they cannot be read.
    pub fn list(&self) -> OfEach<'_, Listed> {
        self.each(reports::list)
    }

    /// Detaches all links of all namespaces. Returns for each interface how that ended.
    ///
    /// # Errors
    /// [`LinkError::Signal`]; nothing is detached then.
    pub fn detach(&self) -> Result<OfEach<'_, Detached>, LinkError> {
        // The threads inherit it: any thread that has not blocked Ctrl-C would take it, and end a detach
        // in the middle.
        let _stop = signal::stop_signals().map_err(LinkError::Signal)?;
        Ok(self.each(detach_here))
    }

    fn each<T: Send>(&self, work: impl Fn() -> Result<Vec<T>, LinkError> + Sync) -> OfEach<'_, T> {
        let mut all = vec![];
        for (namespace, space) in &self.spaces {
            let done = namespace.within(&work);
            match done.unwrap_or_else(|e| Err(e.into())) {
                Ok(done) if done.is_empty() => {}
                done => all.push((space, done)),
            }
        }
        all
    }
}

/// Returns the containers in a namespace whose processes are known.
pub(crate) fn contained<'a>(
    namespace: &Namespace,
    all: &'a [Container],
) -> impl Iterator<Item = &'a Container> {
    all.iter()
        .filter(|container| namespace.processes.binary_search(&container.pid).is_ok())
}

/// Returns the lowest ID of a process that is not emud's, and its name.
fn process_of(namespace: &Namespace) -> (Option<i32>, Option<String>) {
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let mut named = (namespace.processes.iter())
        .filter_map(|pid| Some((*pid, name(*pid)?.trim_end().to_owned())));
    match named.find(|(_, name)| !name.starts_with("emud-")) {
        Some((pid, name)) => (Some(pid), Some(name)),
        None => (namespace.processes.first().copied(), None),
    }
}

/// An interface, and how its detach ended.
#[derive(Debug)]
pub struct Detached {
    /// Name of the interface.
    pub interface: String,
    /// Notes, or why the link is still there.
    pub done: Result<Done, LinkError>,
}

/// Detaches every link of this namespace, complete or not.
fn detach_here() -> Result<Vec<Detached>, LinkError> {
    let mut nl = Netlink::open()?;
    sweep::sweep(&mut nl)?;
    let links = nl.links()?;
    let served: Vec<u32> = links.iter().filter_map(devices::serves).collect();
    let kept = undo::kept(&links).unwrap_or_default();
    let mut all = vec![];
    for link in links {
        let there = !matches!(attachment::find(&mut nl, link.index), Ok(None));
        if !there && !served.contains(&link.index) && !kept.contains(&link.index) {
            continue;
        }
        match detach::detach_index(link.index) {
            // Another process was faster.
            Err(LinkError::NotAttached { .. })
            | Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => {}
            done => all.push(Detached {
                interface: link.name,
                done,
            }),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Threads inherit it from the one that starts them.
    #[test]
    fn ctrl_c_waits_for_all_namespaces() {
        let blocked = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
            u64::from_str_radix(line.unwrap().trim(), 16).unwrap() & 1 << (libc::SIGINT - 1) != 0
        };
        let host = Host {
            spaces: vec![],
            notes: vec![],
            unreachable: vec![],
        };
        let of_a_thread = thread::spawn(move || {
            let before = blocked();
            host.detach().unwrap();
            (before, blocked(), thread::spawn(blocked).join().unwrap())
        });
        assert_eq!(of_a_thread.join().unwrap(), (false, true, true));
    }
}
