// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{NetlinkError, Result};

/// Identity of a network namespace: device and inode of its nsfs file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetnsId {
    /// Device of the file.
    pub dev: u64,
    /// Inode of the file.
    pub inode: u64,
}

fn path_of(spec: &str) -> PathBuf {
    if spec.contains('/') {
        spec.into()
    } else if spec.bytes().all(|b| b.is_ascii_digit()) {
        format!("/proc/{spec}/ns/net").into()
    } else {
        format!("/run/netns/{spec}").into()
    }
}

/// Moves the calling thread into a network namespace: a name created by `ip netns add`, a process
/// id (all digits), or a path. Called before any other thread starts, it applies to the whole
/// process.
///
/// # Errors
/// [`NetlinkError::NoNamespace`] if there is none, or the error of the kernel.
pub fn enter(spec: &str) -> Result<()> {
    if spec.is_empty() || spec == "." || spec == ".." {
        return Err(NetlinkError::NoNamespace(format!("{spec:?}")));
    }
    let path = path_of(spec);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(NetlinkError::NoNamespace(format!(
                "{spec} ({})",
                path.display()
            )));
        }
        Err(e) => return Err(NetlinkError::io(format!("open {}", path.display()), &e)),
    };
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| match e {
        // A file that is not a namespace.
        Errno::INVAL => NetlinkError::NoNamespace(format!("{spec} ({})", path.display())),
        e => NetlinkError::io(format!("enter network namespace {spec}"), &e.into()),
    })
}

/// Runs `work` in the network namespace of an open file, in a separate thread.
///
/// # Errors
/// The kernel does not let this process enter it, or `work` panicked.
pub fn inside<T: Send>(space: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || {
        move_into_link_name_space(space, Some(LinkNameSpaceType::Network))?;
        Ok(work())
    };
    thread::scope(|scope| {
        let ended = scope.spawn(enter).join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the work ended unexpectedly")))
    })
}

/// Runs `work` in the network namespace with this inode number. Returns `None` if no process and no
/// name of this mount namespace refers to it.
pub fn within<T: Send>(inode: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
    let space = spaces(&HashSet::from([inode])).pop()?;
    space.within(work).ok()
}

/// A network namespace, and what a user calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Inode number.
    pub inode: u64,
    /// What `--netns` takes: a name of `ip netns`, or a path; empty: that of this thread.
    pub name: String,
    path: PathBuf,
}

impl Space {
    fn at(name: String, path: PathBuf) -> Option<Self> {
        let inode = std::fs::metadata(&path).ok()?.ino();
        Some(Self { inode, name, path })
    }

    /// Runs `work` in this namespace, in a separate thread.
    ///
    /// # Errors
    /// [`NetlinkError::NoNamespace`]: it no longer exists or may not be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        if self.name.is_empty() {
            return Ok(work());
        }
        let none = || NetlinkError::NoNamespace(self.path.display().to_string());
        let file = File::open(&self.path).map_err(|_| none())?;
        // The process may have ended, and another have its number.
        if file.metadata().map_or(0, |meta| meta.ino()) != self.inode {
            return Err(none());
        }
        inside(file.as_fd(), work).map_err(|_| none())
    }
}

/// Returns the network namespaces with these inode numbers: that of this thread, those with a name,
/// and the others by one of their processes. Those that have none of these are missing.
pub fn spaces(wanted: &HashSet<u64>) -> Vec<Space> {
    let own = Space::at(String::new(), "/proc/thread-self/ns/net".into());
    let list = |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = list("/run/netns").filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        Space::at(name, entry.path())
    });
    let mut found: Vec<Space> = Vec::new();
    let mut add = |space: Space| {
        let new = wanted.contains(&space.inode) && found.iter().all(|f| f.inode != space.inode);
        found.extend(new.then_some(space));
        found.len() == wanted.len()
    };
    if own.into_iter().chain(named).any(&mut add) {
        return found;
    }
    let digits = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
    };
    let mut processes = list("/proc").filter(digits).filter_map(|entry| {
        let path = entry.path().join("ns/net");
        Space::at(path.display().to_string(), path)
    });
    processes.any(add);
    found
}

/// Returns the network namespace of the calling thread.
pub fn identity() -> Result<NetnsId> {
    let path = "/proc/thread-self/ns/net";
    let meta = std::fs::metadata(path).map_err(|e| NetlinkError::io(format!("read {path}"), &e))?;
    Ok(NetnsId {
        dev: meta.dev(),
        inode: meta.ino(),
    })
}
