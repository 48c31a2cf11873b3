// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups (version 2) by their paths.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, fstat, openat};

use crate::mount;

/// A control group that cannot be found.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open control group \"/{path}\": {cause}; paths are below the root of cgroup v2, as in \
     /proc/PID/cgroup, and the group has to exist"
)]
pub struct NoCgroup {
    /// Without a slash at its begin.
    pub path: String,
    /// Why.
    pub cause: io::Error,
}

/// An open control group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// Its directory.
    pub folder: OwnedFd,
    /// The kernel's number, which no other group gets.
    pub id: u64,
}

/// Opens groups by their paths below the root that this process sees, without a slash at the begin.
///
/// # Errors
/// A group does not exist, or the kernel has no cgroup v2.
pub(crate) fn open(paths: &[String]) -> Result<Vec<Cgroup>, NoCgroup> {
    let Some(first) = paths.first() else {
        return Ok(Vec::new());
    };
    let failed = |path: &String| {
        let path = path.clone();
        move |cause| NoCgroup { path, cause }
    };
    let root = mount::detached("cgroup2").map_err(failed(first))?;
    let one = |path: &String| -> io::Result<Cgroup> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = if path.is_empty() { "." } else { path };
        let folder = openat(&root, within, flags, Mode::empty())?;
        let id = fstat(&folder)?.st_ino;
        Ok(Cgroup { folder, id })
    };
    (paths.iter())
        .map(|path| one(path).map_err(failed(path)))
        .collect()
}
