// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: nodes in a ring, each of which sends to the next. Each flow has a separate link, so a load below
//! what the link carries has no loss, and a greedy flow has all of it, whatever the others do:
//! with frames of F bytes for D bytes of data, D / F of the rate, and a fairness of 1.

use super::counts::{Counts, worst};
use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, s_overhead};
use crate::experiment::results::jain;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-ring",
    description: "Rings of 5 and 8 nodes, each of which sends to the next, UDP in one and both directions, and TCP",
    source: s_overhead::EXPERIMENT.source,
    method: "packets of UDP at 95.7 % of the rate counted at both ends, TCP transfers counted by their senders, \
             10 runs of 60 s, begun 5 s apart, at 20 Mbit/s instead of 1 Gbit/s; --quick: one run of 5 s, begun \
             1 s apart",
    scenarios: &["s-ring"],
    measure,
};

const RATE_KBIT_S: f64 = 20_000.0;
/// Of the source, of its 1 Gbit/s.
const LOAD: f64 = 0.957;
const DATAGRAM: f64 = 1470.0;
/// Data of a segment with time stamps, and its frame.
const SEGMENT: f64 = 1448.0;
const FRAME: f64 = 1538.0;
/// Most loss that the source accepts, %.
const LOSS: f64 = 0.05;

/// What the nodes send.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Load {
    Udp,
    UdpBoth,
    Tcp,
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = vec![];
    for nodes in [5, 8] {
        for load in [Load::Udp, Load::UdpBoth, Load::Tcp] {
            figures.extend(ring(bench, nodes, load)?);
        }
    }
    Ok(figures)
}

fn ring(bench: &Bench<'_>, nodes: u16, load: Load) -> Result<Vec<Figure>, ReproduceError> {
    let (runs, seconds, step) = if bench.quick { (1, 5, 1) } else { (10, 60, 5) };
    let name = match load {
        Load::Udp => "UDP",
        Load::UdpBoth => "UDP in both directions",
        Load::Tcp => "TCP",
    };
    let title = format!("{nodes} nodes, {name}");
    let kbit_s = RATE_KBIT_S * LOAD;
    let packets = kbit_s * 1e3 * f64::from(seconds) / 8.0 / DATAGRAM;
    let text = |is: bool| if is { "1".to_owned() } else { String::new() };
    let variant = Variant {
        title: &title,
        scenario: "s-ring",
        nodes: Some(nodes.into()),
        env: &[
            ("STEP", step.to_string()),
            ("LOAD", seconds.to_string()),
            ("RATE", format!("{kbit_s:.0}")),
            ("PACKETS", format!("{packets:.0}")),
            ("BOTH", text(load == Load::UdpBoth)),
            ("TCP", text(load == Load::Tcp)),
        ],
        ..Variant::default()
    };
    let runs: Result<Vec<_>, _> = (0..runs).map(|_| bench.run(&variant)).collect();
    let runs = runs?;
    let verdict = worst(&runs);
    Ok(match load {
        Load::Tcp => {
            let rates = of_all(&runs, |counts| {
                senders(nodes, 6000)
                    .map(|port| rate(counts, port))
                    .collect()
            });
            let percent = mean(rates.as_deref()).map(|bit_s| bit_s / RATE_KBIT_S / 10.0);
            let share =
                Figure::new(format!("{title}: mean data"), "% of the rate").published(94.148);
            let share = share
                .theory(100.0 * SEGMENT / FRAME)
                .within(Tolerance::Share(0.01));
            let fair = Figure::new(format!("{title}: fairness (Jain)"), "1").theory(1.0);
            let fair = fair.within(Tolerance::Absolute(0.001));
            vec![
                share.measured(percent, verdict),
                fair.measured(rates.and_then(|rates| jain(&rates)), verdict),
            ]
        }
        _ => {
            let bases: &[u16] = if load == Load::Udp {
                &[6000]
            } else {
                &[6000, 7000]
            };
            let ports = || bases.iter().flat_map(|base| senders(nodes, *base));
            let lost = of_all(&runs, |counts| {
                ports().map(|port| counts.lost(port)).collect()
            });
            let percent = mean(lost.as_deref()).map(|share| 100.0 * share);
            let figure = Figure::new(format!("{title}: mean loss"), "%").theory(0.0);
            let figure = figure.within(Tolerance::Absolute(LOSS));
            vec![figure.measured(percent, verdict)]
        }
    })
}

/// Ports to which the nodes send.
fn senders(nodes: u16, base: u16) -> impl Iterator<Item = u16> {
    (1..=nodes).map(move |index| base + index)
}

/// Data of a transfer, bit/s.
fn rate(counts: &Counts, port: u16) -> Option<f64> {
    let transferred = counts.transferred_to(port)?;
    Some(transferred.bytes as f64 * 8e9 / transferred.duration_ns as f64)
}

/// Returns the values of all runs; `None`: one is missing.
fn of_all(runs: &[Counts], of: impl Fn(&Counts) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
    let all: Option<Vec<Vec<f64>>> = runs.iter().map(of).collect();
    Some(all?.concat())
}

fn mean(values: Option<&[f64]>) -> Option<f64> {
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}
