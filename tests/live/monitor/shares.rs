// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution: two groups use 70 and 30 hundredths of a resource, and the alarm reports this with
//! an error up to 5.

use std::thread::sleep;
use std::time::Duration;

use super::{bandwidth, cases};
use serde_json::Value;
use support::clock;
use support::lab::Verdict;
use support::load::{Load, numbers};
use support::site::{Group, SlowDisk, Swap, Wires};
use support::watch::{Line, Watch};

const PATIENCE: Duration = Duration::from_secs(5);
const WITHIN: f64 = 0.05;
const MS: u64 = 1_000_000;

/// The part of the first group in that of both together.
fn judge(
    verdict: &mut Verdict,
    what: &str,
    alarm: Option<Line>,
    names: [&str; 2],
    (planted, both): (f64, f64),
) {
    let Some(alarm) = alarm else {
        verdict.same(&format!("{what}: an alarm came"), true, false);
        return;
    };
    println!(
        "    {what}: {} rest {}",
        alarm.json["shares"], alarm.json["rest"]
    );
    let [first, second] = names.map(|name| alarm.share_of(name));
    let (first, second) = (first / both, second / both);
    verdict.near(&format!("{what}: first"), planted, first, WITHIN);
    verdict.near(&format!("{what}: second"), 1.0 - planted, second, WITHIN);
    let shares = alarm.json["shares"].as_array().expect("shares");
    let rest = alarm.json["rest"].as_f64().expect("a rest");
    let each: Vec<f64> = shares.iter().filter_map(|s| s["share"].as_f64()).collect();
    verdict.near(
        &format!("{what}: all of it"),
        1.0,
        each.iter().sum::<f64>() + rest,
        1e-6,
    );
    let ordered = each.windows(2).all(|pair| pair[0] >= pair[1]) && each.len() <= 8;
    verdict.same(
        &format!("{what}: at most eight, largest first"),
        true,
        ordered,
    );
}

/// Two spinners on one CPU, weighted.
pub fn cpu() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    for &by in cases(&["cgroup", "command"]) {
        let groups = [Group::new("seventy"), Group::new("thirty")];
        groups[0].cpu_weight(70);
        groups[1].cpu_weight(30);
        let watch = Watch::alone(&["--only", "cpu", "--cpu-theta", "600ms", "--group-by", by]);
        let mut loads: Vec<Load> = groups
            .iter()
            .zip(["mon-seventy", "mon-thirty"])
            .map(|(group, name)| {
                let folders = group.folders();
                Load::start(
                    "cpu",
                    &[("cpu", &cpu), ("name", name), ("cgroups", &folders)],
                )
            })
            .collect();
        for load in &mut loads {
            load.say(&format!("spin {}", 800 * MS));
        }
        let alarm = watch.next(0, PATIENCE, |line| line.is_busy_cpu(&cpu));
        let used: Vec<f64> = loads.iter().map(|l| numbers(&l.hear())[2] as f64).collect();
        // The scheduler's accounting is the reference; the case is valid if it gave the configured
        // shares.
        let truth = used[0] / (used[0] + used[1]);
        verdict.near(
            &format!("cpu, {by}: what the first got"),
            0.7,
            truth,
            WITHIN,
        );
        let names = [groups[0].name.as_str(), groups[1].name.as_str()];
        let names = if by == "cgroup" {
            names
        } else {
            ["mon-seventy", "mon-thirty"]
        };
        // Load of others there belongs to them.
        let ours = alarm.as_ref().map(|a| names.map(|name| a.share_of(name)));
        let ours: f64 = ours.into_iter().flatten().sum();
        verdict.at_least(&format!("cpu, {by}: both"), 0.5, ours);
        judge(
            &mut verdict,
            &format!("cpu, {by}"),
            alarm,
            names,
            (0.7, ours),
        );
        watch.end();
    }
    verdict.end();
}

/// One spinner for 300 ms, then another one for 900 ms: the alarm after 100 ms knows the first only,
/// its end knows both.
pub fn cpu_of_a_whole_episode() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    let watch = Watch::alone(&[
        "--only",
        "cpu",
        "--cpu-theta",
        "100ms",
        "--group-by",
        "command",
    ]);
    // FIFO: the second waits for the end of the first, and nothing runs between them.
    let mut loads = ["mon-first", "mon-second"].map(|name| {
        let settings = [("cpu", cpu.as_str()), ("name", name), ("policy", "fifo")];
        Load::start("cpu", &settings)
    });
    loads[0].say(&format!("spin {}", 300 * MS));
    loads[1].say(&format!("spin {}", 900 * MS));
    let used = loads.each_ref().map(|l| numbers(&l.hear())[2] as f64);
    let alarm = watch.next(0, PATIENCE, |line| {
        line.is_busy_cpu(&cpu) && line.share_of("mon-first") > 0.0
    });
    let episode = alarm.map(|alarm| alarm.number("/episode"));
    let end = watch.next(0, PATIENCE, |line| {
        line.is("clear") && line.json["episode"].as_u64() == episode
    });
    // Others may keep the CPU busy before and after.
    let ours = end.as_ref().map_or(0.0, |end| end.share_of("mon-"));
    verdict.at_least("both", 0.2, ours);
    let part = used[0] / (used[0] + used[1]);
    judge(
        &mut verdict,
        "a whole episode",
        end,
        ["mon-first", "mon-second"],
        (part, ours),
    );
    watch.end();
    verdict.end();
}

/// One spinner for 600 ms, after programs that take all slots of the kernel's table.
pub fn cpu_after_a_crowd() {
    let mut verdict = Verdict::default();
    let cpu = clock::spare_cpu();
    let watch = Watch::alone(&[
        "--only",
        "cpu",
        "--cpu-theta",
        "100ms",
        "--group-by",
        "command",
    ]);
    let settings = [
        ("cpu", cpu.as_str()),
        ("name", "mon-crowd"),
        ("policy", "fifo"),
    ];
    let mut load = Load::start("cpu", &settings);
    load.say(&format!("crowd 400 {} {}", MS, 600 * MS));
    let used = numbers(&load.hear())[2] as f64;
    let is_end = |line: &Line| line.is("clear") && line.number("/duration_ns") > 500 * MS;
    let end = watch.next(0, PATIENCE, is_end);
    let named = end.as_ref().map_or(0.0, |end| {
        println!("    {}", end.json);
        end.share_of("crowd-last") * end.number("/duration_ns") as f64
    });
    let of_crowd = |share: &&Value| {
        let group = share["group"].as_str().unwrap_or("");
        group.starts_with("crowd-") && group != "crowd-last"
    };
    let most = end.as_ref().map_or(f64::NAN, |end| {
        let shares = end.json["shares"].as_array().expect("shares").iter();
        let shares = shares
            .filter(of_crowd)
            .filter_map(|share| share["share"].as_f64());
        shares.fold(0.0, f64::max) * end.number("/duration_ns") as f64
    });
    // Each had 1 ms.
    verdict.at_most("ms of one of the crowd", 3.0, most / MS as f64);
    // What it used before it had a slot is not its: a few ticks.
    verdict.near("CPU time of the last one", 1.0, named / used, 0.1);
    watch.end();
    verdict.end();
}

/// Two senders, 77 and 33 of 100 Mbit/s: the threshold is met when both have been at their pace for most of a window.
pub fn network() {
    let mut verdict = Verdict::default();
    let threshold = bandwidth(100_000_000);
    for &by in cases(&["netns", "cgroup", "command"]) {
        let wires = [Wires::new(&["mveth"]), Wires::new(&["mveth"])];
        let groups = [Group::new("seventy"), Group::new("thirty")];
        let watch = Watch::alone(&[
            "--only",
            "network",
            "--class",
            "mveth=external",
            "--external",
            &format!("{threshold}bit/s"),
            "--network-window",
            "100ms",
            "--group-by",
            by,
        ]);
        let names = ["mon-seventy", "mon-thirty"];
        let mut loads: Vec<Load> = (0..2)
            .map(|i| {
                let folders = groups[i].folders();
                wires[i].load(&[("name", names[i]), ("cgroups", &folders)])
            })
            .collect();
        for (load, share) in loads.iter_mut().zip([7, 3]) {
            load.ask(&format!("rate {}", threshold / 100 * 11 * share));
        }
        let alarm = watch.alarm(0, "network", PATIENCE);
        let names = match by {
            "netns" => [wires[0].netns.as_str(), wires[1].netns.as_str()],
            "cgroup" => [groups[0].name.as_str(), groups[1].name.as_str()],
            _ => names,
        };
        judge(
            &mut verdict,
            &format!("network, {by}"),
            alarm,
            names,
            (0.7, 1.0),
        );
        drop(loads);
        watch.end();
    }
    verdict.end();
}

/// 30 pages of one group, then 70 of the other: the hundredth is the alarm.
pub fn memory() {
    let mut verdict = Verdict::default();
    let _swap = Swap::new(64);
    for &by in cases(&["cgroup", "command"]) {
        let groups = [Group::new("seventy"), Group::new("thirty")];
        let watch = Watch::alone(&[
            "--only",
            "memory",
            "--memory-window",
            "1s",
            "--page-ins",
            "100",
            "--page-outs",
            "100",
            "--group-by",
            by,
            "--limit",
            "10",
        ]);
        let names = ["mon-seventy", "mon-thirty"];
        let mut loads: Vec<Load> = (0..2)
            .map(|i| {
                let folders = groups[i].folders();
                let cpu = clock::spare_cpu();
                let options = [("name", names[i]), ("cgroups", &*folders), ("cpu", &*cpu)];
                let mut load = Load::start("memory", &options);
                load.say("map 128");
                load.hear();
                load
            })
            .collect();
        let groups = [groups[0].name.as_str(), groups[1].name.as_str()];
        for command in ["out", "in"] {
            let mark = watch.mark();
            verdict.same("thirty", 30, loads[1].ask(&format!("{command} 30"))[3]);
            verdict.same("seventy", 70, loads[0].ask(&format!("{command} 70"))[3]);
            let alarm = watch.alarm(mark, "memory", PATIENCE);
            let names = if by == "cgroup" { groups } else { names };
            judge(
                &mut verdict,
                &format!("page-{command}, {by}"),
                alarm,
                names,
                (0.7, 1.0),
            );
        }
        drop(loads);
        watch.end();
    }
    verdict.end();
}

/// Reads of one size, seven of one group while there are three of the other.
pub fn disk() {
    let mut verdict = Verdict::default();
    for &by in cases(&["cgroup", "command"]) {
        let groups = [Group::new("seventy"), Group::new("thirty")];
        // The loop device serves each cgroup with a separate worker, one read at a time; null_blk
        // serves all reads side by side.
        let null = SlowDisk::is_null();
        let disk = if null {
            SlowDisk::new(Duration::from_millis(5))
        } else {
            SlowDisk::with_two(Duration::from_millis(3), Duration::from_millis(7))
        };
        let threads = if null { ["7", "3"] } else { ["2", "2"] };
        let watch = Watch::alone(&["--only", "disk", "--disk-theta", "800ms", "--group-by", by]);
        let names = ["mon-seventy", "mon-thirty"];
        let mut loads: Vec<Load> = (0..2)
            .map(|i| {
                let folders = groups[i].folders();
                disk.load(&[
                    ("name", names[i]),
                    ("cgroups", &folders),
                    ("threads", threads[i]),
                    ("stagger", "700000"),
                    ("len", "65536"),
                    // The first half of the disk and the second.
                    ("region", ["0", "40"][i]),
                ])
            })
            .collect();
        for load in &mut loads {
            load.ask("run");
        }
        let alarm = watch.alarm(0, "disk", PATIENCE);
        let groups = [groups[0].name.as_str(), groups[1].name.as_str()];
        let names = if by == "cgroup" { groups } else { names };
        judge(
            &mut verdict,
            &format!("disk, {by}"),
            alarm,
            names,
            (0.7, 1.0),
        );
        sleep(Duration::from_millis(10));
        drop(loads);
        watch.end();
    }
    verdict.end();
}
