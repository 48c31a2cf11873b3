// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing stays on any host, whatever dies.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use support::host::soon;

use super::hosts::{HOSTS, Hosts};

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
    assert!([0, 3].contains(&code), "{text}");
}

pub fn after_a_killed_controller() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    run.kill().unwrap();
    run.wait().unwrap();
    hosts.all_clean(&HOSTS);
    assert!(hosts.emud(&["status"]).contains("no run"));
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
        assert!([0, 3].contains(&code), "{text}");
        hosts.all_clean(&HOSTS);
    }
}

pub fn after_stop() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    assert_eq!(hosts.emud(&["stop"]), "");
    let (_, text) = ended(&hosts, &mut run);
    assert!(
        text.contains("the run was stopped") && text.contains("signal 15, by emud"),
        "{text}"
    );
    hosts.all_clean(&HOSTS);
    assert!(hosts.emud(&["stop"]).contains("no run is active"));
}

pub fn one_run_at_a_time() {
    let hosts = Hosts::new(1).agents(&[]);
    let mut run = hosts.start(LONG);
    let (code, text) = hosts.run(LONG, &[]);
    assert_eq!(code, 75, "{text}");
    // The first one goes on.
    assert!(hosts.in_progress());
    hosts.emud(&["stop"]);
    ended(&hosts, &mut run);
    hosts.all_clean(&HOSTS);
}
