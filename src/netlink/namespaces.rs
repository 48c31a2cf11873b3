// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network namespaces of the host.

use std::collections::{BTreeMap, HashSet};
use std::fs::{DirEntry, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::netns::{NAMED, inside, is_number};
use super::{NetlinkError, NetnsId, Result, identity};

/// Where `ip netns` keeps names.
const NAMES: &str = "/run/netns";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    /// Device and inode number, which identify it.
    pub id: NetnsId,
    /// It is that of the thread that found it.
    pub here: bool,
    /// Names of `ip netns` for it.
    pub names: Vec<String>,
    /// IDs of its processes, in rising order.
    pub processes: Vec<i32>,
    file: File,
}

impl Namespace {
    /// Returns every namespace that has a process or a name of `ip netns`; that of the calling thread
    /// is the first. One that only an open descriptor refers to cannot be found. The second value
    /// has the IDs of the processes whose namespace this process may not open.
    ///
    /// # Errors
    /// /proc cannot be read, or a namespace cannot be opened.
    pub fn all() -> Result<(Vec<Self>, Vec<i32>)> {
        let mut search = Search::new(None)?;
        search.names()?;
        let mut pids: Vec<i32> = processes()?.collect();
        pids.sort_unstable();
        for pid in pids {
            search.process(pid)?;
        }
        let mut all: Vec<Self> = search.found.into_values().collect();
        all.sort_by_key(|namespace| !namespace.here);
        Ok((all, search.denied))
    }

    /// Returns the namespaces with these inode numbers that can be opened, by inode number. Unlike
    /// [`Self::all`] it ends with the last one found, so names and processes are incomplete: the
    /// search through /proc takes longest, and is left out if names lead to all.
    pub fn find(wanted: &HashSet<u64>) -> Result<BTreeMap<u64, Self>> {
        let mut search = Search::new(Some(wanted))?;
        // A name that cannot be opened is not one of a namespace with a link.
        let _ = search.names();
        if !search.has_all() {
            for pid in processes()? {
                let _ = search.process(pid);
                if search.has_all() {
                    break;
                }
            }
        }
        Ok(search.found)
    }

    /// Returns what `--netns` takes: a name of `ip netns`, or a path; empty: that of the thread that
    /// found it.
    pub fn label(&self) -> String {
        match (self.here, &self.names[..], &self.processes[..]) {
            (false, [name, ..], _) if is_number(name) => format!("{NAMED}/{name}"),
            (false, [name, ..], _) => name.clone(),
            (false, [], [pid, ..]) => format!("/proc/{pid}/ns/net"),
            _ => String::new(),
        }
    }

    /// Runs `work` in this namespace: in a separate thread, unless it is that of the thread that
    /// found it, which then must be the calling one.
    ///
    /// # Errors
    /// The kernel does not let this process enter it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        if self.here {
            return Ok(work());
        }
        let done = inside(self.file.as_fd(), work);
        done.map_err(|e| NetlinkError::io(format!("enter network namespace {}", self.id.inode), &e))
    }
}

/// A search for namespaces, with those found so far.
struct Search<'a> {
    here: NetnsId,
    /// `None`: all.
    wanted: Option<&'a HashSet<u64>>,
    found: BTreeMap<u64, Namespace>,
    denied: Vec<i32>,
}

impl<'a> Search<'a> {
    /// Begins with the namespace of the calling thread.
    fn new(wanted: Option<&'a HashSet<u64>>) -> Result<Self> {
        let mut search = Self {
            here: identity()?,
            wanted,
            found: BTreeMap::new(),
            denied: vec![],
        };
        search.add(Path::new("/proc/thread-self/ns/net"))?;
        Ok(search)
    }

    fn has_all(&self) -> bool {
        (self.wanted).is_some_and(|wanted| wanted.len() == self.found.len())
    }

    fn names(&mut self) -> Result<()> {
        for entry in list(NAMES)? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(namespace) = self.add(&entry.path())? {
                namespace.names.push(name);
            }
        }
        Ok(())
    }

    fn process(&mut self, pid: i32) -> Result<()> {
        match self.add(format!("/proc/{pid}/ns/net").as_ref()) {
            Ok(namespace) => {
                let processes = namespace.map(|namespace| &mut namespace.processes);
                processes.into_iter().for_each(|all| all.push(pid));
                Ok(())
            }
            Err(NetlinkError::Denied(_)) => {
                self.denied.push(pid);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Adds the namespace of a file; `None`: it is not wanted, not a namespace, or has ended in the meantime.
    fn add(&mut self, path: &Path) -> Result<Option<&mut Namespace>> {
        let failed = |e: &io::Error| NetlinkError::io(format!("open {}", path.display()), e);
        // Most of the paths lead to a namespace that has been found: without a descriptor.
        let meta = match std::fs::metadata(path) {
            Err(e) if has_ended(&e) => return Ok(None),
            meta => meta.map_err(|e| failed(&e))?,
        };
        let is_wanted = self.wanted.is_none_or(|all| all.contains(&meta.ino()));
        // A different device: a plain file in /run/netns.
        if meta.dev() != self.here.dev || !is_wanted {
            return Ok(None);
        }
        if !self.found.contains_key(&meta.ino()) {
            let file = match File::open(path) {
                Err(e) if has_ended(&e) => return Ok(None),
                file => file.map_err(|e| failed(&e))?,
            };
            // The process may have ended, and another have its number.
            if file.metadata().map_err(|e| failed(&e))?.ino() != meta.ino() {
                return Ok(None);
            }
            let id = NetnsId {
                dev: meta.dev(),
                inode: meta.ino(),
            };
            let namespace = Namespace {
                id,
                here: id == self.here,
                names: vec![],
                processes: vec![],
                file,
            };
            self.found.insert(meta.ino(), namespace);
        }
        Ok(self.found.get_mut(&meta.ino()))
    }
}

/// Returns the IDs of processes in the order of the kernel.
fn processes() -> Result<impl Iterator<Item = i32>> {
    let number = |entry: DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(list("/proc")?.filter_map(number))
}

/// Lists a folder; one that does not exist is empty.
fn list(folder: &str) -> Result<impl Iterator<Item = DirEntry>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(|e| NetlinkError::io(format!("read {folder}"), &e))?),
    };
    Ok(entries.into_iter().flatten().flatten())
}

/// Returns whether a process has ended; ESRCH: it is ending.
fn has_ended(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH)
}
