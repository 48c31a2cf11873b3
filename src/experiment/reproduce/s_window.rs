// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: a TCP connection has its window in each round trip. With a window of W bytes, a round trip of T
//! and a link that carries at most C of its data, N connections have min(N * W / T, C).

use std::time::Duration;

use emud_monitor::Config;

use super::counts::Counts;
use super::live::{Variant, lacks};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, s_overhead};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-window",
    description: "TCP windows of 16 to 256 KiB, one connection and as many as fill the link",
    source: s_overhead::EXPERIMENT.source,
    method: "data that iperf3 received for 10 s, as a share of the link's rate; 100 Mbit/s with ten times the \
             round trips, so the same data in flight, and 1 Gbit/s. --quick: 5 s of 16, 64 and \
             256 KiB, and 100 Mbit/s only. A CPU is contended if it is busy for three round trips and for 200 ms, since \
             iperf3 polls while it waits for its peer",
    scenarios: &["s-window"],
    thresholds: None,
    measure,
};

const KIB: f64 = 1024.0;
/// Data of a segment with time stamps, and what it takes on the wire.
const SEGMENT: f64 = 1448.0;
const FRAME: f64 = 1538.0;

/// Most that the host adds to a round trip, ms.
const HOST_MS: f64 = 0.25;
const LACKS: &str = "connections need the program iperf3: install the Debian package iperf3";
const HOST: &str = "the host adds up to 0.25 ms to the round trip";

/// A link of the source, or one with a tenth of its rate and ten times its round trips.
#[derive(Debug, Clone, Copy)]
struct Scale {
    rate_mbit_s: f64,
    times: f64,
}

const SCALED: Scale = Scale {
    rate_mbit_s: 100.0,
    times: 10.0,
};
const FULL: Scale = Scale {
    rate_mbit_s: 1000.0,
    times: 1.0,
};

#[derive(Debug, Clone, Copy)]
struct Case {
    window_kib: f64,
    rtt_ms: f64,
    connections: u32,
    /// Of the link's rate, %.
    published: f64,
}

/// One connection, and a round trip of 1 ms.
const ALONE: [(f64, f64); 5] = [
    (16.0, 13.1),
    (32.0, 26.2),
    (64.0, 52.4),
    (128.0, 100.0),
    (256.0, 100.0),
];
/// Connections that fill the link with a round trip of 20 ms; half as many fill half of it.
const FILLING: [(f64, u32); 5] = [
    (16.0, 153),
    (32.0, 77),
    (64.0, 39),
    (128.0, 20),
    (256.0, 10),
];

const QUICK: [f64; 3] = [16.0, 64.0, 256.0];

fn cases() -> impl Iterator<Item = Case> {
    let alone = ALONE.iter().map(|(window_kib, published)| Case {
        window_kib: *window_kib,
        rtt_ms: 1.0,
        connections: 1,
        published: *published,
    });
    let filling = FILLING.iter().flat_map(|(window_kib, connections)| {
        let case = |connections, published| Case {
            window_kib: *window_kib,
            rtt_ms: 20.0,
            connections,
            published,
        };
        [case(*connections, 100.0), case(connections / 2, 50.0)]
    });
    alone.chain(filling)
}

impl Case {
    /// The kernel sends whole segments.
    fn segments(self) -> f64 {
        (self.window_kib * KIB / SEGMENT).floor()
    }

    /// Data of all connections, % of the rate. A segment leaves the link only when it has passed it as a
    /// whole, which is a part of the round trip.
    fn theory(self, scale: Scale) -> f64 {
        let frame_ms = FRAME * 8.0 / (scale.rate_mbit_s * 1e3);
        let rtt_ms = self.rtt_ms * scale.times + frame_ms;
        let in_flight = f64::from(self.connections) * self.segments() * SEGMENT * 8.0;
        let share = in_flight / (rtt_ms * scale.rate_mbit_s * 1e3);
        100.0 * share.min(SEGMENT / FRAME)
    }

    fn figure(self, scale: Scale) -> Figure {
        let figure = Figure::new(self.title(scale), "% of the rate").published(self.published);
        let theory = self.theory(scale);
        let figure = figure.theory(theory).within(Tolerance::Share(0.05));
        if self.rtt_ms * scale.times > 1.0 {
            return figure;
        }
        // Where the link is full, a longer round trip explains little or nothing.
        let longer = Self {
            rtt_ms: self.rtt_ms + HOST_MS / scale.times,
            ..self
        };
        figure.known(longer.theory(scale), theory, HOST)
    }

    fn title(self, scale: Scale) -> String {
        let connections = match self.connections {
            1 => "1 connection".to_owned(),
            n => format!("{n} connections"),
        };
        let rtt = self.rtt_ms * scale.times;
        let (rate, window) = (scale.rate_mbit_s, self.window_kib);
        format!("{rate} Mbit/s, RTT {rtt} ms, {window} KiB, {connections}")
    }
}

/// iperf3 3.12 keeps a CPU busy while it waits for its peer: with 200 ms for one round trip at the start, and up to
/// 450 ms when 153 connections end. The other CPUs have time then, so it is no contention.
fn thresholds(bench: &Bench<'_>, rtt_ms: f64) -> Config {
    let mut config = bench.settings.config.clone();
    if let (false, Some(cpu)) = (bench.own_thresholds, &mut config.cpu) {
        cpu.theta = cpu.theta.max(Duration::from_secs_f64(3.0 * rtt_ms / 1e3));
    }
    config
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    if lacks("iperf3") {
        return Ok(vec![Figure::new("data", "% of the rate").lacking(LACKS)]);
    }
    let (scales, seconds): (&[Scale], _) = match bench.quick {
        true => (&[SCALED], 5),
        false => (&[SCALED, FULL], 10),
    };
    let mut figures = vec![];
    for scale in scales {
        for case in cases().filter(|case| !bench.quick || QUICK.contains(&case.window_kib)) {
            let title = case.title(*scale);
            let rtt_ms = case.rtt_ms * scale.times;
            let variant = Variant {
                title: &title,
                scenario: "s-window",
                set: &[
                    &format!("rate={}Mbit", scale.rate_mbit_s),
                    &format!("delay={}ms", rtt_ms / 2.0),
                ],
                env: &[
                    ("SEGMENTS", case.segments().to_string()),
                    ("CONNECTIONS", case.connections.to_string()),
                    ("LOAD", seconds.to_string()),
                    // Slow start doubles what is in flight in each round trip, from 10 segments on.
                    ("WARM_UP", (1.0 + rtt_ms / 100.0).ceil().to_string()),
                ],
                ..Variant::default()
            };
            let counts = bench.run_by(&variant, &thresholds(bench, rtt_ms))?;
            let share = |counts: &Counts| {
                let bit_s: f64 = counts.iperf("sender")?.bit_s.iter().sum();
                Some(100.0 * bit_s / (scale.rate_mbit_s * 1e6))
            };
            let figure = case.figure(*scale);
            let figure = figure.measured(share(&counts), Some(counts.verdict));
            figures.push(bench.or_beyond_host(figure, &variant, share)?);
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use emud_monitor::log::RunVerdict;

    use super::super::FigureVerdict;
    use super::*;

    /// 128 KiB nearly fill the link even with the longer round trip, and 256 KiB do.
    #[test]
    fn a_longer_round_trip_explains_what_it_causes_only() {
        use FigureVerdict::{Deviates, Explained, Within};
        let verdicts = |shares: [f64; 5]| {
            let cases = cases().zip(shares).map(|(case, share)| {
                let figure = case.figure(FULL);
                figure
                    .measured(Some(share), Some(RunVerdict::Clean))
                    .verdict
            });
            cases.collect::<Vec<_>>()
        };
        assert_eq!(
            verdicts([11.74, 23.37, 48.25, 83.0, 90.0]),
            [Explained, Explained, Explained, Explained, Within]
        );
        let measured = verdicts([9.9, 19.0, 41.0, 78.28, 82.33]);
        assert_eq!(measured, [Deviates; 5]);
    }

    /// The source counts windows, not segments, and the link's rate, not its data: each of its figures
    /// follows but for these two.
    #[test]
    fn theory_is_what_was_published_in_whole_segments() {
        for scale in [SCALED, FULL] {
            for case in cases() {
                let ideal = 100.0 * f64::from(case.connections) * case.window_kib * KIB * 8.0
                    / (case.rtt_ms * 1e6);
                let near = (ideal.min(100.0) - case.published).abs();
                // Half of 153 connections are 76.
                assert!(near <= 5.0, "{case:?}: {ideal}");
                let theory = case.theory(scale);
                let share = theory / ideal.min(100.0);
                assert!((0.93..=1.0).contains(&share), "{case:?}: {theory}");
            }
        }
        let first = cases().next().unwrap();
        assert_eq!(first.segments(), 11.0);
        // 11 * 1448 * 8 bit in 1.0123 ms.
        assert!((first.theory(FULL) - 12.588).abs() < 0.001);
    }
}
