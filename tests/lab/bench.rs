// SPDX-License-Identifier: GPL-2.0-only
//! A host to make labs on, and questions to ask it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use emud::lab::{Files, Lab};
use emud::scenario::{End, Route, Wire};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Runs `test` in a thread with a network of its own, and sees that nothing of
/// a lab is left: no interface, no child.
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
        // A node that a failed test left.
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    ended.unwrap();
    assert_eq!(left, [0; 0], "processes are left");
}

pub fn lab(nodes: &[&str]) -> Lab {
    let mut lab = Lab::new().unwrap();
    for name in nodes {
        lab.add_node(name, &files()).unwrap();
    }
    lab
}

pub fn files() -> Files {
    Files {
        resolv_conf: Some("nameserver 192.0.2.53\n".into()),
        hosts: "127.0.0.1 localhost\n192.0.2.7 peer\n".into(),
    }
}

/// "node:interface address", without node for the host, without address for a port.
pub fn end(text: &str) -> End {
    let (place, address) = text.split_once(' ').unwrap_or((text, ""));
    let (node, interface) = place.split_once(':').unwrap();
    End {
        node: Some(node.to_owned()).filter(|node| !node.is_empty()),
        interface: interface.to_owned(),
        address: (!address.is_empty()).then(|| address.parse().unwrap()),
    }
}

pub fn wire(near: &str, far: &str) -> Wire {
    Wire {
        ends: [end(near), end(far)],
    }
}

pub fn route(to: &str, via: &str, interface: &str) -> Route {
    Route {
        to: to.parse().unwrap(),
        via: Some(via.parse().unwrap()),
        interface: interface.into(),
    }
}

/// Of the calling thread's network namespace.
pub fn interfaces() -> Vec<String> {
    let list = stdout(&Command::new("ip").args(["-o", "link"]).output().unwrap());
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

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What a shell command in the node prints; it must succeed.
pub fn shell(lab: &Lab, node: &str, script: &str) -> String {
    let output = try_shell(lab, node, script);
    assert!(output.status.success(), "{node}: {script}: {output:?}");
    stdout(&output)
}

pub fn try_shell(lab: &Lab, node: &str, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = lab.spawn(node, &mut command).unwrap();
    child.wait_with_output().unwrap()
}

pub fn ping(lab: &Lab, node: &str, to: &str) -> bool {
    try_shell(lab, node, &format!("ping -n -c 2 -i 0.05 -W 2 {to}"))
        .status
        .success()
}

pub fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
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

pub fn netns(pid: u32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino())
}

pub fn soon(what: &str, is: impl Fn() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(3);
    while !is() {
        assert!(Instant::now() < give_up, "not within 3 s: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
