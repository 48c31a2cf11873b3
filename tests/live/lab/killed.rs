// SPDX-License-Identifier: MIT OR Apache-2.0
//! `kill -9` of the program that made a lab.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{fs, thread};

use super::bench::{lab, read, wire};
use super::outside::{as_before, internet, wire_out};
use support::host::{interfaces, parent, pids, soon};
use support::runs::TAG;

/// First argument of this program when it is the one that is killed.
pub const ARGUMENT: &str = "victim";

/// Creates a lab with all features, reports it and waits for its end.
pub fn victim() -> ExitCode {
    let mut lab = lab(&["a", "b"]);
    let [ours, theirs] = wire_out(&mut lab, "a");
    lab.wire(&wire("a:eth1 10.0.0.1/24", "b:eth0 10.0.0.2/24"))
        .unwrap();
    lab.outside("a", &ours, &theirs).unwrap();
    // In a separate session, and adopted by the first process.
    let mut sleep = Command::new("sh");
    sleep.args(["-c", "setsid sleep 1000 & exec sleep 1000"]);
    let mut child = lab.spawn("b", &mut sleep).unwrap();
    println!("{}", ours.interface);
    child.wait().unwrap();
    ExitCode::FAILURE
}

pub fn leaves_nothing() {
    let internet = internet();
    // Twice: remains of the first must not affect the second.
    for _ in 0..2 {
        let mut victim = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut table = String::new();
        BufReader::new(victim.stdout.take().unwrap())
            .read_line(&mut table)
            .unwrap();
        let (pid, table) = (victim.id(), table.trim());
        assert_eq!(interfaces(), [table, "lo", "uplink"]);
        let own = netns(pid);
        // Its children, and the namespaces of nodes that they are in.
        let family = || {
            let children = pids(|child| parent(child) == Some(pid));
            let inside = children.iter().filter_map(|&pid| netns(pid));
            let inside: Vec<u64> = inside.filter(|&ns| Some(ns) != own).collect();
            (children, inside)
        };
        // An ended process has no namespace any more, even if it is not reaped yet.
        let of = |(children, inside): &(BTreeSet<u32>, Vec<u64>)| {
            pids(|pid| netns(pid).is_some_and(|ns| children.contains(&pid) || inside.contains(&ns)))
        };
        // Two nodes, the keeper, a shell that became sleep; sleep in the background.
        soon("all processes are there", || {
            let family = family();
            (family.0.len(), of(&family).len()) == (4, 5)
        });
        let family = family();
        victim.kill().unwrap();
        victim.wait().unwrap();
        soon("all processes end", || of(&family).is_empty());
        soon("the host's end goes", || interfaces() == ["lo", "uplink"]);
        soon("forwarding is off", || {
            read("/proc/sys/net/ipv4/conf/uplink/forwarding") == "0"
        });
        as_before("uplink");
    }
    internet.close().unwrap();
}

/// Whatever it was doing: everything is removed.
pub fn at_any_time() {
    let internet = internet();
    // A parallel job may run the same program.
    let tag = format!("{TAG}={}\0", std::process::id());
    let ours = || {
        pids(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&tag)
        })
    };
    // The host's end of a way out shows that a lab has begun.
    let devices = || read("/proc/thread-self/net/dev").lines().count();
    let before = devices();
    let mut begun = false;
    // On a busy machine it may not be there within 150 ms.
    let usual = (0..150).step_by(7);
    for ms in usual.chain([300, 1_000, 3_000, 10_000]) {
        if ms >= 300 && begun {
            break;
        }
        let mut victim = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .env(TAG, std::process::id().to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(ms));
        begun |= devices() > before;
        victim.kill().unwrap();
        victim.wait().unwrap();
        soon("all processes end", || ours().is_empty());
        soon("the host's end goes", || interfaces() == ["lo", "uplink"]);
        as_before("uplink");
    }
    assert!(begun, "no lab has begun");
    internet.close().unwrap();
}

fn netns(pid: u32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino())
}
