// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks between emud processes, which only root can hold.
//!
//! A lock is a range of bytes of a file that only root can open (any user can take an abstract
//! socket name, or flock(2) on a readable file). The offset in the file is derived from the network
//! namespace and a number in it, so one file serves many locks. The kernel releases a lock when the
//! last process with its descriptor ends.
//!
//! The files are in the folder `emud` of devtmpfs, of which a machine has one: every container has
//! its own /run, but can change the same interface.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::runtime;
use crate::mount;
use crate::netlink;

const RETRY: Duration = Duration::from_millis(5);
/// Bits of a number in a network namespace: interface indexes have 31 bits. Together with the 32
/// bits of the namespace's inode number they fill a file offset.
const NUMBER_BITS: u32 = 31;

/// The object that a lock protects; each kind has one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Changes of an interface, by its index.
    Interface,
    /// The setting `forwarding` of an interface, by the interface's index.
    Forwarding,
    /// Use of an IPv4 network, by its addresses.
    Network,
}

/// Whether others may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Other processes may hold it too, if they share it.
    Shared,
    /// No other process may hold it.
    Exclusive,
}

/// The file of a kind of locks, with the locks held through it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Opens the file without taking a lock.
    ///
    /// # Errors
    /// `PermissionDenied` unless this is root.
    pub fn open(about: About) -> io::Result<Self> {
        let folder = folder()?;
        let name = match about {
            About::Interface => "interface",
            About::Forwarding => "forwarding",
            About::Network => "network",
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        runtime::only_ours(&file, 0o077)?;
        Ok(Self(file.into()))
    }

    /// Uses a file that another process opened.
    pub fn of(file: File) -> Self {
        Self(file)
    }

    /// Returns a descriptor for another process; a lock is held until both have closed the file.
    ///
    /// # Errors
    /// The kernel cannot duplicate the descriptor.
    pub fn for_another(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Takes a lock; returns false if another process holds part of the range.
    pub fn try_take(&self, range: Range, sharing: Sharing) -> io::Result<bool> {
        let kind = match sharing {
            Sharing::Shared => libc::F_RDLCK,
            Sharing::Exclusive => libc::F_WRLCK,
        };
        match self.set(range, kind as libc::c_short) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            set => set.map(|()| true),
        }
    }

    /// Releases a lock, also that of other processes with this descriptor.
    pub fn release(&self, range: Range) -> io::Result<()> {
        self.set(range, libc::F_UNLCK as libc::c_short)
    }

    fn set(&self, range: Range, kind: libc::c_short) -> io::Result<()> {
        // SAFETY: a struct flock of zeros is valid.
        let mut wanted: libc::flock = unsafe { std::mem::zeroed() };
        wanted.l_type = kind;
        wanted.l_whence = libc::SEEK_SET as libc::c_short;
        (wanted.l_start, wanted.l_len) = (range.start, range.len);
        // SAFETY: F_OFD_SETLK reads a struct flock.
        match unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &wanted) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes a lock, and waits for other processes for up to `patience`. Returns false if another
    /// process still holds part of the range.
    pub fn take(&self, range: Range, sharing: Sharing, patience: Duration) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            let taken = self.try_take(range, sharing)?;
            if taken || start.elapsed() >= patience {
                return Ok(taken);
            }
            thread::sleep(RETRY);
        }
    }
}

/// Opens the folder of the locks, which only root can open.
///
/// # Errors
/// This is not root.
pub(crate) fn folder() -> io::Result<OwnedFd> {
    of_machine().or_else(|_| of_run())
}

/// Opens the folder that all emud processes of the machine share.
///
/// # Errors
/// This is not root, a security module forbids the mount, or the kernel has no devtmpfs.
fn of_machine() -> io::Result<OwnedFd> {
    let root = mount::detached("devtmpfs")?;
    match mkdirat(&root, "emud", Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&root, "emud", flags, Mode::empty())?;
    runtime::only_ours(&folder, 0o077)?;
    Ok(folder)
}

/// Opens the folder of the processes that share /run.
fn of_run() -> io::Result<OwnedFd> {
    runtime::folder(&Path::new(runtime::FOLDER).join("locks"), 0o700)
}

/// Bytes of a lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    start: i64,
    len: i64,
}

impl Range {
    /// Returns the range of `count` numbers from `first` on (the lowest 31 bits count) in the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    /// /proc does not show the namespace.
    pub fn here(first: u32, count: u32) -> io::Result<Self> {
        let netns = netlink::identity().map_err(io::Error::other)?.inode;
        Self::of(netns, first, count)
    }

    fn of(netns: u64, first: u32, count: u32) -> io::Result<Self> {
        let netns = u32::try_from(netns).map_err(io::Error::other)?;
        let number = i64::from(first & ((1 << NUMBER_BITS) - 1));
        Ok(Self {
            start: i64::from(netns) << NUMBER_BITS | number,
            len: i64::from(count),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_namespace_and_number_has_a_byte() {
        let highest = Range::of(u64::from(u32::MAX), u32::MAX >> 1, 1).unwrap();
        assert_eq!(highest.start, i64::MAX);
        let [a, b] = [1, 2].map(|netns| Range::of(netns, 0, 1 << 31).unwrap());
        assert_eq!(a.start + a.len, b.start);
        assert!(Range::of(1 << 32, 0, 1).is_err());
    }
}
