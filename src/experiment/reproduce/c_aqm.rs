// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: queue managers compared, with NewReno flows in virtual time.

use std::thread;

use super::newreno::{Network, Run};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};
use crate::profile::aqm::choice;
use crate::profile::{self, Aqm, Length};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "c-aqm",
    description: "PI, A-RED and REM with 100 to 500 greedy TCP flows: mean delay in the queue",
    source: "University of Cyprus, wireless and DiffServ pilots: ns-2 simulations of queue managers",
    method: "emud's managers on a queue in virtual time with NewReno flows, packet by packet; gains of ns-2 \
             and of the papers",
    scenarios: &[],
    measure,
};

const RATE: u64 = 15_000_000;
const MS: u64 = 1_000_000;
/// 200 packets of 1000 bytes: 106.7 ms.
const TARGET: Length = Length::Bytes(200_000);
/// Published mean delays in ms: flows, PI, A-RED, REM.
const PUBLISHED: [(usize, [f64; 3]); 5] = [
    (100, [119.5, 106.5, 108.8]),
    (200, [145.0, 112.4, 116.3]),
    (300, [168.2, 121.7, 125.4]),
    (400, [183.3, 150.4, 134.9]),
    (500, [194.9, 160.6, 143.3]),
];
const NAMES: [&str; 3] = ["PI", "A-RED", "REM"];
const TOLERANCE: Tolerance = Tolerance::Share(0.15);
/// Differences of A-RED with 400 and 500 flows, in ms.
const ARED_FROM: f64 = 105.0;
const ARED_TO: f64 = 128.0;
const ARED_WHY: &str = "the published delay leaves the target as if the probability had reached its bound of \
                        0.5; here the probability stays below it";

fn network(flows: usize) -> Network {
    Network {
        flows,
        rate: RATE,
        packet_bytes: 1_000,
        round_trip_ns: 2 * 120 * MS,
        buffer_packets: 500,
        window: 240.0,
        duration_ns: 100_000 * MS,
    }
}

fn managers() -> [Aqm; 3] {
    let pi = profile::Pi::default();
    let ared = profile::Ared::default();
    let rem = profile::Rem::default();
    [
        Aqm::Pi(profile::Pi {
            target: TARGET,
            ..pi
        }),
        Aqm::Ared(profile::Ared {
            target: TARGET,
            ..ared
        }),
        Aqm::Rem(profile::Rem {
            target: TARGET,
            ..rem
        }),
    ]
}

/// Mean delay in ms, and the share of the link that is used.
fn outcome(flows: usize, aqm: &Aqm) -> (f64, f64) {
    let network = network(flows);
    let mut manager = choice(aqm, RATE).start(0);
    let outcome = Run::new(&network, &mut manager, 1).outcome();
    (outcome.mean_wait_ns / 1e6, outcome.utilisation)
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let rows = PUBLISHED.into_iter();
    let rows = rows.filter(|(flows, _)| !bench.quick || [100, 300, 500].contains(flows));
    let mut figures = vec![];
    for (flows, published) in rows {
        (bench.progress)(&format!("c-aqm: {flows} flows"));
        figures.extend(row(flows, published));
    }
    Ok(figures)
}

fn row(flows: usize, published: [f64; 3]) -> Vec<Figure> {
    let outcomes = thread::scope(|scope| {
        let started = managers().map(|aqm| scope.spawn(move || outcome(flows, &aqm)));
        started.map(|thread| thread.join().ok())
    });
    let mut figures: Vec<_> = (0..NAMES.len())
        .map(|n| {
            let figure = Figure::new(format!("{flows} flows, {}: mean delay", NAMES[n]), "ms");
            let figure = figure.published(published[n]).within(TOLERANCE);
            let figure = match (NAMES[n], flows) {
                ("A-RED", 400..) => figure.known(ARED_FROM, ARED_TO, ARED_WHY),
                _ => figure,
            };
            figure.measured(outcomes[n].map(|(ms, _)| ms), None)
        })
        .collect();
    let [pi, ared, rem] = outcomes.map(|outcome| outcome.map(|(ms, _)| ms));
    let order = |[pi, ared, rem]: [f64; 3]| pi / ared.max(rem);
    let measured = pi
        .zip(ared)
        .zip(rem)
        .map(|((pi, ared), rem)| order([pi, ared, rem]));
    let figure = format!("{flows} flows: PI against the higher of A-RED and REM");
    let above = Tolerance::AtLeast(1.05);
    let ratio = Figure::new(figure, "ratio")
        .published(order(published))
        .within(above);
    figures.push(ratio.measured(measured, None));
    let used = outcomes.map(|outcome| outcome.map(|(_, used)| used));
    let least = used.into_iter().collect::<Option<Vec<_>>>();
    let least = least.and_then(|used| used.into_iter().reduce(f64::min));
    let figure = Figure::new(format!("{flows} flows: least use of the link"), "%").theory(100.0);
    let figure = figure.within(Tolerance::Share(0.02));
    figures.push(figure.measured(least.map(|least| 100.0 * least), None));
    figures
}

#[cfg(test)]
mod tests {
    use super::super::FigureVerdict;
    use super::*;

    /// All rows in the full run.
    #[test]
    fn mean_delays_are_the_published_ones_or_explained() {
        let full = std::env::var_os("EMUD_TEST_FULL").is_some();
        let rows = PUBLISHED.into_iter();
        for (flows, published) in rows.filter(|row| full || [100, 500].contains(&row.0)) {
            let figures = row(flows, published);
            let verdicts = figures.iter().map(|figure| figure.verdict);
            let explained = match flows {
                400.. => FigureVerdict::Explained,
                _ => FigureVerdict::Within,
            };
            let within = FigureVerdict::Within;
            let wanted = [within, explained, within, within, within];
            assert!(verdicts.eq(wanted), "{figures:#?}");
        }
    }
}
