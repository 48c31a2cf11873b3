// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: how many nodes with the load of one resource it takes until its criterion alarms.

use std::thread::available_parallelism;
use std::time::Duration;

use emud_monitor::config::{Class, Config, GroupBy};
use emud_monitor::event::Resource;
use emud_monitor::log::RunVerdict;

use super::counts::but_contended;
use super::disk_use::DiskUse;
use super::live::Variant;
use super::search::{Seen, first, next};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-contention",
    description: "Nodes with a load of one resource each until its criterion of the monitor alarms, as table 4.1",
    source: "S. D. Maier, PhD thesis, Universität Stuttgart, 2011: a Pentium 4 with 512 MB",
    method: "more and more loads of `emud load` in the scenario m-contention, each number for 10 s (--quick: 3 s), \
             judged by the published thresholds, whatever --monitor says",
    scenarios: &["m-contention"],
    measure,
};

/// Frames of 1,500 bytes with Ethernet's header, UDP and IP: 100 Mbit/s of them.
const NETWORK: &str = "network --size 1458 --rate 97.2Mbit";
/// A quarter of a CPU: bursts of 10/3 ms.
const CPU: &str = "cpu --threads 1 --share 25% --pause 10ms";
const MEMORY: &str = "memory 60MB";
const DISK_FOLDER: &str = "/var/tmp";
const DISK: &str = "disk /var/tmp --read --size 100MB --block 256KiB";

/// A row of the table.
struct Row {
    title: &'static str,
    load: &'static str,
    /// Whether loopback counts as a device that leads out of the machine.
    external: bool,
    criterion: Resource,
    /// Numbers of nodes, ascending; with `per_cpu` for each CPU.
    nodes: &'static [u32],
    per_cpu: bool,
    published: f64,
    theory: Option<f64>,
    tolerance: Tolerance,
    known: Option<(f64, f64, &'static str)>,
}

const ROWS: &[Row] = &[
    Row {
        title: "external: network",
        load: NETWORK,
        external: true,
        criterion: Resource::Network,
        nodes: &[3, 4, 5, 6, 7],
        per_cpu: false,
        published: 5.0,
        // 490 Mbit/s over 10 ms.
        theory: Some(5.0),
        tolerance: Tolerance::Absolute(1.0),
        known: None,
    },
    Row {
        title: "internal: network",
        load: NETWORK,
        external: false,
        criterion: Resource::Network,
        nodes: &[6, 7, 8, 9, 10, 11, 12, 13],
        per_cpu: false,
        published: 11.0,
        // 1 Gbit/s over 10 ms.
        theory: Some(10.0),
        tolerance: Tolerance::Absolute(1.0),
        known: Some((11.0, 13.0, "senders that wait for a CPU lack time to send")),
    },
    Row {
        title: "cpu: cpu, for each CPU",
        load: CPU,
        external: false,
        criterion: Resource::Cpu,
        nodes: &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16],
        per_cpu: true,
        published: 4.0,
        // Four quarters.
        theory: Some(4.0),
        tolerance: Tolerance::Absolute(0.0),
        known: Some((
            4.0,
            16.0,
            "four quarters fill a CPU only if their bursts follow one another exactly; otherwise it is idle \
             for moments within 200 ms",
        )),
    },
    Row {
        title: "memory: cpu",
        load: MEMORY,
        external: false,
        criterion: Resource::Cpu,
        nodes: &[1, 2, 3, 4],
        per_cpu: false,
        published: 1.0,
        // It never pauses.
        theory: Some(1.0),
        tolerance: Tolerance::Absolute(0.0),
        known: Some((
            1.0,
            4.0,
            "the scheduler moves a single load between CPUs within 200 ms",
        )),
    },
    Row {
        title: "disk: disk",
        load: DISK,
        external: false,
        criterion: Resource::Disk,
        nodes: &[1, 2, 3, 4, 6, 8, 12, 16, 24],
        per_cpu: false,
        published: 2.0,
        theory: None,
        // One load leaves the disk idle between two reads.
        tolerance: Tolerance::Range(2.0, 4.0),
        known: Some((
            4.0,
            24.0,
            "this disk answers faster, so several loads are at times between two reads at once",
        )),
    },
];

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let rows = ROWS.iter().map(|row| row.figure(bench, cpus));
    rows.collect()
}

/// Returns the published thresholds.
pub(super) fn thresholds(external: bool) -> Config {
    let mut config = Config::default();
    config.alarms.group_by = GroupBy::Command;
    config.steal = None;
    if let Some(network) = &mut config.network
        && external
    {
        network.classes.insert("lo".to_owned(), Class::External);
    }
    config
}

impl Row {
    fn figure(&self, bench: &Bench<'_>, cpus: u32) -> Result<Figure, ReproduceError> {
        let (mut seen, mut runs) = (Seen::new(), vec![]);
        while let Some(nodes) = next(self.nodes, &seen, &[0]) {
            let count = if self.per_cpu { nodes * cpus } else { nodes };
            let (verdict, alarms) = self.run(bench, count)?;
            runs.push(verdict);
            seen.insert(nodes, [alarms]);
        }
        let fewest = first(&seen, 0);
        Ok(self.judged(fewest.map(f64::from), &runs))
    }

    /// Returns the verdict of a run with `count` nodes, and whether the criterion alarms.
    fn run(&self, bench: &Bench<'_>, count: u32) -> Result<(RunVerdict, bool), ReproduceError> {
        let disk = Some(self.criterion).filter(|of| *of == Resource::Disk);
        let disk = disk.and_then(|_| DiskUse::watch(DISK_FOLDER));
        let config = thresholds(self.external);
        let theta = config
            .disk
            .as_ref()
            .map_or(Duration::ZERO, |disk| disk.theta);
        let counts = bench.judged(
            &Variant {
                title: &format!("{}, {count} nodes", self.title),
                scenario: "m-contention",
                env: &[
                    ("NODES", count.to_string()),
                    ("LOAD", self.load.to_owned()),
                    ("TIME", if bench.quick { "3" } else { "10" }.to_owned()),
                ],
                ..Variant::default()
            },
            &config,
        )?;
        let full = disk.is_none_or(|disk| disk.never_empty(counts.began_ns, theta));
        let alarms = counts.contended.contains(&self.criterion);
        if alarms && !full {
            (bench.progress)(&format!(
                "{}, {count} nodes: the disk was empty at times, so the alarm does not count",
                self.title
            ));
        }
        Ok((counts.verdict, alarms && full))
    }

    /// Contention is what is measured. In a run that failed, an alarm may be missing.
    fn judged(&self, fewest: Option<f64>, runs: &[RunVerdict]) -> Figure {
        let figure = Figure::new(self.title, "nodes").published(self.published);
        let figure = match self.theory {
            Some(nodes) => figure.theory(nodes),
            None => figure,
        };
        let figure = match self.known {
            Some((from, to, why)) => figure.known(from, to, why),
            None => figure,
        };
        let figure = figure.within(self.tolerance);
        figure.measured(fewest, worst(runs))
    }
}

/// Returns the least favourable verdict of runs in which contention is what is measured.
pub(super) fn worst(runs: &[RunVerdict]) -> Option<RunVerdict> {
    let runs = runs.iter().map(|run| but_contended(*run));
    runs.max_by_key(|run| *run as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;

    /// If the criterion alarms with the first number, it may with fewer.
    #[test]
    fn the_first_number_is_no_result_unless_it_is_one() {
        for row in ROWS.iter().filter(|row| row.nodes[0] > 1) {
            let first = row.judged(Some(row.nodes[0].into()), &[RunVerdict::Contended]);
            assert_eq!(first.verdict, FigureVerdict::Deviates, "{}", row.title);
        }
    }

    #[test]
    fn contention_is_the_result_and_a_failure_is_none() {
        let of = |runs: &[RunVerdict]| ROWS[0].judged(Some(5.0), runs).verdict;
        let (clean, contended) = (RunVerdict::Clean, RunVerdict::Contended);
        assert_eq!(of(&[clean, contended]), FigureVerdict::Within);
        for failed in [RunVerdict::Invalid, RunVerdict::Unwatched] {
            assert_eq!(of(&[clean, failed, contended]), FigureVerdict::Invalid);
        }
    }
}
