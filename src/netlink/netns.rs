// SPDX-License-Identifier: MIT OR Apache-2.0
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

/// Returns the file of a namespace.
///
/// # Errors
/// Both a name and a process have this number, in different namespaces.
fn path_of(spec: &str) -> Result<PathBuf> {
    if spec.contains('/') {
        return Ok(spec.into());
    }
    let named = PathBuf::from(format!("{NAMED}/{spec}"));
    if !is_number(spec) {
        return Ok(named);
    }
    let of_process = PathBuf::from(format!("/proc/{spec}/ns/net"));
    let id = |path: &PathBuf| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    match (id(&named), id(&of_process)) {
        (Some(_), None) => Ok(named),
        (Some(one), Some(other)) if one != other => Err(NetlinkError::TwoNamespaces {
            named: named.display().to_string(),
            of_process: of_process.display().to_string(),
        }),
        _ => Ok(of_process),
    }
}

/// Names of `ip netns`.
pub(super) const NAMED: &str = "/run/netns";

/// Returns whether `--netns` takes this for a process.
pub(super) fn is_number(spec: &str) -> bool {
    spec.bytes().all(|b| b.is_ascii_digit())
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
    let path = path_of(spec)?;
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

/// Returns the network namespace of the calling thread.
pub fn identity() -> Result<NetnsId> {
    identity_of("/proc/thread-self/ns/net")
}

/// Returns the network namespace of this file, of those in /proc.
///
/// # Errors
/// The kernel does not let this process read it.
pub fn identity_of(path: &str) -> Result<NetnsId> {
    let meta = std::fs::metadata(path).map_err(|e| NetlinkError::io(format!("read {path}"), &e))?;
    Ok(NetnsId {
        dev: meta.dev(),
        inode: meta.ino(),
    })
}
