// SPDX-License-Identifier: GPL-2.0-only
//! How long after a threshold is crossed the line about it can be read on the monitor's standard output. The load
//! knows when it crossed, so the monitor's own account is not what is measured; it is checked by the same clock.

use std::thread::sleep;
use std::time::Duration;

use crate::lab::Verdict;
use crate::load::{Load, numbers};
use crate::place::{MemoryDisk, SlowDisk, Swap, Wires};
use crate::stats::{median, quantile};
use crate::watch::{Line, Watch};
use crate::{bandwidth, clock, trials};

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(3);

/// Times after the crossing, ms.
#[derive(Default)]
struct Times {
    judged: Vec<f64>,
    readable: Vec<f64>,
    missed: usize,
}

impl Times {
    fn add(&mut self, crossed_ns: u64, alarm: Option<Line>) {
        let Some(alarm) = alarm else {
            self.missed += 1;
            return;
        };
        let after = |t: u64| (t as f64 - crossed_ns as f64) / MS as f64;
        self.judged.push(after(alarm.mono_ns()));
        self.readable.push(after(alarm.readable_ns));
    }

    /// The 99th percentile counts: of fewer than 100 the worst.
    fn judge(&self, verdict: &mut Verdict, what: &str, bound_ms: f64) {
        verdict.same(&format!("{what}: alarms that did not come"), 0, self.missed);
        if self.judged.is_empty() {
            return;
        }
        let least = |v: &[f64]| quantile(v, 0.0);
        println!(
            "    {what}: {} trials, ms after the crossing: judged {:.3} {:.3} {:.3}, \
             readable {:.3} {:.3} {:.3} (least, median, 99th percentile)",
            self.judged.len(),
            least(&self.judged),
            median(&self.judged),
            quantile(&self.judged, 0.99),
            least(&self.readable),
            median(&self.readable),
            quantile(&self.readable, 0.99),
        );
        verdict.at_least(&format!("{what}: judged, ms"), 0.0, least(&self.judged));
        verdict.at_most(
            &format!("{what}: judged, 99th percentile, ms"),
            bound_ms - 1.0,
            quantile(&self.judged, 0.99),
        );
        // With the only CPU taken, nobody can read; what the kernel judged counts all the same.
        if clock::cpus() > 1 || !what.starts_with("cpu") {
            verdict.at_most(
                &format!("{what}: readable, 99th percentile, ms"),
                bound_ms,
                quantile(&self.readable, 0.99),
            );
        }
    }
}

fn ms(n: u64) -> String {
    format!("{n}ms")
}

/// A spinner, whose CPU is idle before.
pub fn cpu() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    for policy in ["other", "fifo"] {
        let mut times = Times::default();
        let mut tick_ms = 0.0;
        for theta in [50, 100, 200] {
            let watch = Watch::alone(&[
                "--only",
                "cpu",
                "--cpu-theta",
                &ms(theta),
                "--limit",
                "1000",
            ]);
            tick_ms = watch.tick_ns() as f64 / 1e6;
            let mut load = Load::start("cpu", &[("cpu", &cpu), ("policy", policy)]);
            for _ in 0..trials(30) / 6 {
                sleep(Duration::from_millis(30));
                let mark = watch.mark();
                load.say(&format!("spin {}", (theta + 40) * MS));
                let on_cpu = |line: &Line| line.is_busy_cpu(&cpu);
                let alarm = watch.next(mark, PATIENCE, on_cpu);
                let spun = numbers(&load.hear());
                times.add(spun[0] + theta * MS, alarm);
            }
            watch.end();
        }
        // At most a tick and 1 ms until it is judged, 1 ms more until it can be read.
        times.judge(&mut verdict, &format!("cpu, {policy}"), tick_ms + 2.0);
    }
    verdict.end();
}

/// A task that never yields: no switch tells of it.
pub fn cpu_never_yields() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    let mut tick_ms = 0.0;
    for policy in ["other", "fifo"] {
        let mut times = Times::default();
        for theta in [20, 100, 300] {
            let watch = Watch::alone(&["--only", "cpu", "--cpu-theta", &ms(theta)]);
            tick_ms = watch.tick_ns() as f64 / 1e6;
            let mark = watch.mark();
            let mut load = Load::start("cpu", &[("cpu", &cpu), ("policy", policy)]);
            sleep(Duration::from_millis(30));
            let at = load.ask("shell")[0];
            let alarm = watch.next(mark, PATIENCE, |line| line.is_busy_cpu(&cpu));
            drop(load);
            times.add(at + theta * MS, alarm);
            watch.end();
        }
        times.judge(
            &mut verdict,
            &format!("cpu, while :; do :; done, {policy}"),
            tick_ms + 2.0,
        );
    }
    verdict.end();
}

/// Bursts after silence: the frame that fills the window is known.
pub fn network() {
    const LEN: u64 = 1500;
    let mut verdict = Verdict::default();
    let mut times = Times::default();
    let wires = Wires::external("mphys");
    let mut load = wires.load(&[("len", &LEN.to_string())]);
    let cases = [(20, 10), (50, 10), (100, 5), (20, 40), (200, 2)];
    for (mbit_s, window_ms) in cases {
        let rate = bandwidth(mbit_s * 1_000_000);
        let watch = Watch::alone(&[
            "--only",
            "network",
            "--class",
            "mphys=external",
            "--external",
            &format!("{rate}bit/s"),
            "--network-window",
            &ms(window_ms),
            "--limit",
            "1000",
        ]);
        let nth = (rate * window_ms).div_ceil(1000 * 8 * LEN);
        for _ in 0..trials(30) / cases.len() as u32 {
            sleep(Duration::from_millis(3 * window_ms));
            let mark = watch.mark();
            let burst = load.ask(&format!("burst {} {nth}", nth + 10));
            verdict.at_most(
                "the burst fits into the window, ms",
                window_ms as f64,
                (burst[1] - burst[0]) as f64 / 1e6,
            );
            times.add(burst[1], watch.alarm(mark, "network", PATIENCE));
        }
        watch.end();
    }
    times.judge(&mut verdict, "network", 2.0);
    verdict.end();
}

/// Pages sent to swap and fetched again at known times.
pub fn memory() {
    let mut verdict = Verdict::default();
    let (mut outs, mut ins) = (Times::default(), Times::default());
    let swap = Swap::new(64);
    let ignored = format!("{}=ignored", swap.name());
    let mut load = Load::start("memory", &[]);
    load.say("map 256");
    assert_eq!(load.hear(), "mapped");
    for threshold in [1, 8, 32] {
        let pages = threshold.to_string();
        let watch = Watch::alone(&[
            "--only",
            "memory",
            "--page-ins",
            &pages,
            "--page-outs",
            &pages,
            "--disk",
            &ignored,
            "--limit",
            "1000",
        ]);
        for _ in 0..trials(30) / 3 {
            for (command, times) in [("out", &mut outs), ("in", &mut ins)] {
                sleep(Duration::from_millis(30));
                let mark = watch.mark();
                let paged = load.ask(&format!("{command} {threshold}"));
                verdict_on_pages(&mut verdict, command, threshold, paged[3]);
                times.add(paged[1], watch.alarm(mark, "memory", PATIENCE));
            }
        }
        watch.end();
    }
    outs.judge(&mut verdict, "memory, page-out", 2.0);
    ins.judge(&mut verdict, "memory, page-in", 2.0);
    verdict.end();
}

/// The load is what it is meant to be only if the kernel has moved these pages.
fn verdict_on_pages(verdict: &mut Verdict, command: &str, asked: u64, counted: u64) {
    if asked != counted {
        verdict.same(&format!("pages {command}"), asked, counted);
    }
}

/// A single read that takes longer than allowed: no further event comes.
pub fn disk() {
    let mut verdict = Verdict::default();
    let mut times = Times::default();
    for theta in [20, 50, 100] {
        let disk = SlowDisk::new(Duration::from_millis(theta + 60));
        let watch = Watch::alone(&[
            "--only",
            "disk",
            "--disk-theta",
            &ms(theta),
            "--limit",
            "1000",
        ]);
        let mut load = disk.load(&[("len", "4096")]);
        for _ in 0..trials(30) / 3 {
            sleep(Duration::from_millis(20));
            let mark = watch.mark();
            load.say("one");
            let alarm = watch.next(mark, PATIENCE, |line| {
                line.is("alarm") && line.json["scope"]["name"] == disk.name()
            });
            let read = numbers(&load.hear());
            times.add(read[0] + theta * MS, alarm);
        }
        watch.end();
    }
    times.judge(&mut verdict, "disk", 2.0);
    verdict.end();
}

/// A disk that never answers.
pub fn disk_stuck() {
    let mut verdict = Verdict::default();
    let mut times = Times::default();
    let disk = SlowDisk::new(Duration::from_millis(1500));
    for theta in [30, 100, 400] {
        let watch = Watch::alone(&["--only", "disk", "--disk-theta", &ms(theta)]);
        let mut load = disk.load(&[("len", "4096")]);
        let asked = clock::now();
        load.say("one");
        let alarm = watch.alarm(0, "disk", PATIENCE);
        times.add(asked + theta * MS, alarm);
        let ended = watch.end();
        verdict.same("no end of the episode was told", 0, ended.of("clear").len());
        load.hear();
    }
    // From before the command on: the load's own way to its read is in it.
    times.judge(&mut verdict, "disk, stuck", 2.0);
    verdict.end();
}

/// A device without a request queue: one write to a compressed memory disk, so large that it takes longer than allowed.
pub fn disk_of_bios() {
    let mut verdict = Verdict::default();
    let mut times = Times::default();
    let disk = MemoryDisk::new(256);
    let watch = Watch::alone(&["--only", "disk", "--disk-theta", "5ms", "--limit", "1000"]);
    let mut load = Load::start("disk", &[("file", &disk.path())]);
    for _ in 0..trials(30) / 3 {
        sleep(Duration::from_millis(20));
        let mark = watch.mark();
        let wrote = load.ask(&format!("write {}", 64 << 20));
        verdict.at_least(
            "the write took, ms",
            10.0,
            (wrote[1] - wrote[0]) as f64 / 1e6,
        );
        let alarm = watch.next(mark, PATIENCE, |line| {
            line.is("alarm") && line.json["scope"]["name"] == disk.name()
        });
        times.add(wrote[0] + 5 * MS, alarm);
    }
    watch.end();
    times.judge(&mut verdict, "disk, bios", 2.0);
    verdict.end();
}
