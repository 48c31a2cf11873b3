// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network between the hosts drops the port of the tunnels, or changes during a run.

use std::thread::sleep;
use std::time::Duration;

use super::clean::ended;
use super::hosts::{HOSTS, Hosts, completed};

/// Host b has nothing to do with it.
fn scenario(seconds: u32) -> String {
    format!(
        "[node.one]\nhost = \"a\"\ncommand = \"sleep {seconds}\"\n[node.two]\nhost = \"c\"\n\
         [node.three]\nhost = \"b\"\n\
         [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n\
         [link.m]\nbetween = [\"one\", \"three\"]\nprofile.link.delay = \"5ms\"\n"
    )
}

/// A profile for the packets of tunnels only: etcd and the clocks have other ports.
fn of_tunnels(link: &str) -> String {
    format!(
        "[links.tunnels]\n{link}\n[[rule]]\n\
         match = {{ protocol = \"udp\", destination-port = 4789 }}\nlink = \"tunnels\"\n"
    )
}

pub fn dropped_before_the_start() {
    let hosts = Hosts::new(1).agents(&[]);
    hosts.attach("c", &of_tunnels("loss = \"100%\""));
    let (code, said) = hosts.run(&scenario(1), &[]);
    assert_eq!(code, 69, "{said}");
    for what in [
        "a: the tunnel between a (192.0.2.1) and c (192.0.2.3): no packet comes back",
        "UDP port 4789",
        "--port",
    ] {
        assert!(said.contains(what), "no {what:?}: {said}");
    }
    // It proves what the links use.
    let (code, said) = hosts.run(&scenario(1), &["--port", "4790"]);
    completed(code, &said);
    // A device of the profile does not count.
    hosts.in_host("c", &["detach", "eth0"]);
    hosts.all_clean(&HOSTS);
}

/// For 3 s while the programs run, or until the end.
pub fn changed_during_the_run() {
    let hosts = Hosts::new(1).agents(&[]);
    for (link, why, seconds) in [
        ("loss = \"50%\"", " packets were lost", 3),
        (
            "delay = \"1ms\"",
            " before the start; --tolerance is 100us one way",
            0,
        ),
    ] {
        let mut run = hosts.start_with(&scenario(8), &["--verdict-first"]);
        hosts.attach("c", &of_tunnels(link));
        let detach = || hosts.in_host("c", &["detach", "eth0"]);
        if seconds > 0 {
            sleep(Duration::from_secs(seconds));
            detach();
        }
        let (code, said) = ended(&hosts, &mut run);
        assert_eq!(code, 4, "{said}");
        let lines = || {
            said.lines()
                .filter(|line| line.contains(": the tunnel to "))
        };
        let named = |line: &str| {
            line.starts_with("  a: the tunnel to c (UDP port 4789): ") && line.ends_with(why)
        };
        assert!(lines().count() == 1 && lines().all(named), "{said}");
        if seconds == 0 {
            detach();
        }
        hosts.all_clean(&HOSTS);
    }
}
