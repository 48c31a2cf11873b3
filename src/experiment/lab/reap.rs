// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for the end of a process namespace.

use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

/// Without a process to reap the end takes milliseconds.
const PATIENCE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Waits for the first process of a namespace, which has been killed. The kernel releases it only
/// after all others have been reaped. Children of this process (programs, holders of links) are
/// reaped only by this process: the remaining ones are reaped here.
pub(crate) fn wait(init: &mut Child, pid_ns: u64) -> io::Result<()> {
    let start = Instant::now();
    while init.try_wait()?.is_none() {
        let waited = start.elapsed();
        if waited > LIMIT {
            return Err(io::Error::other("some of its processes do not end"));
        }
        if waited > PATIENCE {
            reap_children_in(pid_ns)?;
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn reap_children_in(pid_ns: u64) -> io::Result<()> {
    let own = getpid();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(pid) = Pid::from_raw(pid).filter(|&pid| is_child(pid, own, pid_ns)) else {
            continue;
        };
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            // Already reaped where it was started.
            Ok(_) | Err(Errno::CHILD) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Returns whether it is a child of `parent` in that namespace, but not its first process.
fn is_child(pid: Pid, parent: Pid, pid_ns: u64) -> bool {
    let inside = fs::metadata(format!("/proc/{pid}/ns/pid")).is_ok_and(|ns| ns.ino() == pid_ns);
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return false;
    };
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let of_parent = field("PPid:").and_then(|ppid| ppid.trim().parse().ok())
        == Some(parent.as_raw_nonzero().get());
    let first = field("NSpid:").and_then(|all| all.split_whitespace().last()) == Some("1");
    inside && of_parent && !first
}
