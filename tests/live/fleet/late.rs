// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use support::host::{parent, pids, soon};
use support::lab::sh;

use super::clean::ended;
use super::hosts::{Hosts, completed};

/// A run on hosts a and c, of which a is built when the file exists. Its programs write to the file `ran`.
fn gated(hosts: &Hosts) -> (String, Child) {
    let gate = hosts.folder.path("gate");
    let ran = hosts.folder.file("ran", "");
    // Programs run as nobody.
    fs::set_permissions(&ran, Permissions::from_mode(0o666)).unwrap();
    let text = format!(
        "ready-within = \"60s\"\n\
         [node.one]\nhost = \"a\"\nprepare = \"until [ -e {gate} ]; do sleep 0.1; done\"\n\
         command = \"echo a >>{ran}; sleep 1\"\n\
         [node.two]\nhost = \"c\"\ncommand = \"echo c >>{ran}; sleep 1\"\n\
         [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n"
    );
    let run = hosts.spawn(&text, &["--verdict-first"]);
    (gate, run)
}

/// Whether this is the shell that waits for the file.
fn waits(pid: u32, gate: &str) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).contains(&format!("until [ -e {gate} ]"))
}

/// The number of hosts whose line of the status ends so.
fn in_state(hosts: &Hosts, state: &str) -> usize {
    let status = hosts.emud(&["status"]);
    status.lines().filter(|line| line.ends_with(state)).count()
}

/// The process of host c's part is stopped when it has built it, until after the start. The others
/// begin in time; that c did not is in the verdict.
pub fn start_is_named() {
    let hosts = Hosts::new(1).agents(&[]);
    let (gate, mut run) = gated(&hosts);
    soon("c is built", || in_state(&hosts, " built") == 1);
    // Its agent kills a part that is stopped for 10 s.
    soon("a prepares", || !pids(|pid| waits(pid, &gate)).is_empty());
    let agent = hosts.agents[2].id();
    let part = *pids(|pid| parent(pid) == Some(agent))
        .first()
        .expect("a part");
    sh(&format!("kill -STOP {part}"));
    fs::write(&gate, "").unwrap();
    soon("the start is written", || in_state(&hosts, " running") == 2);
    // It lies 2 s ahead.
    sleep(Duration::from_millis(2500));
    sh(&format!("kill -CONT {part}"));
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 4, "{text}");
    let late = |host: &str| text.contains(&format!("  {host}: the measured phase began "));
    assert!(late("c") && !late("a"), "{text}");
}

/// The controller reads the last report 3 s late, as when etcd elects a leader just then: the start
/// still lies ahead, on all hosts.
pub fn reports_do_not_delay_the_start() {
    let hosts = Hosts::new(1).agents(&[]);
    let (gate, mut run) = gated(&hosts);
    soon("c is built", || in_state(&hosts, " built") == 1);
    // It has little left to do then.
    soon("a prepares", || !pids(|pid| waits(pid, &gate)).is_empty());
    // `ip netns exec` becomes the command.
    let controller = run.id();
    sh(&format!("kill -STOP {controller}"));
    fs::write(&gate, "").unwrap();
    soon("a is built", || in_state(&hosts, " built") == 2);
    // Its lease lasts 6 s.
    sleep(Duration::from_secs(3));
    sh(&format!("kill -CONT {controller}"));
    let (code, text) = ended(&hosts, &mut run);
    completed(code, &text);
    let ran = fs::read_to_string(hosts.folder.path("ran")).unwrap();
    assert_eq!(ran.len(), "a\nc\n".len(), "{ran}");
}

/// Host c has died when the start is written, but its lease is there for some seconds more: no program
/// starts on the other one.
pub fn a_host_that_died_before_the_start() {
    let mut hosts = Hosts::new(1).agents(&[]);
    let (gate, mut run) = gated(&hosts);
    soon("c is built", || in_state(&hosts, " built") == 1);
    soon("a prepares", || !pids(|pid| waits(pid, &gate)).is_empty());
    hosts.kill("c");
    fs::write(&gate, "").unwrap();
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 66, "{text}");
    let why = "c did not confirm the start: no program was started on any host";
    assert!(text.contains(why), "{text}");
    let ran = fs::read_to_string(hosts.folder.path("ran")).unwrap();
    assert_eq!(ran, "", "{text}");
    hosts.all_clean(&["a", "c"]);
}

/// Nothing has run: that is no result.
pub fn stopped_before_the_start() {
    for wanted in [69, 130] {
        let hosts = Hosts::new(1).agents(&[]);
        let (_, mut run) = gated(&hosts);
        soon("c is built", || in_state(&hosts, " built") == 1);
        match wanted {
            69 => assert_eq!(hosts.emud(&["stop"]), ""),
            // `ip netns exec` becomes the command.
            _ => drop(sh(&format!("kill -INT {}", run.id()))),
        }
        let (code, text) = ended(&hosts, &mut run);
        assert_eq!(code, wanted, "{text}");
        assert!(text.contains("stopped before the start"), "{text}");
        hosts.all_clean(&["a", "c"]);
    }
}

/// The start is written, before and after the agents have confirmed it.
pub fn stopped_just_before_the_start() {
    for after_ms in [0, 1000] {
        let hosts = Hosts::new(1).agents(&[]);
        let (gate, mut run) = gated(&hosts);
        soon("c is built", || in_state(&hosts, " built") == 1);
        fs::write(&gate, "").unwrap();
        soon("the start is written", || in_state(&hosts, " running") == 2);
        sleep(Duration::from_millis(after_ms));
        assert_eq!(hosts.emud(&["stop"]), "");
        let (code, text) = ended(&hosts, &mut run);
        assert_eq!(code, 69, "after {after_ms} ms: {text}");
        assert!(text.contains("stopped before the start"), "{text}");
        let ran = fs::read_to_string(hosts.folder.path("ran")).unwrap();
        assert_eq!(ran, "", "after {after_ms} ms: {text}");
        hosts.all_clean(&["a", "c"]);
    }
}
