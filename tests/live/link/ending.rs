// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links that end by themselves.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use emud::datapath::ending::{self, Whose};
use emud::host::interface;
use emud::netlink::Netlink;
use support::lab::{Engine, Lab, Verdict, inside, sh, wait_until};

use super::restore::{assert_same, emuds, holders};

const LINK: &str = "[link]\ndelay = \"300ms\"\n";

/// A lease is 5 s, and this machine may be busy.
const SOON: Duration = Duration::from_secs(30);

fn is_over(lab: &Lab) -> bool {
    lab.show()["ends_in_s"] == 0.0
}

fn wait_for_the_end(lab: &Lab) {
    wait_until("ended", SOON, || is_over(lab));
}

/// No process is left, and no packet is delayed from then on.
pub fn after_a_time(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let mut checks = Verdict::default();
    lab.attach(engine, &lab.profile(LINK), &["--for", "3s"]);
    lab.ping("-q -c 1");
    checks.at_least("packets", 1.0, lab.shown("/up/counters/packets") as f64);
    for holder in holders(&lab) {
        sh(&format!("kill -9 {holder}"));
    }
    wait_for_the_end(&lab);
    let counted = |lab: &Lab| ["up", "down"].map(|d| lab.shown(&format!("/{d}/counters/packets")));
    let at_the_end = counted(&lab);
    let answers = lab.ping("-q -c 5 -i 0.01");
    checks.same("all came", true, answers.contains(" 0% packet loss"));
    checks.same("packets that the link saw", at_the_end, counted(&lab));
    checks.same("list", true, lab.emud(&["list"]).out.contains("\tENDED"));
    let set = lab.emud(&["set", "va", "loss=1%"]).expect(66);
    checks.same("set", true, set.err.contains("has ended by itself"));
    lab.detach();
    assert_same("detached", &before, &lab.snapshot());
    checks.end();
}

/// The next emud removes what is left, on this interface and on others.
pub fn removed_by_the_next(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let profile = lab.profile(LINK);
    lab.attach(engine, &profile, &["--for", "1ms"]);
    wait_for_the_end(&lab);
    let again = lab.attach(engine, &profile, &[]);
    assert!(
        again.out.contains("which had ended by itself"),
        "{}",
        again.out
    );
    assert!(!is_over(&lab), "the second has no end");
    lab.detach();
    assert_same("attached again", &before, &lab.snapshot());

    lab.in_a("ip link add other type veth peer name its-peer");
    let before = lab.snapshot();
    lab.attach(engine, &profile, &["--for", "1ms"]);
    wait_for_the_end(&lab);
    let other = ["attach", "other", "-p", &profile, "--engine", engine.name()];
    let said = lab.emud(&other).expect(0);
    assert!(said.out.contains("removed the link of va"), "{}", said.out);
    lab.emud(&["detach", "other"]).expect(0);
    assert_same("another interface", &before, &lab.snapshot());
}

/// With a process, and soon after the one that renews it for that process.
pub fn with_a_process(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let profile = lab.profile(LINK);
    let mut process = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    let pid = process.id().to_string();
    lab.attach(engine, &profile, &["--while-pid", &pid]);
    // Needs another classifier; the link is the same.
    lab.emud(&["set", "va", "duplicate=1%"]).expect(0);
    // Longer than a lease.
    thread::sleep(Duration::from_millis(5500));
    assert!(!is_over(&lab), "ended before its process");
    let shown = lab.show();
    assert_eq!(
        shown["tampered"].as_array().map(Vec::len),
        Some(0),
        "{shown}"
    );
    for renewer in emuds(&lab, "renew") {
        sh(&format!("kill -9 {renewer}"));
    }
    wait_for_the_end(&lab);
    lab.detach();
    assert_same("renewed no more", &before, &lab.snapshot());

    lab.attach(engine, &profile, &["--while-pid", &pid]);
    process.kill().expect("kill sleep");
    process.wait().expect("its end");
    // A link is in no list as soon as its filters are gone; clsact follows.
    wait_until("removed", SOON, || {
        lab.emud(&["list"]).out.is_empty() && emuds(&lab, "renew").is_empty()
    });
    assert_same("the process ended", &before, &lab.snapshot());
    let gone = ["attach", "va", "-p", &profile, "--while-pid", &pid];
    let said = lab.emud(&gone).expect(66);
    assert!(said.err.contains("there is no process"), "{}", said.err);
    assert_same("no such process", &before, &lab.snapshot());
}

/// Another emud process may hold the lock for longer than usual: the link lives as long as its process.
pub fn while_another_is_busy(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let pid = std::process::id().to_string();
    lab.attach(engine, &lab.profile(LINK), &["--while-pid", &pid]);
    let other = inside(&lab.a, || {
        let va = Netlink::open().unwrap().link("va").unwrap().index;
        interface::lock(va, Duration::from_secs(10)).unwrap()
    });
    let other = other.join().unwrap();
    thread::sleep(Duration::from_millis(3500));
    drop(other);
    thread::sleep(Duration::from_secs(6));
    assert!(!is_over(&lab), "ended before its process");
    lab.detach();
    assert_same("detached", &before, &lab.snapshot());
}

/// A different end, sooner or later, also of a link that ended with a process; not of one that has ended.
pub fn changed(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let profile = lab.profile(LINK);
    let left = |lab: &Lab| lab.show()["ends_in_s"].as_f64().expect("an end");
    lab.attach(engine, &profile, &[]);
    lab.emud(&["set", "va", "loss=0.1%", "--for", "1h"])
        .expect(0);
    assert!((3500.0..=3600.0).contains(&left(&lab)), "{}", left(&lab));
    lab.emud(&["set", "va", "--for", "1ms"]).expect(0);
    wait_for_the_end(&lab);
    let late = lab.emud(&["set", "va", "--for", "1h"]).expect(66);
    assert!(late.err.contains("has ended by itself"), "{}", late.err);
    lab.detach();
    assert_same("ended", &before, &lab.snapshot());

    let mut process = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    lab.attach(
        engine,
        &profile,
        &["--while-pid", &process.id().to_string()],
    );
    // The arguments by attach of the process that renews.
    let renewer = emuds(&lab, "renew").pop().expect("it runs");
    let arguments = std::fs::read_to_string(format!("/proc/{renewer}/cmdline")).expect("cmdline");
    lab.emud(&["set", "va", "--for", "1h"]).expect(0);
    wait_until("renewed no more", SOON, || emuds(&lab, "renew").is_empty());
    // The same process, if it had begun late: on a busy machine it took the new end for its lease.
    let whose = Whose::find(process.id() as i32).expect("sleep");
    let late = inside(&lab.a, move || {
        let numbers: Vec<u64> = arguments
            .split('\0')
            .filter_map(|n| n.parse().ok())
            .collect();
        ending::renew(numbers[0] as u32, numbers[1] as u32, numbers[2], &whose)
    });
    wait_until("a late one", SOON, || late.is_finished());
    late.join().expect("no panic").expect("nothing to do");
    assert!(left(&lab) > 3500.0, "{}", left(&lab));
    process.kill().expect("kill sleep");
    process.wait().expect("its end");
    thread::sleep(Duration::from_secs(2));
    assert!(left(&lab) > 3500.0, "{}", left(&lab));
    lab.detach();
    assert_same("no process", &before, &lab.snapshot());
}
