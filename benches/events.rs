// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real events for the monitor's programs, and the time of the programs per event by the kernel's
//! BPF run statistics, which the caller enables.

use std::net::UdpSocket;
use std::time::Instant;

use emud_monitor::Monitor;
use emud_monitor::config::{Config, GroupBy};
use emud_monitor::empty::Empty;
use rustix::io::{read, write};
use rustix::pipe::pipe;
use rustix::thread::{CpuSet, sched_setaffinity};

pub const GROUPS: [(&str, GroupBy); 3] = [
    ("netns", GroupBy::Netns),
    ("cgroup", GroupBy::Cgroup),
    ("command", GroupBy::Command),
];

/// What triggers a tracepoint.
#[derive(Clone, Copy)]
pub enum Events {
    Switches,
    Packets,
}

impl Events {
    pub fn tracepoint(self) -> &'static str {
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

    /// Returns the time that each of `count` takes, in ns.
    pub fn time_of_each(self, count: u64) -> f64 {
        let began = Instant::now();
        self.run(count);
        began.elapsed().as_nanos() as f64 / count as f64
    }

    fn run(self, count: u64) {
        match self {
            Self::Switches => switches(count / 2 + 1),
            Self::Packets => packets(count),
        }
    }
}

/// A byte back and forth repeatedly, with both ends on one CPU: two switches each.
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

/// A program whose cost is reported as (runs, ns).
pub trait Costs {
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
        (cost.events, cost.run_time_ns().expect("timed runs"))
    }
}

pub fn nothing(events: Events) -> impl Costs {
    let mut empty = Empty::load().unwrap();
    empty.attach(events.tracepoint()).unwrap();
    Nothing(empty)
}

pub fn watching(events: Events, group_by: GroupBy) -> impl Costs {
    let mut config = Config::default();
    config.alarms.group_by = group_by;
    Watching(Monitor::start(&config).unwrap(), events.program(group_by))
}

/// ns per event.
pub fn measure(costs: &mut dyn Costs, events: Events, count: u64) -> f64 {
    let before = costs.cost();
    events.run(count);
    let after = costs.cost();
    (after.1 - before.1) as f64 / (after.0 - before.0) as f64
}
