// SPDX-License-Identifier: MIT OR Apache-2.0
//! A contention episode has a beginning and an end: both are reported, with the right times.

use std::thread::sleep;
use std::time::Duration;

use super::bandwidth;
use support::lab::Verdict;
use support::load::{Load, numbers};
use support::site::{SlowDisk, Swap, Wires};
use support::stats::median;
use support::watch::{Line, Watch};
use support::{clock, guest};

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(3);
const TRIALS: u32 = 7;

/// Distance of the reported times from the real ones, ms.
#[derive(Default)]
struct Errors {
    since: Vec<f64>,
    until: Vec<f64>,
}

impl Errors {
    /// An alarm and its end compared with the beginning and the end of contention.
    fn add(
        &mut self,
        verdict: &mut Verdict,
        watch: &Watch,
        alarm: Option<Line>,
        planted: (u64, u64),
    ) {
        let Some(alarm) = alarm else {
            verdict.same("an alarm came", true, false);
            return;
        };
        let Some(clear) = watch.clear(&alarm, PATIENCE) else {
            verdict.same("its end came", true, false);
            return;
        };
        let number = |name: &str| clear.number(name);
        let (since, until) = (number("/since_mono_ns"), number("/until_mono_ns"));
        let same = |a: &Line, b: &Line, name: &str| a.json[name] == b.json[name];
        if !same(&alarm, &clear, "resource") || !same(&alarm, &clear, "scope") {
            verdict.same("alarm and end are of one thing", true, false);
        }
        if number("/duration_ns") != until - since || clear.mono_ns() < until {
            verdict.same("the times agree", true, false);
        }
        let error = |told: u64, planted: u64| (told as f64 - planted as f64) / MS as f64;
        self.since.push(error(since, planted.0));
        self.until.push(error(until, planted.1));
    }

    /// In a guest the median counts. On a machine that others use, which may have been busy before
    /// the load and after it, the best quarter. A criterion may detect the end later by this much.
    fn judge(&self, verdict: &mut Verdict, what: &str, late_ms: f64) {
        println!("    {what}: since off by {:.3?} ms", self.since);
        println!("    {what}: until off by {:.3?} ms", self.until);
        if !self.since.is_empty() {
            let (since, until) = (typical(&self.since), typical(&self.until));
            verdict.near(&format!("{what}: since, ms off"), 0.0, since, 1.0);
            verdict.at_least(&format!("{what}: until, ms off"), -1.0, until);
            verdict.at_most(&format!("{what}: until, ms off"), 1.0 + late_ms, until);
        }
    }
}

fn typical(errors: &[f64]) -> f64 {
    if guest() {
        return median(errors);
    }
    let mut by_size = errors.to_vec();
    by_size.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    by_size[errors.len() / 4]
}

/// Alarms and ends pair up, of those that the test is about.
fn paired(verdict: &mut Verdict, watch: Watch, about: impl Fn(&Line) -> bool) {
    // Any window is over by then.
    sleep(Duration::from_millis(100));
    let ended = watch.end();
    let episodes = |kind| -> Vec<u64> {
        let of = ended.of(kind);
        let of = of.iter().filter(|line| about(line));
        of.map(|line| line.number("/episode")).collect()
    };
    let (mut begun, mut over) = (episodes("alarm"), episodes("clear"));
    begun.sort_unstable();
    over.sort_unstable();
    verdict.same("as many ends as alarms", &begun, &over);
    begun.dedup();
    verdict.same("each episode has its number", over.len(), begun.len());
}

pub fn cpu() {
    let mut verdict = Verdict::default();
    let mut errors = Errors::default();
    let cpu = clock::spare_cpu();
    let watch = Watch::alone(&["--only", "cpu", "--cpu-theta", "60ms", "--limit", "1000"]);
    let mut load = Load::start("cpu", &[("cpu", &cpu)]);
    for trial in 0..TRIALS {
        sleep(Duration::from_millis(50));
        let mark = watch.mark();
        let spun = load.ask(&format!("spin {}", u64::from(100 + 40 * trial) * MS));
        let alarm = watch.next(mark, PATIENCE, |line| line.is_busy_cpu(&cpu));
        errors.add(&mut verdict, &watch, alarm, (spun[0], spun[1]));
    }
    errors.judge(&mut verdict, "cpu", 0.0);
    // Ends its last episode, whatever else runs there.
    drop(load);
    let here = |line: &Line| line.json["scope"]["cpu"].as_u64() == cpu.parse().ok();
    paired(&mut verdict, watch, here);
    verdict.end();
}

pub fn disk() {
    let mut verdict = Verdict::default();
    let mut errors = Errors::default();
    let disk = SlowDisk::new(Duration::from_millis(150));
    let watch = Watch::alone(&["--only", "disk", "--disk-theta", "60ms", "--limit", "1000"]);
    let mut load = disk.load(&[("len", "4096")]);
    for _ in 0..TRIALS {
        sleep(Duration::from_millis(20));
        let mark = watch.mark();
        load.say("one");
        let alarm = watch.alarm(mark, "disk", PATIENCE);
        let read = numbers(&load.hear());
        errors.add(&mut verdict, &watch, alarm, (read[0], read[1]));
    }
    errors.judge(&mut verdict, "disk", 0.0);
    paired(&mut verdict, watch, |_| true);
    verdict.end();
}

/// Twice the threshold for a known time, then silence or a fifth of the threshold. An episode is
/// from the first to the last moment at which the window was above the threshold: the load begins
/// within the first such window, and its last frames are in the window for another (1 -
/// threshold/rate) of it, or less.
pub fn network() {
    let mut verdict = Verdict::default();
    let wires = Wires::external("mphys");
    let window_ms = 20;
    let threshold = bandwidth(40_000_000);
    let watch = Watch::alone(&[
        "--only",
        "network",
        "--class",
        "mphys=external",
        "--external",
        &format!("{threshold}bit/s"),
        "--network-window",
        &format!("{window_ms}ms"),
        "--limit",
        "1000",
    ]);
    let cpu = clock::spare_cpu();
    let steady = [("pace", "spin"), ("cpu", &*cpu), ("policy", "fifo")];
    let mut load = wires.load(if clock::cpus() > 1 { &steady } else { &[] });
    for (after, name) in [(0, "then silence"), (threshold / 5, "then a fifth")] {
        let mut errors = Errors::default();
        for trial in 0..TRIALS {
            sleep(Duration::from_millis(100));
            let mark = watch.mark();
            let begin = load.ask(&format!("rate {}", 2 * threshold))[0];
            sleep(Duration::from_millis(u64::from(100 + 20 * trial)));
            let end = load.ask(&format!("rate {after}"))[0];
            let alarm = watch.alarm(mark, "network", PATIENCE);
            errors.add(&mut verdict, &watch, alarm, (begin, end));
            load.ask("rate 0");
        }
        // Then x ms after the change (window - x) 2 + x/5 = window.
        let longest_ms = window_ms as f64 / (2.0 - 0.2);
        errors.judge(&mut verdict, &format!("network, {name}"), longest_ms);
    }
    paired(&mut verdict, watch, |_| true);
    verdict.end();
}

/// Pages go out at once: the episode begins with the first.
pub fn memory() {
    let mut verdict = Verdict::default();
    let mut errors = Errors::default();
    let _swap = Swap::new(64);
    let window_ms = 20;
    let watch = Watch::alone(&[
        "--only",
        "memory",
        "--memory-window",
        &format!("{window_ms}ms"),
        "--limit",
        "1000",
    ]);
    let mut load = Load::start("memory", &[("cpu", &clock::spare_cpu())]);
    load.say("map 64");
    load.hear();
    for _ in 0..TRIALS {
        for command in ["out", "in"] {
            sleep(Duration::from_millis(60));
            let mark = watch.mark();
            let paged = load.ask(&format!("{command} 64"));
            let page = format!("page-{command}");
            let alarm = watch.next(mark, PATIENCE, |line| {
                line.is("alarm") && line.criterion() == page
            });
            errors.add(&mut verdict, &watch, alarm, (paged[0], paged[2]));
        }
    }
    // Of one page in a window: until it is a window old.
    errors.judge(&mut verdict, "memory", window_ms as f64);
    paired(&mut verdict, watch, |_| true);
    verdict.end();
}
