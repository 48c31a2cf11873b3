// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many nodes does it take? S. D. Maier's experiment ("Scalable Computer Network Emulation
//! Using Node Virtualization and Resource Monitoring", 2011, table 4.1): load generators one after
//! the other, until a resource runs out.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use super::bandwidth;
use support::lab::Verdict;
use support::load::{COMMAND, Load};
use support::site::{Group, SlowDisk, Swap, Wires};
use support::watch::{Line, SEEN, Watch};
use support::{clock, guest};

/// How long each number of nodes lasts: many times any threshold.
const DWELL: Duration = Duration::from_millis(1200);

/// How much longer for the number that is too many: a busy machine may take a while to generate
/// that load.
const PATIENCE: Duration = Duration::from_secs(10);

/// An alarm is of the load if all others had less than a tenth in it.
const MOSTLY: f64 = 0.9;

/// One kind of load, from one node to the number that is too many.
struct Rise {
    load: &'static str,
    /// The resource that runs out, as the table calls it.
    criterion: &'static str,
    /// With this number of nodes.
    predicted: usize,
    options: Vec<String>,
}

/// The criteria, as the table calls them, with the number of nodes that raised each.
type Row = BTreeMap<String, usize>;

impl Rise {
    fn is_predicted(&self, line: &Line) -> bool {
        line.is("alarm") && line.criterion() == self.criterion && line.share_of(COMMAND) >= MOSTLY
    }

    /// Adds nodes one by one. `add` sets their number; `check` checks the load itself after that
    /// number has had its time.
    fn run(
        &self,
        verdict: &mut Verdict,
        mut add: impl FnMut(usize),
        mut check: impl FnMut(usize, &mut Verdict),
    ) -> Row {
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        options.extend(["--limit", "1000", "--group-by", "command"]);
        let watch = Watch::alone(&options);
        let mut row = Row::new();
        let mut first = None;
        for nodes in 1..=self.predicted {
            let mark = watch.mark();
            add(nodes);
            sleep(DWELL);
            if nodes == self.predicted {
                watch.next(mark, PATIENCE, |line| self.is_predicted(line));
            }
            for alarm in watch.alarms_since(mark) {
                let criterion = alarm.criterion();
                // Other load here contends, too.
                if alarm.share_of(COMMAND) < MOSTLY {
                    println!("    of others: {criterion} {}", alarm.json["shares"]);
                    continue;
                }
                first.get_or_insert_with(|| criterion.clone());
                row.entry(criterion).or_insert(nodes);
            }
            check(nodes, verdict);
        }
        let what = format!("{}: ", self.load);
        let got = row.get(self.criterion).copied();
        verdict.same(
            &format!("{what}nodes for {}", self.criterion),
            Some(self.predicted),
            got,
        );
        verdict.same(
            &format!("{what}what alarmed first"),
            Some(self.criterion),
            first.as_deref(),
        );
        verdict.same(&format!("{what}exit code"), SEEN, watch.end().code);
        row
    }
}

/// The table of all loads.
pub fn table() {
    let mut verdict = Verdict::default();
    let rows = [
        ("frames, external", frames_external(&mut verdict)),
        ("frames, internal", frames_internal(&mut verdict)),
        ("a quarter of a CPU", quarters(&mut verdict)),
        ("memory written", writers(&mut verdict)),
        ("direct reads", readers(&mut verdict)),
    ];
    let criteria = [
        "network external",
        "network internal",
        "cpu",
        "page-in",
        "page-out",
        "disk",
    ];
    println!("    smallest number of nodes that raised an alarm of each criterion:");
    print!("    {:20}", "load");
    criteria.iter().for_each(|name| print!(" {name:>16}"));
    println!();
    for (load, row) in rows {
        print!("    {load:20}");
        for criterion in criteria {
            let nodes = row.get(criterion).map_or("-".into(), usize::to_string);
            print!(" {nodes:>16}");
        }
        println!();
    }
    verdict.end();
}

/// Frames of 1500 bytes from `nodes` nodes of 99.8 Mbit/s each: 5 are 499 of 490 Mbit/s, 11 are 1098 of 1000 and 10
/// are 998, of which a window of 10 ms holds at most 832 frames, 1,248,000 of 1,250,000 bytes.
fn frames(verdict: &mut Verdict, wires: &Wires, rise: &Rise, threshold_bit_s: u64) -> Row {
    // With one CPU the pacing is the timer's, and a fifth of the rate (EMUD_MONITOR_RATE): of 10 nodes 164.2 frames
    // are in a window then, and one that was late; 167 are too many.
    let node = if guest() { 98_500_000 } else { 99_800_000 };
    let pace = if clock::cpus() > 1 { "spin" } else { "sleep" };
    let mut options = vec![("pace", pace), ("len", "1500")];
    if clock::cpus() == 1 {
        // Ahead of the monitor's reader (1) and the test's (10).
        options.extend([("policy", "fifo"), ("priority", "20")]);
    }
    let cpu = clock::spare_cpu();
    if pace == "spin" {
        options.push(("cpu", &cpu));
    }
    let load = std::cell::RefCell::new(wires.load(&options));
    let window_bytes = threshold_bit_s / 8 / 100;
    rise.run(
        verdict,
        |nodes| {
            let rate = bandwidth(node) * nodes as u64;
            load.borrow_mut().ask(&format!("rate {rate}"));
        },
        |nodes, verdict| {
            // The load's own account: its prediction is that of the arithmetic.
            let most = load.borrow_mut().ask("most")[0];
            verdict.same(
                &format!(
                    "{}: {nodes} nodes, {most} of {window_bytes} bytes sent in a window",
                    rise.load
                ),
                nodes >= rise.predicted,
                most >= window_bytes,
            );
        },
    )
}

/// Thresholds as the command line takes them, and the bit/s of both classes.
fn rates() -> (Vec<String>, u64, u64) {
    let (external, internal) = (bandwidth(490_000_000), bandwidth(1_000_000_000));
    let options = [
        "--external",
        &format!("{external}bit/s"),
        "--internal",
        &format!("{internal}bit/s"),
        // A packet costs a CPU more than it costs a wire.
        "--cpu-theta",
        "off",
    ];
    (
        options.iter().map(|&s| s.to_owned()).collect(),
        external,
        internal,
    )
}

fn frames_external(verdict: &mut Verdict) -> Row {
    let wires = Wires::external("mphys");
    let (mut options, external, _) = rates();
    options.extend(["--class".into(), "mphys=external".into()]);
    let rise = Rise {
        load: "frames, external",
        criterion: "network external",
        predicted: 5,
        options,
    };
    frames(verdict, &wires, &rise, external)
}

fn frames_internal(verdict: &mut Verdict) -> Row {
    let wires = Wires::new(&["mveth"]);
    let (options, _, internal) = rates();
    let rise = Rise {
        load: "frames, internal",
        criterion: "network internal",
        predicted: 11,
        options,
    };
    frames(verdict, &wires, &rise, internal)
}

/// Four quarters fill a CPU.
fn quarters(verdict: &mut Verdict) -> Row {
    let mut loads = vec![];
    let cpu = clock::spare_cpu();
    let rise = Rise {
        load: "quarters",
        criterion: "cpu",
        predicted: 4,
        options: vec![],
    };
    rise.run(
        verdict,
        |_| {
            // An episode that others had a part in has no end with four, so there is no second alarm: where a CPU is left
            // for the rest of the machine, the load goes before them.
            let policy = if clock::cpus() > 1 { "fifo" } else { "other" };
            let mut load = Load::start("cpu", &[("cpu", &cpu), ("policy", policy)]);
            load.say("quarter");
            loads.push(load);
        },
        |_, _| {},
    )
}

/// Writers in a cgroup that has memory for one less.
fn writers(verdict: &mut Verdict) -> Row {
    const NODES: u64 = 8;
    let mib = if guest() { 8 } else { 60 };
    let swap = Swap::new(4 * mib);
    let group = Group::new("writers");
    // Half a node is left for what the processes need besides.
    group.memory_limit((2 * NODES - 1) * (mib << 20) / 2);
    let folders = group.folders();
    let mut loads = vec![];
    let mut options = vec!["--cpu-theta".to_owned(), "off".to_owned()];
    options.extend(["--disk".into(), format!("{}=ignored", swap.name())]);
    let rise = Rise {
        load: "writers",
        criterion: "page-out",
        predicted: NODES as usize,
        options,
    };
    let row = rise.run(
        verdict,
        |_| {
            let mut load = Load::start("memory", &[("cgroups", &folders)]);
            load.ask(&format!("write {mib}"));
            loads.push(load);
        },
        |_, _| {},
    );
    verdict.same(
        "writers: nodes for page-in",
        Some(NODES as usize),
        row.get("page-in").copied(),
    );
    drop(loads);
    row
}

/// A disk is empty between the reads of one, and never between those of two.
fn readers(verdict: &mut Verdict) -> Row {
    let disk = SlowDisk::new(Duration::from_millis(2));
    let mut loads = vec![];
    let rise = Rise {
        load: "readers",
        criterion: "disk",
        predicted: 2,
        options: vec![],
    };
    rise.run(
        verdict,
        |nodes| {
            let (region, phase) = ((nodes * 4).to_string(), (nodes * 1_200_000).to_string());
            // Where requests are served side by side, two that fall into step would both be over at once: there the pause
            // is what is left of 2.4 ms, half of which they stay apart.
            let grid = if SlowDisk::is_null() { "2400000" } else { "0" };
            let options = [("region", &*region), ("grid", grid), ("phase", &phase)];
            let mut load = disk.load(&options);
            load.ask("run");
            loads.push(load);
        },
        |_, _| {},
    )
}
