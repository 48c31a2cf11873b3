// SPDX-License-Identifier: MIT OR Apache-2.0
//! No alarm without contention: no load, and loads at 80 % of a threshold.

use std::thread::sleep;
use std::time::Duration;

use super::{bandwidth, cases};
use support::lab::Verdict;
use support::load::{COMMAND, Load};
use support::site::{Scratch, SlowDisk, Swap, Wires};
use support::watch::{Ended, Line, SEEN, Watch};
use support::witness::Witness;
use support::{clock, full, guest};

const MS: u64 = 1_000_000;

/// Duration of a load at 80 %.
fn dwell() -> Duration {
    Duration::from_secs(if full() { 60 } else { 5 })
}

/// Nothing was seen.
fn clean(verdict: &mut Verdict, what: &str, resource: &str, ended: &Ended) {
    let alarms = ended.of("alarm");
    let told = alarms.iter().filter(|alarm| alarm.resource() == resource);
    verdict.same(&format!("{what}: alarms of {resource}"), 0, told.count());
    let code = if alarms.is_empty() { 0 } else { SEEN };
    verdict.same(&format!("{what}: exit code"), code, ended.code);
    verdict.same(
        &format!("{what}: verdict on {resource}"),
        "clean",
        ended.verdict_on(resource),
    );
}

/// A machine with more than the load (paging when it has swap, other tasks for the CPU) is rightly
/// reported; an alarm in which only the load has a share is false.
///
/// `overran`: how often the load by its own account exceeded its limit.
fn no_fault_of_ours(
    verdict: &mut Verdict,
    what: &str,
    resource: &str,
    overran: u64,
    ended: &Ended,
) {
    let (ours, others): (Vec<_>, Vec<_>) =
        (ended.of("alarm").into_iter()).partition(|alarm| alarm.share_of(COMMAND) > 0.999);
    for alarm in &others {
        println!("    of others: {}", alarm.json["shares"]);
    }
    for alarm in &ours {
        println!("    {}", alarm.json);
    }
    let (told, most) = (ours.len() as f64, overran as f64);
    verdict.at_most(&format!("{what}: alarms of the load"), most, told);
    if others.is_empty() && overran == 0 {
        clean(verdict, what, resource, ended);
    }
}

/// All criteria as they are by default.
pub fn idle() {
    let mut verdict = Verdict::default();
    let duration = match (full(), guest()) {
        (true, false) => "5min",
        (true, true) => "1min",
        _ => "20s",
    };
    let options = ["--duration", duration, "--group-by", "command"];
    let watch = Watch::start(&[&options[..], &["--limit", "1000"]].concat());
    // In a guest, where nothing else runs, the counters confirm no alarm.
    let witness = (!guest()).then(Witness::start);
    let ended = watch.wait(Duration::from_secs(700));
    let right = |alarm: &&Line| {
        println!("    {}", alarm.json);
        witness.as_ref().is_some_and(|w| w.confirms(alarm))
    };
    let (right, wrong): (Vec<_>, Vec<_>) = ended.of("alarm").into_iter().partition(right);
    println!(
        "    {} alarms that the kernel's counters bear out",
        right.len()
    );
    verdict.same(&format!("{duration}: alarms besides"), 0, wrong.len());
    for resource in ["cpu", "network", "memory", "disk"] {
        if right.iter().all(|alarm| alarm.resource() != resource) {
            clean(&mut verdict, duration, resource, &ended);
        }
    }
    verdict.same("reason", "duration", ended.end().text("/reason"));
    verdict.end();
}

/// Bursts of 80 % of theta.
pub fn cpu() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    for &(theta_ms, policy) in cases(&[(200, "other"), (50, "fifo")]) {
        let theta = format!("{theta_ms}ms");
        let options = [
            "--only",
            "cpu",
            "--cpu-theta",
            &theta,
            "--group-by",
            "command",
        ];
        let watch = Watch::alone(&[&options[..], &["--limit", "1000"]].concat());
        let mut load = Load::start("cpu", &[("cpu", &cpu), ("policy", policy)]);
        // To start a process is work, too.
        sleep(Duration::from_millis(100));
        let until = clock::now() + dwell().as_nanos() as u64;
        let mut overran = 0;
        while clock::now() < until {
            let spun = load.ask(&format!("spin {}", theta_ms * MS * 8 / 10));
            // A machine of which others take a part may not stop it in time.
            overran += u64::from(spun[1] - spun[0] > theta_ms * MS * 9 / 10);
            sleep(Duration::from_millis(theta_ms / 5));
        }
        let what = format!("{theta}, {policy}");
        no_fault_of_ours(&mut verdict, &what, "cpu", overran, &watch.end());
    }
    verdict.end();
}

/// Both classes at 80 %, at the same time.
pub fn network() {
    let mut verdict = Verdict::default();
    let (external, internal) = (bandwidth(490_000_000), bandwidth(1_000_000_000));
    let (far, near) = (Wires::external("mphys"), Wires::new(&["mveth"]));
    let watch = Watch::alone(&[
        "--only",
        "network",
        "--class",
        "mphys=external",
        "--external",
        &format!("{external}bit/s"),
        "--internal",
        &format!("{internal}bit/s"),
    ]);
    for (wires, threshold) in [(far, external), (near, internal)] {
        let cpu = clock::spare_cpu();
        // Never faster than requested, whatever happens to the load; in a guest time is exact.
        let paced = [("pace", "spin"), ("cpu", cpu.as_str())];
        let options = if clock::cpus() > 1 { &paced[..] } else { &[] };
        let mut load = wires.load(options);
        load.ask(&format!("rate {}", threshold / 10 * 8));
        sleep(dwell());
        let most = load.ask("most")[0];
        verdict.at_least(
            "the load's own account, of the threshold",
            0.75,
            most as f64 / (threshold as f64 / 800.0),
        );
    }
    clean(&mut verdict, "80 %", "network", &watch.end());
    verdict.end();
}

/// 40 of 50 pages in any window.
pub fn memory() {
    const WINDOW: Duration = Duration::from_millis(100);
    let mut verdict = Verdict::default();
    let _swap = Swap::new(64);
    let watch = Watch::alone(&[
        "--only",
        "memory",
        "--memory-window",
        "100ms",
        "--page-ins",
        "50",
        "--page-outs",
        "50",
        "--group-by",
        "command",
        "--limit",
        "1000",
    ]);
    let mut load = Load::start("memory", &[("cpu", &clock::spare_cpu())]);
    load.say("map 40");
    load.hear();
    let until = clock::now() + dwell().as_nanos() as u64;
    while clock::now() < until {
        let moved = ["out 40", "in 40"].map(|command| load.ask(command)[3]);
        if moved.iter().any(|&pages| pages < 40) {
            verdict.same("pages out and in", [40, 40], moved);
        }
        sleep(WINDOW + Duration::from_millis(10));
    }
    no_fault_of_ours(&mut verdict, "80 %", "memory", 0, &watch.end());
    verdict.end();
}

/// A program's file, read from its disk page by page, is not swap.
pub fn demand_paging() {
    let mut verdict = Verdict::default();
    let scratch = Scratch::new();
    let file = scratch.path("file");
    // In a guest all is memory already; there the fault is a minor one, and the test says little.
    std::fs::write(&file, vec![7u8; 8 << 20]).expect("a file");
    support::lab::sh("sync");
    let _swap = Swap::new(64);
    let watch = Watch::alone(&[
        "--only",
        "memory",
        "--group-by",
        "command",
        "--limit",
        "1000",
    ]);
    let mut load = Load::start("memory", &[]);
    let faults = load.ask(&format!("map-file {file}"))[0];
    println!("    {faults} major faults");
    if !guest() {
        verdict.same("files were paged in", true, faults > 0);
    }
    no_fault_of_ours(&mut verdict, "demand paging", "memory", 0, &watch.end());
    verdict.end();
}

/// Single reads of 80 % of theta.
pub fn disk() {
    let mut verdict = Verdict::default();
    for &theta_ms in cases(&[100, 40]) {
        let disk = SlowDisk::new(Duration::from_millis(theta_ms * 8 / 10));
        let theta = format!("{theta_ms}ms");
        let options = ["--only", "disk", "--disk-theta", &theta];
        let watch = Watch::alone(&[&options[..], &["--group-by", "command"]].concat());
        let mut load = disk.load(&[("len", "4096")]);
        let count = dwell().as_millis() as u64 / theta_ms;
        let theta_ns = theta_ms * MS;
        let long = load.ask(&format!("duty {count} {} {theta_ns}", theta_ns / 5))[0];
        no_fault_of_ours(&mut verdict, &theta, "disk", long, &watch.end());
    }
    verdict.end();
}
