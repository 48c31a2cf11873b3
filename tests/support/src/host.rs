// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network namespace that acts as the host, and its content.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Runs `test` in a thread with a separate network, and checks that no interface and no child of a
/// lab remains.
pub fn on_a_host(test: fn()) {
    let children = || pids(|pid| parent(pid) == Some(std::process::id()));
    let before = children();
    let ended = thread::spawn(move || {
        // SAFETY: descriptors stay shared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
        ip("link set lo up");
        test();
        assert_eq!(interfaces(), ["lo"]);
    })
    .join();
    let left: Vec<u32> = children().difference(&before).copied().collect();
    for pid in &left {
        // A node that remains from a failed test.
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
    assert_eq!(left, [0; 0], "processes are left");
}

/// Of the calling thread's network namespace.
pub fn interfaces() -> Vec<String> {
    let list = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let mut names: Vec<String> = list
        .lines()
        .map(|line| line.split([' ', ':', '@']).nth(2).unwrap().to_owned())
        .collect();
    names.sort();
    names
}

pub fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// All processes for which `is` holds.
pub fn pids(is: impl Fn(u32) -> bool) -> BTreeSet<u32> {
    let all = fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| is(pid))
        .collect()
}

pub fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

pub fn soon(what: &str, is: impl Fn() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < give_up, "not within 60 s: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
