// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud reproduce` on a real kernel: its figures, and what remains of it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::runs::{Folder, WATCHED};
use support::validator::assert_valid;
use support::{emud_path, guest};

/// Contention is watched, but no load of a minute reaches the threshold: these tests are about the
/// figures. A hypervisor that takes the CPUs makes a run invalid, and there is another one.
fn reproduce(folder: &Folder, name: &str) -> Command {
    let mut emud = Command::new(emud_path());
    let monitor = folder.file("monitor.toml", WATCHED);
    emud.args([
        "reproduce",
        "--quick",
        "--json",
        name,
        "--monitor",
        &monitor,
        "--attempts",
        "8",
    ]);
    emud
}

fn agrees(name: &str) {
    figures(name, &[]);
}

/// The published experiment, each figure within its tolerance or explained.
fn figures(name: &str, more: &[&str]) -> Vec<Value> {
    let folder = Folder::new();
    let output = reproduce(&folder, name).args(more).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{err}"));
    // Guests have no validator.
    if !guest() {
        assert_valid("reproduce", &document);
    }
    let figures = document["experiments"][0]["figures"].as_array().unwrap();
    for figure in figures {
        println!(
            "    {}: {} {}, {}",
            figure["figure"], figure["measured"], figure["unit"], figure["verdict"]
        );
    }
    assert_eq!(output.status.code(), Some(0), "{err}");
    figures.clone()
}

pub fn chain() {
    agrees("m-chain");
}

/// Beside stock netem, whose TCP is faster with super-packets: it counts the overhead of a frame once for one.
pub fn compared() {
    let beside = |figures: &[Value]| {
        let all = figures.iter();
        all.filter(|figure| figure["netem"].is_number()).count()
    };
    let scale = figures("t-scale", &["--netem"]);
    assert!(beside(&scale) > 0, "{scale:?}");
    for more in [&["--netem"][..], &["--netem", "--no-gso"]] {
        let ring = figures("s-ring", more);
        // UDP in one and in both directions, TCP and its fairness, of two rings.
        assert_eq!(beside(&ring), 8, "{more:?}");
        for test in ["p of Z", "p of ANOVA"] {
            let name = |figure: &&Value| figure["figure"].as_str().unwrap().contains(test);
            assert_eq!(ring.iter().filter(name).count(), 2, "{more:?}, {test}");
        }
    }
}

pub fn contention() {
    agrees("m-contention");
}

pub fn choke() {
    agrees("s-choke");
}

pub fn diffserv() {
    agrees("c-diffserv");
}

pub fn links() {
    agrees("t-links");
}

pub fn manet() {
    agrees("m-manet");
}

pub fn overhead() {
    agrees("s-overhead");
}

pub fn peers() {
    agrees("t-p2p");
}

pub fn ring() {
    agrees("s-ring");
}

pub fn scale() {
    agrees("t-scale");
}

pub fn snake() {
    agrees("s-snake");
}

pub fn star() {
    agrees("t-star");
}

pub fn switch() {
    agrees("m-switch");
}

pub fn tree() {
    agrees("t-tree");
}

pub fn updates() {
    agrees("m-updates");
}

pub fn window() {
    agrees("s-window");
}

pub fn loss() {
    agrees("v-loss");
}

pub fn latency() {
    agrees("v-latency");
}

/// The kernel removes the network, and the log was only in memory: the caller checks what remains.
pub fn killed() {
    let folder = Folder::new();
    let mut emud = reproduce(&folder, "t-tree");
    let mut emud = emud
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut err = BufReader::new(emud.stderr.take().unwrap());
    err.read_line(&mut line).unwrap();
    assert!(line.contains("all greedy"), "{line}");
    sleep(Duration::from_millis(1500));
    emud.kill().unwrap();
    emud.wait().unwrap();
    // All that it started ends with its namespaces; what holds standard error would keep it open.
    while err.read_line(&mut line).unwrap() > 0 {}
}
