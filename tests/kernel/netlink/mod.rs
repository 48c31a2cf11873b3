// SPDX-License-Identifier: MIT OR Apache-2.0
//! The netlink layer on this kernel, in new network namespaces, judged by the output of `tc`, `ip`
//! and `ethtool`. Needs root.

mod drops;
mod filters;
mod links;
mod notices;
mod restore;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use emud::netlink::{self, *};
use support::site::unique;

/// A network namespace with a veth, v0 and v1; the calling thread is moved into it.
struct Space {
    name: String,
    home: File,
}

impl Space {
    fn new() -> Self {
        let name = unique("netlink");
        let home = File::open("/proc/thread-self/ns/net").unwrap();
        shell(&format!("ip netns add {name}"));
        let space = Self { name, home };
        netlink::enter(&space.name).unwrap();
        shell("ip link set lo up");
        shell("ip link add v0 numtxqueues 4 type veth peer name v1");
        // IPv6 would send packets, and tc prints a counter.
        shell("for v in v0 v1; do echo 1 >/proc/sys/net/ipv6/conf/$v/disable_ipv6; done");
        shell("ip link set v0 up; ip link set v1 up");
        space
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let home = format!("/proc/self/fd/{}", self.home.as_raw_fd());
        netlink::enter(&home).unwrap();
        shell(&format!("ip netns del {}", self.name));
    }
}

/// In the network namespace of the thread; fails the test if a command fails.
fn shell(script: &str) -> String {
    let out = Command::new("sh").args(["-ec", script]).output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{script}: {err}");
    String::from_utf8(out.stdout).unwrap()
}

fn index(nl: &mut Netlink, name: &str) -> u32 {
    nl.link(name).unwrap().index
}
