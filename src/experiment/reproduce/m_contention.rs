// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: how many nodes with the load of one resource it takes until a criterion alarms.

use std::collections::BTreeSet;
use std::fs;
use std::thread::available_parallelism;

use emud_monitor::config::{Class, Config, GroupBy};
use emud_monitor::log::{RunVerdict, Span};

use super::criterion::{Cell, Criterion, NODES, cell, worst};
use super::disk_use::{DiskUse, of_swap, theta};
use super::live::Variant;
use super::search::{Seen, first, next};
use super::small_memory::SmallMemory;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-contention",
    description: "Nodes with a load of one resource each until a criterion of the monitor alarms, as table 4.1",
    source: "S. D. Maier, PhD thesis, Universität Stuttgart, 2011: a Pentium 4 with 512 MB",
    method: "more and more loads of `emud load` in the scenario m-contention, each number for 10 s (--quick: 3 s), \
             judged by the published thresholds, whatever --monitor says; with --swap also loads of memory in a \
             control group of 512 MiB",
    scenarios: &["m-contention"],
    thresholds: Some(|| thresholds(false)),
    measure,
};

/// Frames of 1,500 bytes with Ethernet's header, UDP and IP: 100 Mbit/s of them.
const NETWORK: &str = "network --size 1458 --rate 97.2Mbit";
/// A quarter of a CPU: bursts of 10/3 ms.
const CPU: &str = "cpu --threads 1 --share 25% --pause 10ms";
const MEMORY: &str = "memory 60MB";
const SWAPPED: &str = "memory 60MB --swap";
const DISK_FOLDER: &str = "/var/tmp";
const DISK: &str = "disk /var/tmp --read --size 100MB --block 256KiB";
/// The command of the loads.
const LOADS: &str = "emud";
/// Of the source's machine.
const MEMORY_BYTES: u64 = 512 << 20;
/// Up to 960 MB of loads need 423 MB of it.
const SWAP_MIB: u64 = 512;
const NO_SWAP: &str =
    "this host has less than 512 MiB of swap space: `swapon` a partition or a file";
const NO_LIMIT: &str = "no hierarchy of control groups on this host limits memory";

/// A row of the table.
struct Row {
    title: &'static str,
    load: &'static str,
    /// Whether loopback counts as a device that leads out of the machine.
    external: bool,
    /// Whether the nodes share the memory of the source's machine.
    small: bool,
    /// Numbers of nodes, ascending; with `per_cpu` for each CPU.
    nodes: &'static [u32],
    per_cpu: bool,
    cells: &'static [Cell],
    /// Other criteria that may alarm: in the source, or in another row of these loads.
    also: &'static [Criterion],
}

/// The most cells of a row.
const CELLS: usize = 3;

const ROWS: &[Row] = &[
    Row {
        title: "external",
        load: NETWORK,
        external: true,
        small: false,
        nodes: &[3, 4, 5, 6, 7, 8, 16, 32, 64, 128],
        per_cpu: false,
        cells: &[
            Cell {
                // 490 Mbit/s over 10 ms.
                theory: Some(5.0),
                ..cell(Criterion::Network, 5.0, Tolerance::Absolute(1.0))
            },
            Cell {
                may_be_silent: true,
                ..cell(Criterion::Cpu, 8.0, Tolerance::AtLeast(8.0))
            },
        ],
        also: &[],
    },
    Row {
        title: "internal",
        load: NETWORK,
        external: false,
        small: false,
        nodes: &[6, 7, 8, 9, 10, 11, 12, 13, 18, 32, 64, 128],
        per_cpu: false,
        cells: &[
            Cell {
                // 1 Gbit/s over 10 ms.
                theory: Some(10.0),
                known: Some((11.0, 13.0, "senders that wait for a CPU lack time to send")),
                ..cell(Criterion::Network, 11.0, Tolerance::Absolute(1.0))
            },
            Cell {
                may_be_silent: true,
                ..cell(Criterion::Cpu, 18.0, Tolerance::AtLeast(18.0))
            },
        ],
        also: &[],
    },
    Row {
        title: "cpu",
        load: CPU,
        external: false,
        small: false,
        nodes: &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16],
        per_cpu: true,
        cells: &[Cell {
            // Four quarters.
            theory: Some(4.0),
            known: Some((
                4.0,
                16.0,
                "four quarters fill a CPU only if their bursts follow one another exactly; otherwise it is idle \
                 for moments within 200 ms",
            )),
            ..cell(Criterion::Cpu, 4.0, Tolerance::Absolute(0.0))
        }],
        also: &[],
    },
    Row {
        title: "memory",
        load: MEMORY,
        external: false,
        small: false,
        nodes: &[1, 2, 3, 4],
        per_cpu: false,
        cells: &[Cell {
            // It never pauses.
            theory: Some(1.0),
            known: Some((
                1.0,
                4.0,
                "the scheduler moves a single load between CPUs within 200 ms",
            )),
            ..cell(Criterion::Cpu, 1.0, Tolerance::Absolute(0.0))
        }],
        also: &[Criterion::PageIn, Criterion::PageOut, Criterion::Disk],
    },
    Row {
        title: "memory of 512 MiB",
        load: SWAPPED,
        external: false,
        small: true,
        nodes: &[6, 7, 8, 9, 10, 12, 16],
        per_cpu: false,
        // 512 MiB hold eight times 60 MB and some programs.
        cells: &[
            Cell {
                theory: Some(9.0),
                ..cell(Criterion::PageIn, 8.0, Tolerance::Absolute(1.0))
            },
            Cell {
                theory: Some(9.0),
                ..cell(Criterion::PageOut, 8.0, Tolerance::Absolute(1.0))
            },
            Cell {
                theory: Some(9.0),
                known: Some((
                    9.0,
                    16.0,
                    "this disk swaps faster than the CPUs write memory, so it is empty at times",
                )),
                may_be_silent: true,
                ..cell(Criterion::Disk, 8.0, Tolerance::Absolute(1.0))
            },
        ],
        also: &[Criterion::Cpu],
    },
    Row {
        title: "disk",
        load: DISK,
        external: false,
        small: false,
        nodes: &[1, 2, 3, 4, 6, 8, 12, 16, 24],
        per_cpu: false,
        cells: &[Cell {
            known: Some((
                4.0,
                24.0,
                "this disk answers faster, so several loads are at times between two reads at once",
            )),
            // One load leaves the disk idle between two reads.
            ..cell(Criterion::Disk, 2.0, Tolerance::Range(2.0, 4.0))
        }],
        also: &[],
    },
];

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let rows = ROWS.iter().filter(|row| bench.swap || !row.small);
    let figures: Result<Vec<_>, _> = rows.map(|row| row.figures(bench, cpus)).collect();
    Ok(figures?.concat())
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

/// Returns the swap space of a host by its /proc/swaps, in MiB. The kernel does not count the first page of an area, which
/// has its header.
fn swap_mib(swaps: &str) -> u64 {
    let sizes = swaps.lines().skip(1).filter_map(|area| {
        let kib: u64 = area.split_whitespace().nth(2)?.parse().ok()?;
        Some(kib.div_ceil(1024))
    });
    sizes.sum()
}

fn has_swap() -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    of_swap().is_some() && swap_mib(&swaps) >= SWAP_MIB
}

/// What a run with one number of nodes shows.
struct Shown {
    verdict: RunVerdict,
    /// Of each cell, whether its criterion alarms.
    alarms: [bool; CELLS],
    /// Criteria that alarm and should not.
    others: Vec<&'static str>,
}

impl Row {
    fn figures(&self, bench: &Bench<'_>, cpus: u32) -> Result<Vec<Figure>, ReproduceError> {
        if self.small && !has_swap() {
            return Ok(self.lacking(NO_SWAP));
        }
        let memory = match self.small.then(|| SmallMemory::create(MEMORY_BYTES)) {
            None => None,
            Some(Ok(None)) => return Ok(self.lacking(NO_LIMIT)),
            Some(Ok(group)) => group,
            Some(Err(error)) => {
                return Err(ReproduceError::Kernel {
                    what: "a control group with less memory",
                    error: error.to_string(),
                });
            }
        };
        let until: Vec<_> = (0..self.cells.len()).collect();
        let (mut seen, mut runs, mut others) = (Seen::new(), vec![], BTreeSet::new());
        while let Some(nodes) = next(self.nodes, &seen, &until) {
            let count = if self.per_cpu { nodes * cpus } else { nodes };
            let shown = self.run(bench, count, memory.as_ref())?;
            runs.push(shown.verdict);
            others.extend(shown.others);
            seen.insert(nodes, shown.alarms);
        }
        let most = seen.keys().next_back().copied().map_or(0.0, f64::from);
        let fewest = |cell| first(&seen, cell).map(f64::from);
        let cells = self.cells.iter().enumerate();
        let mut figures: Vec<_> = cells
            .map(|(index, cell)| cell.judged(self.titles(cell), fewest(index), most, &runs))
            .collect();
        figures.push(self.others(others.len(), &runs));
        Ok(figures)
    }

    fn run(
        &self,
        bench: &Bench<'_>,
        count: u32,
        memory: Option<&SmallMemory>,
    ) -> Result<Shown, ReproduceError> {
        let has_disk = self
            .cells
            .iter()
            .any(|cell| cell.criterion == Criterion::Disk);
        let disk = has_disk.then(|| match self.small {
            true => of_swap().and_then(DiskUse::of),
            false => DiskUse::watch(DISK_FOLDER),
        });
        let config = thresholds(self.external);
        let theta = theta(&config);
        let counts = bench.judged(
            &Variant {
                title: &format!("{}, {count} nodes", self.title),
                scenario: "m-contention",
                env: &[
                    ("NODES", count.to_string()),
                    ("LOAD", self.load.to_owned()),
                    ("GROUP", memory.map(SmallMemory::procs).unwrap_or_default()),
                    ("TIME", if bench.quick { "3" } else { "10" }.to_owned()),
                ],
                ..Variant::default()
            },
            &config,
        )?;
        let disk = disk.flatten();
        let is_full = disk.is_none_or(|disk| disk.longest(counts.began_ns) >= theta);
        let contention = by_loads(counts.contention);
        let alarms = |criterion: Criterion| {
            let alarms = criterion.alarms(&contention);
            if alarms && criterion == Criterion::Disk && !is_full {
                (bench.progress)(&format!(
                    "{}, {count} nodes: the disk was empty at times, so the alarm does not count",
                    self.title
                ));
            }
            alarms && (criterion != Criterion::Disk || is_full)
        };
        let cells = self.cells.iter().map(|cell| cell.criterion);
        let expected: Vec<_> = cells.chain(self.also.iter().copied()).collect();
        let others = Criterion::ALL.into_iter();
        let others = others.filter(|of| !expected.contains(of) && alarms(*of));
        Ok(Shown {
            verdict: counts.verdict,
            others: others.map(Criterion::name).collect(),
            alarms: std::array::from_fn(|n| {
                self.cells.get(n).is_some_and(|cell| alarms(cell.criterion))
            }),
        })
    }

    /// Returns the titles of a cell with and without an alarm.
    fn titles(&self, cell: &Cell) -> [String; 2] {
        let each = if self.per_cpu { ", for each CPU" } else { "" };
        let title = format!("{}: {}{each}", self.title, cell.criterion.name());
        [title.clone(), format!("{title}, no alarm up to")]
    }

    /// Returns the empty cells of the row.
    fn others(&self, number: usize, runs: &[RunVerdict]) -> Figure {
        let figure = Figure::new(
            format!("{}: other criteria with an alarm", self.title),
            "criteria",
        );
        let figure = figure.published(0.0).within(Tolerance::Absolute(0.0));
        figure.measured(Some(number as f64), worst(runs))
    }

    fn lacking(&self, remedy: &'static str) -> Vec<Figure> {
        let figure = |cell: &Cell| {
            let [title, _] = self.titles(cell);
            let figure = Figure::new(title, NODES).published(cell.published);
            figure.lacking(remedy)
        };
        self.cells.iter().map(figure).collect()
    }
}

/// Leaves out what others cause: with swap space, the kernel's thread kdamond of one host wrote idle pages without any load.
fn by_loads(contention: Vec<Span>) -> Vec<Span> {
    let is_theirs = |span: &Span| span.by.first().is_none_or(|most| most.group == LOADS);
    contention.into_iter().filter(is_theirs).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::experiment::reproduce::FigureVerdict;
    use crate::experiment::scenario::{Overrides, Program, shipped};
    use emud_monitor::log::SpanShare;

    #[test]
    fn contention_by_other_programs_does_not_count() {
        let of = |groups: &[(&str, f64)]| {
            let shares = groups.iter().map(|(group, share)| SpanShare {
                group: (*group).to_owned(),
                share: *share,
            });
            let span = Span {
                resource: "memory".to_owned(),
                what: "page-out".to_owned(),
                since_mono_ns: 0,
                until_mono_ns: 1,
                duration_ns: 1,
                by: shares.collect(),
            };
            Criterion::PageOut.alarms(&by_loads(vec![span]))
        };
        assert!(of(&[("emud", 0.6), ("kswapd0", 0.4)]));
        assert!(!of(&[("kdamond.0", 0.6), ("emud", 0.4)]));
        // Nobody's is not known to be another's.
        assert!(of(&[]));
    }

    fn cells() -> impl Iterator<Item = (&'static Row, &'static Cell)> {
        let cells = |row: &'static Row| row.cells.iter().map(move |cell| (row, cell));
        ROWS.iter().flat_map(cells)
    }

    /// If the criterion alarms with the first number, it may with fewer.
    #[test]
    fn the_first_number_is_no_result_unless_it_is_one() {
        for (row, cell) in cells().filter(|(row, _)| row.nodes[0] > 1) {
            let least = row.nodes[0];
            let first = Some(f64::from(least));
            let first = cell.judged(
                row.titles(cell),
                first,
                least.into(),
                &[RunVerdict::Contended],
            );
            assert_eq!(first.verdict, FigureVerdict::Deviates, "{}", first.figure);
        }
    }

    /// Table 4.1 of the source, as it is.
    #[test]
    fn all_cells_are_there() {
        let of = |criterion| {
            let all = cells().filter(|(_, cell)| cell.criterion == criterion);
            all.map(|(row, cell)| (row.title, cell.published))
                .collect::<Vec<_>>()
        };
        let paged = "memory of 512 MiB";
        assert_eq!(
            of(Criterion::Network),
            [("external", 5.0), ("internal", 11.0)]
        );
        let cpu = [
            ("external", 8.0),
            ("internal", 18.0),
            ("cpu", 4.0),
            ("memory", 1.0),
        ];
        assert_eq!(of(Criterion::Cpu), cpu);
        assert_eq!(of(Criterion::PageIn), [(paged, 8.0)]);
        assert_eq!(of(Criterion::PageOut), [(paged, 8.0)]);
        assert_eq!(of(Criterion::Disk), [(paged, 8.0), ("disk", 2.0)]);
        assert!(ROWS.iter().all(|row| row.cells.len() <= CELLS));
    }

    #[test]
    fn a_host_that_is_too_strong_for_an_alarm_is_named() {
        let of = |row: &Row, cell: usize, fewest| {
            let (cell, runs) = (&row.cells[cell], [RunVerdict::Contended]);
            let figure = cell.judged(row.titles(cell), fewest, 128.0, &runs);
            (figure.figure, figure.measured, figure.verdict)
        };
        let silent = (
            "external: cpu, no alarm up to".to_owned(),
            Some(128.0),
            FigureVerdict::Within,
        );
        assert_eq!(of(&ROWS[0], 1, None), silent);
        let alarm = (
            "external: cpu".to_owned(),
            Some(40.0),
            FigureVerdict::Within,
        );
        assert_eq!(of(&ROWS[0], 1, Some(40.0)), alarm);
        let missing = ("external: network".to_owned(), None, FigureVerdict::Missing);
        assert_eq!(of(&ROWS[0], 0, None), missing);
    }

    #[test]
    fn contention_is_the_result_and_a_failure_is_none() {
        let (row, clean, contended) = (&ROWS[0], RunVerdict::Clean, RunVerdict::Contended);
        let of = |runs: &[RunVerdict]| {
            let cell = &row.cells[0];
            let network = cell.judged(row.titles(cell), Some(5.0), 128.0, runs);
            [network, row.others(0, runs)].map(|figure| figure.verdict)
        };
        assert_eq!(of(&[clean, contended]), [FigureVerdict::Within; 2]);
        for failed in [RunVerdict::Invalid, RunVerdict::Unwatched] {
            assert_eq!(of(&[clean, failed, contended]), [FigureVerdict::Invalid; 2]);
        }
        let other = row.others(1, &[contended]);
        assert_eq!(other.verdict, FigureVerdict::Deviates);
    }

    #[test]
    fn swap_space_is_the_sum_of_all_areas() {
        let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let of = |areas: &[&str]| swap_mib(&format!("{head}{}", areas.concat()));
        assert_eq!([of(&[]), swap_mib("")], [0; 2]);
        // `fallocate -l 512M`, and a device of 8 MiB.
        let file = "/var/tmp/a\\040name                     file\t\t524284\t\t0\t\t-2\n";
        let device = "/dev/zram0                              partition\t8188\t\t4096\t\t100\n";
        assert_eq!([of(&[file]), of(&[device])], [512, 8]);
        assert_eq!(of(&[file, device]), 520);
    }

    /// Then the run is invalid.
    #[test]
    fn a_load_that_fails_ends_the_service_with_an_error() {
        let scenario = shipped::find("m-contention").unwrap();
        let plan = scenario.plan(&Overrides::default()).unwrap();
        let host = plan.nodes.iter().find(|node| node.name == "host");
        let Some(Program::Shell(text)) = &host.unwrap().command else {
            panic!()
        };
        let code = |emud: &str| {
            let mut host = Command::new("sh");
            host.args(["-c", text]);
            host.envs([("EMUD", emud), ("NODES", "3")]);
            host.status().unwrap().code()
        };
        assert_eq!([code("true"), code("false")], [Some(0), Some(1)]);
    }
}
