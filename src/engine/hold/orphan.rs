// SPDX-License-Identifier: GPL-2.0-only
//! Whether anybody but the holder can still see its network namespace.
//!
//! A process and an open TAP keep a namespace alive: after `ip netns del` the
//! interfaces in it would live on, unseen, for as long as the holder does.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Ends this process by SIGTERM once its network namespace has neither a name
/// nor another process. Where it has neither from the start (somebody holds it
/// in a way that cannot be seen from here) it is left alone.
pub fn watch() {
    let Some(home) = inode("/proc/self/ns/net") else {
        return;
    };
    if inode("/proc/1/ns/net") == Some(home) || !visible(home) {
        return;
    }
    thread::spawn(move || {
        while visible(home) {
            thread::sleep(LOOK_EVERY);
        }
        // Nobody to tell if it fails.
        let _ = kill_process(getpid(), Signal::TERM);
    });
}

fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).ok().map(|meta| meta.st_ino())
}

fn visible(home: u64) -> bool {
    named(home) || inhabited(home)
}

/// `ip netns add` and container runtimes bind-mount the namespace's file.
fn named(home: u64) -> bool {
    let root = format!(" net:[{home}] ");
    fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| mounts.contains(&root))
}

fn inhabited(home: u64) -> bool {
    let own = std::process::id();
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .any(|pid| inode(&format!("/proc/{pid}/ns/net")) == Some(home))
}
