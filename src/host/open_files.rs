// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit of open files: a shell usually has 1,024, less than a large experiment needs.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit with which this process was started.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// More than the links of a host need.
pub(crate) const MANY: u64 = 1 << 20;

/// Raises the limit to this number, or as far as permitted.
pub(crate) fn allow(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    BEFORE.get_or_init(|| limit);
    let everything = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|maximum| maximum.max(wanted)),
    };
    let permitted = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without the permission, opening too many fails with its own error.
    let _ =
        setrlimit(Resource::Nofile, everything).or_else(|_| setrlimit(Resource::Nofile, permitted));
}

/// Starts a program with the limit that it has without emud: with a higher one, select(2) fails in programs that
/// use it, and others close a million descriptors.
pub(crate) fn as_before(command: &mut Command) {
    let Some(before) = BEFORE.get() else { return };
    let restore = || setrlimit(Resource::Nofile, *before).map_err(io::Error::from);
    // SAFETY: a system call only.
    unsafe { command.pre_exec(restore) };
}
