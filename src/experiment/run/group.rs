// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group for the programs of a run on an existing interface. A program cannot leave it
//! with a new session or a second fork, and the kernel ends all of it at once, independent of
//! process numbers, which may belong to other processes by then.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::host::random;
use crate::mount;

/// How long to wait for killed processes.
const LIMIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// An existing group.
#[derive(Debug)]
pub struct Group {
    /// Mount point of the hierarchy.
    root: OwnedFd,
    folder: OwnedFd,
    /// The file to which processes are added.
    procs: OwnedFd,
    /// Path in the hierarchy.
    pub path: PathBuf,
}

impl Group {
    /// Creates a group below that of this process.
    pub fn create() -> io::Result<Self> {
        let root = mount::detached("cgroup2")?;
        let name = format!("emud-run-{:016x}", u64::from_ne_bytes(random()?));
        let path = own()?.join(name);
        mkdirat(&root, &path, Mode::from_raw_mode(0o755))?;
        Self::at(root, path)
    }

    /// Opens a group that another process of emud created.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::at(mount::detached("cgroup2")?, path.to_owned())
    }

    fn at(root: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&root, &path, flags, Mode::empty())?;
        Ok(Self {
            procs: file(folder.as_fd(), "cgroup.procs", OFlags::WRONLY)?,
            root,
            folder,
            path,
        })
    }

    /// Makes `command` start in the group. The group has to exist until then.
    pub fn takes(&self, command: &mut Command) {
        let procs = self.procs.as_raw_fd();
        let enter = move || {
            // SAFETY: the caller's `self` exists while the process is started.
            let procs = unsafe { BorrowedFd::borrow_raw(procs) };
            // 0 stands for the writing process.
            Ok(rustix::io::write(procs, b"0").map(drop)?)
        };
        // SAFETY: one system call.
        unsafe { command.pre_exec(enter) };
    }

    /// Kills all processes, waits until they have ended, and removes the group.
    ///
    /// # Errors
    /// The kernel returns an error, or a process does not end.
    pub fn end(&self) -> io::Result<()> {
        match file(self.folder.as_fd(), "cgroup.kill", OFlags::WRONLY) {
            Ok(kill) => fs::File::from(kill).write_all(b"1")?,
            // It was removed, so it was empty.
            Err(Errno::NOENT | Errno::NODEV) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let start = Instant::now();
        while self.populated()? {
            if start.elapsed() > LIMIT {
                return Err(io::Error::other("a program does not end"));
            }
            thread::sleep(LOOK_EVERY);
        }
        match unlinkat(&self.root, &self.path, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn populated(&self) -> io::Result<bool> {
        let mut text = String::new();
        let events = file(self.folder.as_fd(), "cgroup.events", OFlags::RDONLY)?;
        fs::File::from(events).read_to_string(&mut text)?;
        Ok(text.lines().any(|line| line == "populated 1"))
    }
}

/// Returns the group of this process, relative to the hierarchy.
fn own() -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let missing = || io::Error::other("/proc/self/cgroup has no group of version 2");
    own.map(PathBuf::from).ok_or_else(missing)
}

fn file(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty())
}
