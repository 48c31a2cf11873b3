// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects whether only the holder keeps its network namespace alive.
//!
//! A process and an open TAP keep a namespace alive: after `ip netns del` its interfaces would
//! continue to exist, unseen, as long as the holder runs. A process that has a descriptor of the
//! namespace (a container runtime), or of which a thread is in it (a test), can still use it. Other
//! processes that watch do not count: two of them would wait for each other.

use std::ffi::CStr;
use std::os::linux::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, Uid, geteuid, getpid, kill_process, pidfd_open};

/// Changes of names cause no event. The end of a process does.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// After a process has ended, another one may close the last descriptor a moment later.
const LOOK_SOON: Duration = Duration::from_millis(20);

/// Name of engine hold's process. By it and [`RENEWER`] those that watch know each other, not by their
/// executable: another version of emud may have been installed meanwhile.
pub const HOLDER: &CStr = c"emud-hold";
/// Name of the process that renews a link.
pub const RENEWER: &CStr = c"emud-renew";

/// In the environment of a process that is to watch, from the one that starts it. That one may be killed,
/// and the namespace's processes with it, before the new process can look for itself.
const KEPT: &str = "EMUD_NAMESPACE_IS_KEPT";

/// Records for the process that `command` starts whether the namespace of this thread has a name or a
/// process that is visible from here.
pub(super) fn record(command: &mut Command) {
    let is_kept = |home| {
        let own = inode("/proc/self/ns/net") == Some(home);
        own || named(home) || inhabitant(home).is_some()
    };
    match inode("/proc/thread-self/ns/net").is_some_and(is_kept) {
        true => command.env(KEPT, "1"),
        false => command.env_remove(KEPT),
    };
}

/// Ends this process by SIGTERM once its network namespace has neither a name nor another process
/// or thread, and no process has a descriptor of it. If it had neither a name nor a process at the start
/// (something invisible from here keeps it), the process continues.
pub fn watch() {
    let Some(home) = inode("/proc/self/ns/net") else {
        return;
    };
    if inode("/proc/1/ns/net") == Some(home) || env::var_os(KEPT).is_none() {
        return;
    }
    thread::spawn(move || {
        let mut pause = LOOK_SOON;
        loop {
            match inhabitant(home) {
                Some(process) => {
                    wait_for(process);
                    pause = LOOK_SOON;
                }
                None if named(home) => thread::sleep(LOOK_EVERY),
                None if held_open(home) || of_a_thread(home) => {
                    thread::sleep(pause);
                    pause = (2 * pause).min(LOOK_EVERY);
                }
                None => break,
            }
        }
        // There is no way to report a failure.
        let _ = kill_process(getpid(), Signal::TERM);
    });
}

fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).ok().map(|meta| meta.st_ino())
}

/// Waits until the process ends, or for a limited time.
fn wait_for(process: Pid) {
    let time = Timespec::try_from(LOOK_EVERY).ok();
    let ended = pidfd_open(process, PidfdFlags::empty());
    match ended.map(|ended| poll(&mut [PollFd::new(&ended, PollFlags::IN)], time.as_ref())) {
        // It has already ended.
        Err(Errno::SRCH) | Ok(Ok(_)) => {}
        Err(_) | Ok(Err(_)) => thread::sleep(LOOK_EVERY),
    }
}

/// Returns whether the namespace has a name: `ip netns add` and container runtimes bind-mount its file.
fn named(home: u64) -> bool {
    let root = format!(" net:[{home}] ");
    fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| mounts.contains(&root))
}

/// Returns another process in the namespace.
fn inhabitant(home: u64) -> Option<Pid> {
    processes().find(|pid| inode(&format!("/proc/{pid}/ns/net")) == Some(home))
}

/// Returns whether another process has a descriptor of it. This checks all descriptors of the host,
/// which takes a while, so it is the last check.
fn held_open(home: u64) -> bool {
    let Some(nsfs) = fs::metadata("/proc/self/ns/net").ok().map(|m| m.st_dev()) else {
        return true;
    };
    let is_home = |fd: io::Result<fs::DirEntry>| {
        // Through the link: the file itself, wherever it was opened.
        let meta = fd.and_then(|fd| fs::metadata(fd.path()));
        meta.is_ok_and(|meta| (meta.st_dev(), meta.st_ino()) == (nsfs, home))
    };
    processes()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok())
        .any(|fds| fds.into_iter().any(is_home))
}

/// Returns whether a thread of another process is in it while the main thread is not.
fn of_a_thread(home: u64) -> bool {
    let is_home = |task: io::Result<fs::DirEntry>| {
        let task = task.ok()?.path().join("ns/net");
        Some(inode(task.to_str()?) == Some(home))
    };
    processes()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
        .any(|mut tasks| tasks.any(|task| is_home(task) == Some(true)))
}

/// Returns all processes except this one and others of its user that watch.
fn processes() -> impl Iterator<Item = Pid> {
    let own = getpid();
    let all = fs::read_dir("/proc").into_iter().flatten();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(move |pid| *pid != own && !watches(*pid))
}

fn watches(process: Pid) -> bool {
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    let Some(name) = name.strip_suffix(b"\n") else {
        return false;
    };
    // Any user can give a process any name.
    [HOLDER.to_bytes(), RENEWER.to_bytes()].contains(&name) && user(process) == Some(geteuid())
}

/// Returns the effective user. The owner of the folder in /proc is root for many processes of others.
fn user(process: Pid) -> Option<Uid> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .map(Uid::from_raw)
}
