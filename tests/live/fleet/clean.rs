// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing stays on any host, whatever dies.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use emud::fleet::LEASE;
use support::host::{parent, pids, soon};

use super::hosts::{HOSTS, Hosts, completed};

const LONG: &str = "[topology]\nkind = \"chain\"\nrouters = 4\n[topology.profile.link]\ndelay = \"2ms\"\n\
                    [node.client]\ncommand = \"ping -q -i 0.2 server\"\n";

/// Waits for the end of a run; returns its exit code and what it printed.
pub fn ended(hosts: &Hosts, run: &mut Child) -> (i32, String) {
    let since = Instant::now();
    while run.try_wait().unwrap().is_none() {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "the run does not end"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = fs::read_to_string(hosts.printed()).unwrap();
    println!("{text}");
    (run.wait().unwrap().code().unwrap_or(-1), text)
}

pub fn after_a_killed_agent() {
    let mut hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    assert!(!hosts.is_clean("b"));
    hosts.kill("b");
    hosts.all_clean(&["b"]);
    let (code, text) = ended(&hosts, &mut run);
    assert!(
        text.contains("invalid") && text.contains("  b: lost"),
        "{text}"
    );
    assert_eq!(code, 4, "{text}");
    hosts.all_clean(&HOSTS);
    // The next agent of that name takes part again.
    let again = hosts.agent("b", &[]);
    hosts.agents[1] = again;
    soon("b is back", || hosts.emud(&["status"]).contains("\nb "));
    let (code, text) = hosts.run(&LONG.replace("-i 0.2", "-c 3 -i 0.2"), &[]);
    completed(code, &text);
}

/// The part of host b.
fn part(hosts: &Hosts) -> u32 {
    let agent = hosts.agents[1].id();
    *pids(|pid| parent(pid) == Some(agent))
        .first()
        .expect("a part")
}

/// Its agent finds that it does not answer.
pub fn after_a_stopped_part() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    support::lab::sh(&format!("kill -STOP {}", part(&hosts)));
    let (code, text) = ended(&hosts, &mut run);
    assert!(
        text.contains("  b: its part ended unexpectedly (signal: 9"),
        "{text}"
    );
    assert_eq!(code, 4, "{text}");
    let said = fs::read_to_string(hosts.folder.path("agent.b")).unwrap();
    assert!(
        said.contains("its part did not answer for 10 s: it is killed"),
        "{said}"
    );
    hosts.all_clean(&HOSTS);
}

/// Its part ends by itself, and the others when its lease has expired.
pub fn after_a_stopped_agent() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let agent = hosts.agents[1].id();
    support::lab::sh(&format!("kill -STOP {agent}"));
    hosts.all_clean(&HOSTS);
    support::lab::sh(&format!("kill -CONT {agent}"));
    let (code, text) = ended(&hosts, &mut run);
    assert!(text.contains("  b: lost"), "{text}");
    assert_eq!(code, 4, "{text}");
    soon("b is back", || hosts.emud(&["status"]).contains("\nb "));
}

/// What was measured is lost with the only member of etcd, but not that a run was: it has a verdict and a log.
pub fn without_the_store() {
    let mut hosts = Hosts::new(1).agents(&[]);
    let log = hosts.folder.path("log");
    let mut run = hosts.start_with(LONG, &["--log", &log]);
    hosts.members[0].kill().unwrap();
    hosts.members[0].wait().unwrap();
    hosts.all_clean(&HOSTS);
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 4, "{text}");
    for host in HOSTS {
        let why =
            format!("  {host}: lost: what it measured was not read: the lease has expired: etcd");
        assert!(text.contains(&why), "{text}");
    }
    let log = fs::read_to_string(log).unwrap();
    let last = log.lines().last().unwrap();
    let line: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(line["type"], "fleet");
    assert_eq!(line["verdict"], "invalid");
}

/// An etcd that answers, but without the lease, is not one that was not reached.
pub fn after_a_revoked_lease() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let (_, leases) = hosts.etcdctl("lease list");
    let held = |lease: &&str| {
        let (_, keys) = hosts.etcdctl(&format!("lease timetolive {lease} --keys"));
        keys.contains("/agents/b")
    };
    let lease = leases.lines().skip(1).find(held).expect("the lease of b");
    assert!(hosts.etcdctl(&format!("lease revoke {lease}")).0);
    let (code, text) = ended(&hosts, &mut run);
    assert!(text.contains("  b: lost"), "{text}");
    assert_eq!(code, 4, "{text}");
    // The controller sees at once that the key is gone, b when it next renews the lease.
    let log = hosts.folder.path("agent.b");
    soon("b says why", || {
        let said = fs::read_to_string(&log).unwrap();
        said.contains("etcd has ended the lease, though it answers")
    });
    soon("b is back", || hosts.emud(&["status"]).contains("\nb "));
}

/// Its agent reports that at once.
pub fn after_a_killed_part() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let part = part(&hosts);
    let since = Instant::now();
    support::lab::sh(&format!("kill -KILL {part}"));
    let log = hosts.folder.path("agent.b");
    soon("its agent notices it", || {
        let said = fs::read_to_string(&log).unwrap();
        said.contains("its part ended unexpectedly (signal: 9")
    });
    let noticed = since.elapsed();
    let (code, text) = ended(&hosts, &mut run);
    println!(
        "    noticed after {noticed:?}, ended after {:?}",
        since.elapsed()
    );
    // No lease of 6 s has to expire.
    assert!(noticed < LEASE / 2, "{noticed:?}");
    assert!(
        text.contains("  b: its part ended unexpectedly (signal: 9"),
        "{text}"
    );
    assert_eq!(code, 4, "{text}");
    hosts.all_clean(&HOSTS);
}

pub fn after_a_killed_controller() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    run.kill().unwrap();
    run.wait().unwrap();
    hosts.all_clean(&HOSTS);
    assert!(hosts.emud(&["status"]).contains("no run"));
    // There is no verdict without it.
    for host in HOSTS {
        let said = fs::read_to_string(hosts.folder.path(&format!("agent.{host}"))).unwrap();
        assert!(
            said.contains(" is ended: its controller is gone"),
            "{host}: {said}"
        );
    }
}

/// A host without its cable: it cleans itself, and the others end.
pub fn after_a_partition() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let store = hosts.netns("s");
    support::host::ip(&format!("-n {store} link set vb down"));
    hosts.all_clean(&["b"]);
    let (code, text) = ended(&hosts, &mut run);
    assert!(text.contains("  b: lost"), "{text}");
    assert_eq!(code, 4);
    hosts.all_clean(&HOSTS);
    support::host::ip(&format!("-n {store} link set vb up"));
    soon("b is back", || hosts.emud(&["status"]).contains("\nb "));
}

/// One of three members is killed, the others go on.
pub fn with_a_killed_member() {
    for victim in 0..3 {
        let mut hosts = Hosts::new(3).agents(&[]);
        let mut run = hosts.start(&LONG.replace("-i 0.2", "-c 60 -i 0.1"));
        hosts.members[victim].kill().unwrap();
        hosts.members[victim].wait().unwrap();
        let (code, text) = ended(&hosts, &mut run);
        completed(code, &text);
        hosts.all_clean(&HOSTS);
    }
}

/// Time in s until the link of the node with this program ends by itself.
fn ends_in_s(hosts: &Hosts, host: &str, program: &str) -> f64 {
    let is =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|w| w == program.as_bytes());
    let pid = hosts.parts(host).into_iter().find(is).expect("the program");
    let emud = support::emud_path();
    let list = format!("nsenter -t {pid} -n {} list --json", emud.display());
    let list: serde_json::Value = serde_json::from_str(&support::lab::sh(&list)).unwrap();
    let ends = &list["interfaces"][0]["ends_in_s"];
    ends.as_f64().unwrap_or_else(|| panic!("no end: {list}"))
}

/// The last resort: the kernel ends a link whose end nobody moves on, here because all are stopped.
pub fn by_a_deadline_in_the_kernel() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = "[node.one]\nhost = \"a\"\ncommand = \"exec sleep 97\"\n[node.two]\nhost = \"b\"\n\
                [node.three]\nhost = \"c\"\n\
                [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n\
                [link.m]\nbetween = [\"two\", \"three\"]\nprofile.link.delay = \"5ms\"\n";
    let mut run = hosts.start(text);
    let left = || ends_in_s(&hosts, "a", "sleep\x0097\0");
    let wait = |seconds| std::thread::sleep(Duration::from_secs(seconds));
    let first = left();
    assert!((40.0..=60.0).contains(&first), "{first} s");
    // It is moved on every 8 to 10 s; 6 s are those of a busy machine.
    wait(24);
    let later = left();
    assert!(later > 44.0, "{first} s, then {later} s");
    let agent = hosts.agents[0].id();
    let all: Vec<_> = pids(|pid| pid == agent || parent(pid) == Some(agent))
        .iter()
        .map(u32::to_string)
        .collect();
    let all = all.join(" ");
    support::lab::sh(&format!("kill -STOP {all}"));
    wait(1);
    let stopped = left();
    wait(12);
    let last = left();
    println!("    {first} s, {later} s; stopped: {stopped} s, {last} s");
    assert!(last < stopped - 11.0, "{stopped} s, then {last} s");
    support::lab::sh(&format!("kill -CONT {all}"));
    let (code, text) = ended(&hosts, &mut run);
    assert!(text.contains("  a: lost"), "{text}");
    assert_eq!(code, 4);
    hosts.all_clean(&HOSTS);
}

pub fn after_stop() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    assert_eq!(hosts.emud(&["stop"]), "");
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 143, "{text}");
    assert!(
        text.contains("  `emud fleet stop` ended the run early\n")
            && text.contains("signal 15, by emud"),
        "{text}"
    );
    hosts.all_clean(&HOSTS);
    assert!(hosts.emud(&["stop"]).contains("no run is active"));
}

/// The controller hears of it when all parts have already reported: they did not complete by themselves.
pub fn after_stop_of_a_late_controller() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let controller = run.id();
    support::lab::sh(&format!("kill -STOP {controller}"));
    assert_eq!(hosts.emud(&["stop"]), "");
    soon("all parts have reported", || {
        let (_, keys) = hosts.etcdctl("get /emud/ --prefix --keys-only");
        keys.lines().filter(|key| key.ends_with("/result")).count() == HOSTS.len()
    });
    support::lab::sh(&format!("kill -CONT {controller}"));
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 143, "{text}");
    let reason = text.lines().find(|line| line.starts_with("  "));
    assert_eq!(
        reason,
        Some("  `emud fleet stop` ended the run early"),
        "{text}"
    );
    hosts.all_clean(&HOSTS);
}

pub fn one_run_at_a_time() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    // That of an earlier run.
    let log = hosts.folder.file("fleet.log", "kept\n");
    let (code, text) = hosts.run(LONG, &[]);
    assert_eq!(code, 75, "{text}");
    assert_eq!(fs::read_to_string(log).unwrap(), "kept\n");
    // The first one goes on.
    assert!(hosts.in_progress());
    hosts.emud(&["stop"]);
    ended(&hosts, &mut run);
    hosts.all_clean(&HOSTS);
}
