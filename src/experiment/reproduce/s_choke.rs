// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: a receiver whose disk is slower than its network. Data that arrives at lambda and is written at mu
//! waits in a queue in memory; one of q bytes is full after z = q / (lambda - mu), and from then on the
//! sender has mu.

use emud_monitor::Config;
use emud_monitor::event::Resource;
use emud_monitor::log::{RunVerdict, Span};

use super::counts::{Counts, but_contended};
use super::disk_use::{DiskUse, theta};
use super::live::Variant;
use super::m_contention::thresholds;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, s_overhead};
use crate::experiment::traffic::Stored;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-choke",
    description: "A receiver that writes more slowly than it receives, until its memory is full",
    source: s_overhead::EXPERIMENT.source,
    method: "a TCP transfer through the scenario s-choke into a queue of 16 MiB in front of a file: writes at a set \
             rate behind 40 Mbit/s, and synchronous writes beside 8 readers of the same disk behind 100 Mbit/s, \
             instead of 1 Gbit/s; the latter judged by the published thresholds, whatever --monitor says",
    scenarios: &["s-choke"],
    thresholds: None,
    measure,
};

const PORT: u16 = 6001;
/// The queue, bytes.
const MEMORY: f64 = 16.0 * 1024.0 * 1024.0;
/// Data of a frame.
const DATA: f64 = 1448.0 / 1538.0;
/// Of the scenario's file.
const FOLDER: &str = "/var/tmp";
const IDLE: &str =
    "this disk is empty at times, whatever waits for it, so there is nothing to alarm for";
const FAST: &str = "the queue does not fill: this disk writes as fast as data arrives";
const UNEVEN: &str = "the disk of this host does not write at a constant rate beside other work";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = vec![];
    // Of 1 Gbit/s: 40 and 60 %.
    for mbit_s in [16, 24] {
        figures.extend(paced(bench, f64::from(mbit_s))?);
    }
    figures.extend(disk(bench)?);
    Ok(figures)
}

/// Bytes/s that a link of this rate carries.
fn arrives(link_mbit_s: f64) -> f64 {
    link_mbit_s * 1e6 / 8.0 * DATA
}

/// Time until the queue is full, s.
fn fills(lambda: f64, mu: f64) -> f64 {
    MEMORY / (lambda - mu)
}

/// What a receiver counted, in s and bytes/s; `None`: its queue was never full.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Until the queue was full, or with one that never was, until the end.
    lambda: Option<f64>,
    /// When the queue was full.
    z: Option<f64>,
    /// What was read, and so written, from then on.
    mu: Option<f64>,
}

impl Found {
    fn of(stored: &Stored) -> Self {
        let rate = |bytes: u64, from: u64, to: u64| {
            Some(bytes as f64 * 1e9 / to.saturating_sub(from) as f64)
        };
        let (first, last) = (stored.first_ns, stored.last_ns);
        match stored.full_ns {
            Some(full) => Self {
                lambda: rate(stored.full_bytes, first, full),
                z: Some(full.saturating_sub(first) as f64 / 1e9),
                mu: rate(stored.bytes - stored.full_bytes, full, last),
            },
            None => Self {
                lambda: rate(stored.bytes, first, last),
                ..Self::default()
            },
        }
    }

    fn arrived(self, title: &str, link_mbit_s: f64, run: RunVerdict) -> Figure {
        let figure = Figure::new(format!("{title}: data until the queue is full"), "MB/s");
        let figure = figure.theory(arrives(link_mbit_s) / 1e6);
        let figure = figure.within(Tolerance::Share(0.1));
        figure.measured(self.lambda.map(|rate| rate / 1e6), Some(run))
    }
}

fn found(counts: &Counts) -> Found {
    counts.stored(PORT).map_or_else(Found::default, Found::of)
}

fn paced(bench: &Bench<'_>, mbit_s: f64) -> Result<[Figure; 3], ReproduceError> {
    let (lambda, mu) = (arrives(40.0), mbit_s * 1e6 / 8.0);
    let z = fills(lambda, mu);
    let title = format!("writes at {mbit_s} Mbit/s");
    let counts = bench.run(&Variant {
        title: &title,
        scenario: "s-choke",
        env: &[
            ("TIME", format!("{:.0}s", z + 8.0)),
            ("STORE", format!("--rate {mbit_s}Mbit")),
        ],
        ..Variant::default()
    })?;
    let (run, found) = (counts.verdict, found(&counts));
    let full = Figure::new(format!("{title}: the queue is full"), "s").theory(z);
    let after = Figure::new(format!("{title}: data after that"), "MB/s").theory(mu / 1e6);
    Ok([
        found.arrived(&title, 40.0, run),
        full.within(Tolerance::Share(0.1))
            .measured(found.z, Some(run)),
        after
            .within(Tolerance::Share(0.1))
            .measured(found.mu.map(|rate| rate / 1e6), Some(run)),
    ])
}

/// Theory has the rate of the disk after the queue was full.
fn disk(bench: &Bench<'_>) -> Result<[Figure; 3], ReproduceError> {
    let config = Config {
        emulator: bench.settings.config.emulator,
        ..thresholds(false)
    };
    let theta = theta(&config);
    let disk = DiskUse::watch(FOLDER);
    let counts = bench.judged(
        &Variant {
            title: "writes beside 8 readers of the disk",
            scenario: "s-choke",
            set: &["rate=100Mbit"],
            env: &[
                ("TIME", if bench.quick { "15s" } else { "30s" }.to_owned()),
                ("STORE", "--sync --block 16KiB".to_owned()),
                // Beside them, the disk has a synchronous write at nearly any time.
                ("LOADS", "8".to_owned()),
            ],
            ..Variant::default()
        },
        &config,
    )?;
    let full_ns = counts.stored(PORT).and_then(|stored| stored.full_ns);
    let full_ns = full_ns.unwrap_or(u64::MAX);
    Ok(of_disk(
        found(&counts),
        counts.verdict,
        Disk {
            alarms: alarms(&counts.contention, full_ns),
            busy: disk.map_or(CERTAIN, |disk| {
                disk.longest(full_ns).div_duration_f64(theta)
            }),
        },
    ))
}

/// While the queue is full.
#[derive(Debug, Clone, Copy)]
struct Disk {
    /// Its criterion alarms.
    alarms: bool,
    /// The longest time in which no sample of the kernel's own count found it empty, in lengths of the criterion.
    busy: f64,
}

/// So long a time without an empty sample has to raise an alarm. In a shorter one the disk may be empty between samples.
const CERTAIN: f64 = 3.0;

/// Returns whether the criterion of the disk has an alarm that lasts until this time, or a later one.
fn alarms(spans: &[Span], from_ns: u64) -> bool {
    let is_disk = |span: &&Span| span.resource == Resource::Disk.name();
    (spans.iter().filter(is_disk)).any(|span| span.until_mono_ns >= from_ns)
}

/// Contention is what is measured. But a host that lacks something else may keep its disk idle. Readers alone raise an
/// alarm, so it counts only while the receiver cannot write what arrives, and if the kernel's count agrees.
fn of_disk(found: Found, run: RunVerdict, disk: Disk) -> [Figure; 3] {
    const TITLE: &str = "writes of a busy disk";
    let expected = but_contended(run);
    let full = Figure::new(format!("{TITLE}: the queue is full"), "s");
    let full = full.within(Tolerance::Share(0.1));
    let alarm = Figure::new(
        format!("{TITLE}: its criterion alarms while the queue is full"),
        "runs",
    );
    let alarm = alarm.theory(1.0).within(Tolerance::Absolute(0.0));
    let (full, alarm) = match found.z.zip(found.mu) {
        None => (full.lacking(FAST), alarm.lacking(FAST)),
        Some((z, mu)) => {
            let theory = fills(arrives(100.0), mu);
            let full = full
                .theory(theory)
                .known(theory * 0.5, theory * 1.5, UNEVEN)
                .measured(Some(z), Some(expected));
            let runs = |is: bool| Some(f64::from(u8::from(is)));
            let alarm = match disk.alarms {
                true => alarm.measured(runs(disk.busy >= 1.0), Some(expected)),
                // Without a CPU the readers leave the disk idle.
                false => match disk.busy < CERTAIN {
                    true => alarm.known(0.0, 0.0, IDLE),
                    false => alarm,
                }
                .measured(runs(false), Some(run)),
            };
            (full, alarm)
        }
    };
    [found.arrived(TITLE, 100.0, expected), full, alarm]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;

    /// 40 Mbit/s carry 4.707 MB/s, of which 2 are written.
    #[test]
    fn theory() {
        let z = fills(arrives(40.0), 2e6);
        assert!((z - 6.1967).abs() < 1e-3, "{z}");
    }

    #[test]
    fn what_was_full_divides_the_time() {
        let full = Stored {
            bytes: 9_000_000,
            first_ns: 1_000_000_000,
            last_ns: 5_000_000_000,
            full_ns: Some(2_000_000_000),
            full_bytes: 3_000_000,
            ..Stored::default()
        };
        let found = Found::of(&full);
        let of = [found.lambda, found.z, found.mu];
        assert_eq!(of, [3e6, 1.0, 2e6].map(Some));
        let never = Found::of(&Stored {
            full_ns: None,
            ..full
        });
        let of = [never.lambda, never.z, never.mu];
        assert_eq!(of, [Some(2.25e6), None, None]);
    }

    #[test]
    fn an_alarm_of_the_disk_is_the_result() {
        use FigureVerdict::{Contended, Deviates, Explained, Invalid, Missing, Within};
        let of = |share: f64, run, alarms, busy| {
            let found = Found {
                lambda: Some(arrives(100.0)),
                z: Some(share * MEMORY / 10e6),
                mu: Some(arrives(100.0) - 10e6),
            };
            of_disk(found, run, Disk { alarms, busy }).map(|figure| figure.verdict)
        };
        assert_eq!(of(1.0, RunVerdict::Contended, true, 1.0), [Within; 3]);
        let none = of(1.0, RunVerdict::Clean, false, CERTAIN);
        assert_eq!(none, [Within, Within, Deviates]);
        assert_eq!(of(1.0, RunVerdict::Clean, false, 2.9)[2], Explained);
        // An alarm of a disk that was empty at times is a false one, and without any there is nothing to judge.
        let empty = [true, false].map(|alarms| of(1.0, RunVerdict::Clean, alarms, 0.9)[2]);
        assert_eq!(empty, [Deviates, Explained]);
        // Without a CPU the readers leave the disk idle.
        for busy in [0.9, CERTAIN] {
            let other = of(1.0, RunVerdict::Contended, false, busy);
            assert_eq!(other, [Within, Within, Contended]);
        }
        assert_eq!(of(1.0, RunVerdict::Invalid, true, 1.0), [Invalid; 3]);
        let late = [1.4, 1.6].map(|share| of(share, RunVerdict::Contended, true, 1.0)[1]);
        assert_eq!(late, [Explained, Deviates]);
        // Readers raise an alarm, too, beside a receiver whose queue does not fill.
        let disk = Disk {
            alarms: true,
            busy: CERTAIN,
        };
        let [_, never, alarm] = of_disk(Found::default(), RunVerdict::Clean, disk);
        assert_eq!([never.verdict, alarm.verdict], [Missing; 2]);
        assert_eq!(never.explanation.as_deref(), Some(FAST));
    }

    #[test]
    fn an_alarm_counts_while_the_queue_is_full() {
        let span = |resource: Resource, until_mono_ns| Span {
            resource: resource.name().to_owned(),
            what: String::new(),
            since_mono_ns: 10,
            until_mono_ns,
            duration_ns: 0,
            by: vec![],
        };
        let of = |resource, until| alarms(&[span(resource, until)], 50);
        assert!(of(Resource::Disk, 50) && !of(Resource::Disk, 49) && !of(Resource::Cpu, 99));
    }
}
