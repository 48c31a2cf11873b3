// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use super::bench::{lab, shell, stdout, wire};
use support::host::{ip, soon};
use support::runs::rtt_ms;

pub fn names() {
    let before = fs::read_to_string("/etc/hosts").unwrap();
    let lab = lab(&["a"]);
    assert!(shell(&lab, "a", "getent hosts peer").starts_with("192.0.2.7"));
    assert_eq!(
        shell(&lab, "a", "cat /etc/resolv.conf"),
        "nameserver 192.0.2.53"
    );
    assert_eq!(fs::read_to_string("/etc/hosts").unwrap(), before);
    lab.close().unwrap();
    assert_eq!(fs::read_to_string("/etc/hosts").unwrap(), before);
}

pub fn namespaces() {
    let mut lab = lab(&["a", "b"]);
    lab.wire(&wire("a:eth0 10.0.0.1/24", "b:eth0 10.0.0.2/24"))
        .unwrap();
    let links = |list: &str| (list.contains("eth0"), list.contains("dummy"));
    ip("link add dummy type veth peer name dummy1");
    // Programs of the node: they see its processes, interfaces and file system.
    assert_eq!(shell(&lab, "a", "cat /proc/1/comm"), "emud-node");
    assert_eq!(links(&shell(&lab, "a", "ls /sys/class/net")), (true, false));
    assert_eq!(links(&shell(&lab, "a", "cat /proc/net/dev")), (true, false));
    let here = std::env::current_dir().unwrap();
    assert_eq!(shell(&lab, "a", "pwd"), here.to_string_lossy());
    for name in ["net", "mnt", "pid"] {
        let link = format!("readlink /proc/self/ns/{name}");
        let own = stdout(&Command::new("sh").args(["-c", &link]).output().unwrap());
        let (a, b) = (shell(&lab, "a", &link), shell(&lab, "b", &link));
        assert!(a != own && b != own && a != b, "{name}: {a}, {b}, {own}");
    }
    // emud's threads: they only use the node's network, and can start further threads.
    let (found, list) = lab
        .within("a", || {
            let look = || {
                let mut nl = emud::netlink::Netlink::open().unwrap();
                let own = emud::netlink::identity().unwrap().inode;
                (own, nl.links().unwrap().len())
            };
            std::thread::spawn(look).join().unwrap()
        })
        .unwrap();
    assert_ne!(found, emud::netlink::identity().unwrap().inode);
    assert_eq!(list, 2, "lo and eth0");
    ip("link del dummy");
    assert!(lab.within("nobody", || ()).is_err());
    lab.close().unwrap();
}

/// An emulated link works in a node and ends with it.
pub fn emulated() {
    let mut lab = lab(&["a", "b"]);
    lab.wire(&wire("a:eth0 10.0.0.1/24", "b:eth0 10.0.0.2/24"))
        .unwrap();
    let profile = std::env::temp_dir().join(format!("emud-lab-{}.toml", std::process::id()));
    fs::write(&profile, "up.delay = \"30ms\"\n").unwrap();
    let emud = support::emud_path();
    let emud = emud.display();
    let attach = format!("{emud} attach eth0 --profile {}", profile.display());
    shell(&lab, "a", &attach);
    fs::remove_file(&profile).unwrap();
    let [least_ms, ..] = rtt_ms(&shell(&lab, "a", "ping -n -c 1 -W 2 10.0.0.2"));
    assert!(least_ms >= 30.0, "{least_ms} ms");
    shell(&lab, "a", &format!("{emud} show eth0"));
    lab.close().unwrap();
}

pub fn panics_come_through() {
    let lab = lab(&["a"]);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        lab.within("a", || panic!("on purpose"))
    }));
    assert!(ended.is_err());
    lab.close().unwrap();
}

pub fn ends_all() {
    let lab = lab(&["a", "b"]);
    let sleep = || {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]);
        command
    };
    // Threads may share a lab.
    let spawn = |node| lab.spawn(node, &mut sleep()).unwrap();
    let (mut inside, mut other) = std::thread::scope(|scope| {
        let inside = scope.spawn(|| spawn("a"));
        (inside.join().unwrap(), spawn("b"))
    });
    lab.end_all("a").unwrap();
    assert!(!inside.wait().unwrap().success());
    soon("only the first process and the shell", || {
        // No program except the shell: one that is ending may or may not be in the list.
        shell(&lab, "a", "echo /proc/[0-9]*")
            .split_whitespace()
            .count()
            == 2
    });
    assert!(other.try_wait().unwrap().is_none());
    // An unreachable destination is not a failure.
    lab.end_all("a").unwrap();
    lab.end_all("b").unwrap();
    other.wait().unwrap();
    lab.close().unwrap();
}

#[allow(clippy::zombie_processes)]
/// Running programs and unreaped zombies do not keep a node alive.
pub fn cleans_up_after_programs() {
    let lab = lab(&["a"]);
    let mut running = Command::new("sleep");
    let running = lab.spawn("a", running.arg("1000")).unwrap();
    let ended = lab.spawn("a", &mut Command::new("true")).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let start = std::time::Instant::now();
    drop((running, ended));
    lab.close().unwrap();
    // Both would have run for much longer.
    assert!(start.elapsed() < Duration::from_secs(30));
}
