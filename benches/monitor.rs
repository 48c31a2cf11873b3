// SPDX-License-Identifier: GPL-2.0-only
//! What the monitor costs an event: the time of its programs by the kernel's BPF run
//! statistics, and that of an empty program at the same tracepoint, in turn. Needs root.
//!
//! Events are real ones: two threads on one CPU that wake up one another, datagrams over
//! the loopback device. Criterion's figures are ns an event; the table after them is the
//! difference, median of five turns.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::UdpSocket;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use emud_monitor::Monitor;
use emud_monitor::config::{Config, GroupBy};
use emud_monitor::empty::Empty;
use rustix::io::{read, write};
use rustix::pipe::pipe;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Events of one turn of the table.
const EVENTS: u64 = 200_000;
const TURNS: usize = 5;

/// What makes a tracepoint fire.
#[derive(Clone, Copy)]
enum Load {
    Switches,
    Packets,
}

impl Load {
    fn tracepoint(self) -> &'static str {
        match self {
            Self::Switches => "sched_switch",
            Self::Packets => "net_dev_xmit",
        }
    }

    fn program(self, group_by: GroupBy) -> &'static str {
        match (self, group_by) {
            (Self::Switches, _) => "emud_switch",
            (Self::Packets, GroupBy::Netns) => "emud_xmit",
            (Self::Packets, _) => "emud_start_xmit",
        }
    }

    fn run(self, events: u64) {
        match self {
            Self::Switches => switches(events / 2 + 1),
            Self::Packets => packets(events),
        }
    }
}

/// A byte there and back, over and over, both ends on one CPU: two switches each.
fn switches(round_trips: u64) {
    let (there_out, there_in) = pipe().unwrap();
    let (back_out, back_in) = pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin();
            let mut byte = [0];
            while read(&there_out, &mut byte).unwrap() == 1 {
                write(&back_in, &byte).unwrap();
            }
        });
        scope.spawn(move || {
            pin();
            let mut byte = [0];
            for _ in 0..round_trips {
                write(&there_in, &byte).unwrap();
                read(&back_out, &mut byte).unwrap();
            }
        });
    });
}

fn pin() {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None, &cpus).unwrap();
}

fn packets(count: u64) {
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    for _ in 0..count {
        from.send(&[0; 64]).unwrap();
    }
}

/// A program whose cost is told as (runs, ns).
trait Costs {
    fn cost(&mut self) -> (u64, u64);
}

struct Nothing(Empty);

impl Costs for Nothing {
    fn cost(&mut self) -> (u64, u64) {
        self.0.cost().unwrap()
    }
}

struct Watching(Monitor, &'static str);

impl Costs for Watching {
    fn cost(&mut self) -> (u64, u64) {
        let costs = self.0.costs().unwrap();
        let cost = costs.iter().find(|c| c.program == self.1).unwrap();
        (cost.events, cost.run_time_ns)
    }
}

fn nothing(load: Load) -> Nothing {
    let mut empty = Empty::load().unwrap();
    empty.attach(load.tracepoint()).unwrap();
    Nothing(empty)
}

fn watching(load: Load, group_by: GroupBy) -> Watching {
    let mut config = Config::default();
    config.alarms.group_by = group_by;
    Watching(Monitor::start(&config).unwrap(), load.program(group_by))
}

/// ns an event.
fn measure(costs: &mut dyn Costs, load: Load, events: u64) -> f64 {
    let before = costs.cost();
    load.run(events);
    let after = costs.cost();
    (after.1 - before.1) as f64 / (after.0 - before.0) as f64
}

fn bench(criterion: &mut Criterion, load: Load) {
    let mut group = criterion.benchmark_group(load.tracepoint());
    let mut one = |name: &str, costs: &mut dyn Costs| {
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|events| {
                let ns = measure(costs, load, events.max(1000));
                Duration::from_nanos((ns * events as f64) as u64)
            });
        });
    };
    one("empty", &mut nothing(load));
    for (name, group_by) in GROUPS {
        one(name, &mut watching(load, group_by));
    }
}

const GROUPS: [(&str, GroupBy); 3] = [
    ("netns", GroupBy::Netns),
    ("cgroup", GroupBy::Cgroup),
    ("command", GroupBy::Command),
];

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Both in turn, so that what else the machine does meets both.
fn table(load: Load) {
    for (name, group_by) in GROUPS {
        let (mut empty, mut above) = (vec![], vec![]);
        for _ in 0..TURNS {
            let bare = measure(&mut nothing(load), load, EVENTS);
            let full = measure(&mut watching(load, group_by), load, EVENTS);
            empty.push(bare);
            above.push(full - bare);
        }
        println!(
            "{}, by {name}: empty {:.1} ns, above it {:.1} ns (median of {TURNS})",
            load.tracepoint(),
            median(empty),
            median(above)
        );
    }
}

fn main() {
    let _statistics = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let loads = [Load::Switches, Load::Packets];
    let mut criterion = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for load in loads {
        bench(&mut criterion, load);
    }
    criterion.final_summary();
    loads.into_iter().for_each(table);
}
