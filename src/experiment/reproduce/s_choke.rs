// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: a receiver whose disk is slower than its network. Data that arrives at lambda and is written at mu
//! waits in a queue in memory; one of q bytes is full after z = q / (lambda - mu), and from then on the
//! sender has mu.

use emud_monitor::event::Resource;
use emud_monitor::log::RunVerdict;

use super::counts::{Counts, but_contended};
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
    measure,
};

const PORT: u16 = 6001;
/// The queue, bytes.
const MEMORY: f64 = 16.0 * 1024.0 * 1024.0;
/// Data of a frame.
const DATA: f64 = 1448.0 / 1538.0;
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
        &thresholds(false),
    )?;
    let alarms = counts.contended.contains(&Resource::Disk);
    Ok(of_disk(found(&counts), counts.verdict, alarms))
}

/// Contention is what is measured. But a host that lacks something else may keep its disk idle.
fn of_disk(found: Found, run: RunVerdict, alarms: bool) -> [Figure; 3] {
    const TITLE: &str = "writes of a busy disk";
    let expected = but_contended(run);
    let full = Figure::new(format!("{TITLE}: the queue is full"), "s");
    let full = full.within(Tolerance::Share(0.1));
    let full = match found.z.zip(found.mu) {
        Some((z, mu)) => {
            let theory = fills(arrives(100.0), mu);
            full.theory(theory)
                .known(theory * 0.5, theory * 1.5, UNEVEN)
                .measured(Some(z), Some(expected))
        }
        None => full.lacking(FAST),
    };
    let alarm = Figure::new(format!("{TITLE}: its criterion alarms"), "runs").theory(1.0);
    let alarm = alarm.within(Tolerance::Absolute(0.0));
    let of_alarm = if alarms { expected } else { run };
    [
        found.arrived(TITLE, 100.0, expected),
        full,
        alarm.measured(Some(f64::from(u8::from(alarms))), Some(of_alarm)),
    ]
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
        use FigureVerdict::{Contended, Deviates, Explained, Invalid, Within};
        let of = |share: f64, run, alarms| {
            let found = Found {
                lambda: Some(arrives(100.0)),
                z: Some(share * MEMORY / 10e6),
                mu: Some(arrives(100.0) - 10e6),
            };
            of_disk(found, run, alarms).map(|figure| figure.verdict)
        };
        assert_eq!(of(1.0, RunVerdict::Contended, true), [Within; 3]);
        let none = of(1.0, RunVerdict::Clean, false);
        assert_eq!(none, [Within, Within, Deviates]);
        // Without a CPU the readers leave the disk idle.
        let other = of(1.0, RunVerdict::Contended, false);
        assert_eq!(other, [Within, Within, Contended]);
        assert_eq!(of(1.0, RunVerdict::Invalid, true), [Invalid; 3]);
        let late = [1.4, 1.6].map(|share| of(share, RunVerdict::Contended, true)[1]);
        assert_eq!(late, [Explained, Deviates]);
        let [_, never, _] = of_disk(Found::default(), RunVerdict::Clean, true);
        assert_eq!(never.verdict, FigureVerdict::Missing);
        assert_eq!(never.explanation.as_deref(), Some(FAST));
    }
}
