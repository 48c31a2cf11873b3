// SPDX-License-Identifier: MIT OR Apache-2.0
//! All network namespaces of the host.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::netns::inside;
use super::{NetlinkError, NetnsId, Result, identity};

/// Where `ip netns` keeps names.
const NAMES: &str = "/run/netns";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    /// Its identity.
    pub id: NetnsId,
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
        let here = identity()?;
        let mut found: BTreeMap<u64, Self> = BTreeMap::new();
        let mut denied = vec![];
        for (path, of) in paths()? {
            let file = match open(&path) {
                Ok(Some(file)) => file,
                // It has ended in the meantime.
                Ok(None) => continue,
                Err(e) => match (e, of) {
                    (NetlinkError::Denied(_), Of::Process(pid)) => {
                        denied.push(pid);
                        continue;
                    }
                    (e, _) => return Err(e),
                },
            };
            let meta = file
                .metadata()
                .map_err(|e| NetlinkError::io(format!("read {}", path.display()), &e))?;
            // Otherwise a plain file in /run/netns.
            if meta.dev() != here.dev {
                continue;
            }
            let namespace = found.entry(meta.ino()).or_insert_with(|| Self {
                id: NetnsId {
                    dev: meta.dev(),
                    inode: meta.ino(),
                },
                names: vec![],
                processes: vec![],
                file,
            });
            match of {
                Of::Name(name) => namespace.names.push(name),
                Of::Process(pid) => namespace.processes.push(pid),
            }
        }
        let mut all: Vec<Self> = found.into_values().collect();
        all.sort_by_key(|namespace| namespace.id != here);
        Ok((all, denied))
    }

    /// Runs `work` in this namespace, in a separate thread.
    ///
    /// # Errors
    /// The kernel does not let this process enter it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let done = inside(self.file.as_fd(), work);
        done.map_err(|e| NetlinkError::io(format!("enter network namespace {}", self.id.inode), &e))
    }
}

enum Of {
    Name(String),
    Process(i32),
}

fn paths() -> Result<Vec<(PathBuf, Of)>> {
    let list = |folder: &str| match std::fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        Err(e) => Err(NetlinkError::io(format!("read {folder}"), &e)),
    };
    let names = list(NAMES)?.into_iter().map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (entry.path(), Of::Name(name))
    });
    let number = |entry: &std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let processes = list("/proc")?;
    let mut pids: Vec<i32> = processes.iter().filter_map(number).collect();
    pids.sort_unstable();
    let processes = pids.into_iter().map(|pid| {
        let path = format!("/proc/{pid}/ns/net").into();
        (path, Of::Process(pid))
    });
    Ok(names.chain(processes).collect())
}

fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        // ESRCH: a process that ends.
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {
            Ok(None)
        }
        Err(e) => Err(NetlinkError::io(format!("open {}", path.display()), &e)),
    }
}
