// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: schedulers and queues of a DiffServ pilot, and its simulations.

use emud_monitor::log::RunVerdict;

use super::counts::Counts;
use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, c_red};
use crate::bottleneck::{Arrival, Class, Decision, Limits, Plan, Schedule, Server};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "c-diffserv",
    description: "Priorities, weights, a token bucket, ToS and RED behind 10 Mbit/s, and simulated losses",
    source: "University of Cyprus, DiffServ pilot: two senders behind a hub of 10 Mbit/s, and ns-2 simulations",
    method: "UDP streams and a TCP transfer through the scenarios c-diffserv, c-tos and c-red; rates of data, \
             counted by the receiver, without the first second; simulations with emud's server in virtual time",
    scenarios: &["c-diffserv", "c-tos", "c-red"],
    thresholds: None,
    measure,
};

/// The "Mbps" of the source are binary, also in its wireless pilot.
pub(super) const MIBIT: &str = "Mibit/s";
pub(super) const MIBIT_BITS: f64 = 1_048_576.0;
const SIZE: f64 = 1470.0;
/// With the headers of UDP, IP and Ethernet.
const FRAME: f64 = SIZE + 42.0;
/// Rate of the hub on the wire, bit/s.
const HUB: f64 = 10e6;
/// Rate of the token bucket on the wire, bit/s.
const SHAPED: f64 = 1.5e6;
/// Load of each sender: data, bit/s.
const LOAD: f64 = 7.34e6;
/// Of each sender.
const DATAGRAMS: u32 = 14_267;
const QUICK_DATAGRAMS: u32 = 2_800;
/// Packets of a class that wait or are on the wire at the end.
const QUEUE: f64 = 50.0;

/// Data in Mibit/s of a rate on the wire in bit/s.
fn data(wire: f64) -> f64 {
    wire * SIZE / FRAME / MIBIT_BITS
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = simulations();
    figures.extend(pilot(bench)?);
    figures.extend(by_tos(bench)?);
    figures.extend(c_red::figures(bench)?);
    Ok(figures)
}

struct Row<'a> {
    title: &'static str,
    profile: &'a str,
    set: &'a [&'a str],
    /// Published rates of data, Mibit/s, and expected ones.
    published: [f64; 2],
    theory: [f64; 2],
    /// Sender that loses nothing, and the published number of losses of the other one.
    winner: Option<(usize, Option<f64>)>,
    /// Rate on the wire that the other one has at most, bit/s; `None`: what the winner leaves.
    shaped: Option<f64>,
}

fn pilot(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let load = LOAD / MIBIT_BITS;
    let rest = data(HUB) - load;
    let half = data(HUB) / 2.0;
    let rows = [
        Row {
            title: "fair",
            profile: "diffserv-fair",
            set: &[],
            published: [4.5, 4.6],
            theory: [half, half],
            winner: None,
            shaped: None,
        },
        Row {
            title: "priority 1 and 5",
            profile: "diffserv-priority",
            set: &[],
            published: [7.0, 2.1],
            theory: [load, rest],
            winner: Some((0, Some(9_876.0))),
            shaped: None,
        },
        Row {
            title: "strict queues 1 and 2",
            profile: "diffserv-priority",
            set: &["bottleneck.hub.class.other.priority=2"],
            published: [7.0, 2.2],
            theory: [load, rest],
            winner: Some((0, Some(9_829.0))),
            shaped: None,
        },
        Row {
            title: "priority reversed",
            profile: "diffserv-priority",
            set: &[
                "bottleneck.hub.class.assured.priority=5",
                "bottleneck.hub.class.other.priority=1",
            ],
            published: [2.2, 7.0],
            theory: [rest, load],
            winner: Some((1, None)),
            shaped: None,
        },
        Row {
            title: "weights 800 and 200",
            profile: "diffserv-weights",
            set: &[],
            published: [6.6, 2.5],
            theory: [load, rest],
            winner: None,
            shaped: None,
        },
        Row {
            title: "token bucket of 1.5 Mbit/s, FIFO",
            profile: "diffserv-tbf",
            set: &[],
            published: [1.1, 7.0],
            theory: [data(SHAPED), load],
            winner: Some((1, None)),
            shaped: Some(SHAPED),
        },
    ];
    let packets = if bench.quick {
        QUICK_DATAGRAMS
    } else {
        DATAGRAMS
    };
    let mut figures = vec![];
    for row in rows {
        let counts = bench.run(&Variant {
            title: row.title,
            scenario: "c-diffserv",
            profile: Some(row.profile),
            set: row.set,
            env: &[("PACKETS", packets.to_string())],
            ..Variant::default()
        })?;
        figures.extend(row.figures(&counts));
    }
    Ok(figures)
}

const PORTS: [u16; 2] = [6001, 6002];

impl Row<'_> {
    fn figures(&self, counts: &Counts) -> Vec<Figure> {
        let run = Some(counts.verdict);
        let rates = PORTS.map(|port| counts.rate(port).map(|rate| rate / MIBIT_BITS));
        let rate = |n: usize| {
            let who = ["first", "second"][n];
            let figure = Figure::new(format!("{}: {who}", self.title), MIBIT);
            let figure = figure.published(self.published[n]).theory(self.theory[n]);
            let winner = self.winner.map(|(winner, _)| winner);
            match winner.filter(|winner| *winner != n && self.shaped.is_none()) {
                None => figure.measured(rates[n], run),
                // Of what the winner leaves, as measured.
                Some(winner) => match rates[winner] {
                    None => figure.measured(None, run),
                    Some(rate) => {
                        let figure = figure.theory(data(HUB) - rate);
                        figure
                            .within(Tolerance::Share(0.01))
                            .measured(rates[n], run)
                    }
                },
            }
        };
        let mut figures = vec![rate(0), rate(1)];
        if let Some((winner, published)) = self.winner {
            let lost = |n: usize| counts.lost(PORTS[n]).map(|share| 100.0 * share);
            let figure = Figure::new(format!("{}: the winner's losses", self.title), "%");
            let figure = figure
                .published(0.0)
                .theory(0.0)
                .within(Tolerance::Absolute(0.0));
            figures.push(figure.measured(lost(winner), run));
            let sent = counts
                .sent(PORTS[0])
                .map_or(f64::NAN, |sent| sent.packets as f64);
            let shaped = self.shaped.map(|wire| wire * SIZE / FRAME);
            let left = shaped.unwrap_or(HUB * SIZE / FRAME - LOAD);
            let theory = 100.0 * (1.0 - left / LOAD - QUEUE / sent);
            let figure = Figure::new(format!("{}: the loser's losses", self.title), "%");
            let figure = figure.theory(theory);
            let figure = match published {
                Some(lost) => figure.published(100.0 * lost / f64::from(DATAGRAMS)),
                None => figure,
            };
            figures.push(figure.measured(lost(1 - winner), run));
        }
        figures
    }
}

/// Rate of data of the four streams together, Mibit/s.
const TOS_RATE: f64 = 3.87;
/// In the order of their bands, with the published rates.
const TOS: [(&str, f64); 4] = [
    ("0x10", 1.06),
    ("0x0", 1.03),
    ("0x4", 0.988),
    ("0x8", 0.789),
];
/// More than half of it, Mibit/s.
const TOS_GREEDY: f64 = 2.0;

/// The source has no loads. In one run the first three send what they had there, and the last one more than they leave.
/// In the other run each sends more than half of the rate, so only its band makes 0x10 the fastest.
fn by_tos(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let seconds = if bench.quick { 5.0 } else { 30.0 };
    let run = |title, loads: [f64; 4]| {
        let packets = loads.map(|load| load * MIBIT_BITS * seconds / 8.0 / SIZE);
        let list = |values: [f64; 4], digits: usize| {
            values.map(|value| format!("{value:.digits$}")).join(" ")
        };
        let counts = bench.run(&Variant {
            title,
            scenario: "c-tos",
            env: &[("LOADS", list(loads, 3)), ("PACKETS", list(packets, 0))],
            ..Variant::default()
        })?;
        let rates = [6001, 6002, 6003, 6004];
        let rates = rates.map(|port| counts.rate(port).map(|rate| rate / MIBIT_BITS));
        Ok::<_, ReproduceError>((rates, Some(counts.verdict)))
    };
    let [first, middle, other, _] = TOS.map(|(_, rate)| rate);
    let (rates, verdict) = run("ToS", [first, middle, other, TOS_GREEDY])?;
    let theory = [first, middle, other, TOS_RATE - first - middle - other];
    let of_each = TOS.iter().zip(theory).zip(rates);
    let of_each = of_each.map(|(((tos, published), theory), rate)| {
        let figure = Figure::new(format!("ToS {tos}"), MIBIT).published(*published);
        figure.theory(theory).measured(rate, verdict)
    });
    let mut figures: Vec<_> = of_each.collect();
    figures.extend(order(&rates, verdict));
    let ([first, middle, other, last], verdict) = run("ToS, equal loads", [TOS_GREEDY; 4])?;
    let middle = middle.zip(other).map(|(middle, other)| middle + other);
    for (name, theory, rate) in [
        ("0x10", TOS_GREEDY, first),
        ("0x0 and 0x4 together", TOS_RATE - TOS_GREEDY, middle),
        ("0x8", 0.0, last),
    ] {
        let figure = Figure::new(format!("equal loads of 2 Mibit/s: ToS {name}"), MIBIT);
        // A pause of the senders empties a band.
        let figure = match name {
            "0x8" => figure.within(Tolerance::Absolute(0.01)),
            _ => figure,
        };
        figures.push(figure.theory(theory).measured(rate, verdict));
    }
    Ok(figures)
}

/// 0x10 is the fastest, and 0x8 the slowest.
fn order(rates: &[Option<f64>; 4], run: Option<RunVerdict>) -> [Figure; 2] {
    let [first, middle, other, last] = *rates;
    let among = |one: fn(f64, f64) -> f64| Some(one(middle?, other?));
    let row = |name, above: Option<f64>, below: Option<f64>, published, least| {
        let figure = Figure::new(name, "ratio").published(published);
        let ratio = above.zip(below).map(|(above, below)| above / below);
        figure
            .within(Tolerance::AtLeast(least))
            .measured(ratio, run)
    };
    [
        // With --quick a packet is 0.3 %.
        row(
            "ToS 0x10 over the faster of 0x0 and 0x4",
            first,
            among(f64::max),
            1.06 / 1.03,
            1.01,
        ),
        row(
            "the slower of ToS 0x0 and 0x4 over 0x8",
            among(f64::min),
            last,
            0.988 / 0.789,
            1.2,
        ),
    ]
}

/// 1000-byte packets into a buffer of 200: the share that is lost.
fn simulations() -> Vec<Figure> {
    let rows = [
        ("simulated: 2 into 3 Mbit/s: lost", &[2][..], 3, 0.0),
        ("simulated: 2 + 4 into 3 Mbit/s: lost", &[2, 4][..], 3, 50.0),
        (
            "simulated: 2 + 4 + 8 into 12 Mbit/s: lost",
            &[2, 4, 8][..],
            12,
            14.3,
        ),
    ];
    let figures = rows.map(|(name, loads, rate, published)| {
        let sum: u64 = loads.iter().sum();
        let theory = 100.0 * (1.0 - rate as f64 / sum as f64).max(0.0);
        let figure = Figure::new(name, "%").published(published).theory(theory);
        figure.measured(Some(100.0 * lost_of(loads, rate)), None)
    });
    figures.into()
}

fn lost_of(loads: &[u64], rate: u64) -> f64 {
    const BYTES: u32 = 1000;
    const MBIT: u64 = 1_000_000;
    const END_NS: u64 = 100_000_000_000;
    let class = Class {
        limits: Limits {
            packets: Some(200),
            ..Limits::default()
        },
        ..Class::default()
    };
    let mut server = Server::new(&Plan {
        rate: rate * MBIT,
        schedule: Schedule::Fifo,
        classes: vec![class],
        seed: 0,
    });
    let mut packets = 0;
    for (flow, load) in (0..).zip(loads) {
        let gap = u64::from(BYTES) * 8_000_000_000 / (load * MBIT);
        // Not all at once.
        let begin = 137 * flow;
        for n in 0..(END_NS - begin) / gap {
            let at_ns = begin + n * gap;
            let packet = Arrival {
                at_ns,
                class: 0,
                bytes: BYTES,
                ds: 0,
            };
            server.arrive(packet, ());
            packets += 1;
        }
    }
    let decisions = std::iter::from_fn(|| server.decide(u64::MAX));
    let lost = decisions.filter(|decision| matches!(decision, Decision::Dropped(_)));
    lost.count() as f64 / f64::from(packets)
}

#[cfg(test)]
mod tests {
    use super::super::FigureVerdict;
    use super::*;

    #[test]
    fn simulated_losses_are_the_published_ones() {
        for figure in simulations() {
            assert_eq!(figure.verdict, FigureVerdict::Within, "{figure:?}");
        }
    }

    #[test]
    fn binary_rates() {
        // 7.34 Mbit/s of data are 7.0 of the source's.
        assert!((LOAD / MIBIT_BITS - 7.0).abs() < 1e-3);
        assert!((data(HUB) - 9.272).abs() < 1e-3);
    }

    /// One that is as fast as another one is neither the fastest nor the slowest.
    #[test]
    fn tos_0x10_is_the_fastest() {
        let clean = Some(RunVerdict::Clean);
        let verdicts = |rates: [f64; 4]| order(&rates.map(Some), clean).map(|row| row.verdict);
        let [within, deviates] = [FigureVerdict::Within, FigureVerdict::Deviates];
        assert_eq!(verdicts(TOS.map(|(_, rate)| rate)), [within; 2]);
        assert_eq!(verdicts([1.06, 1.06, 0.988, 0.789]), [deviates, within]);
        assert_eq!(verdicts([1.06, 1.03, 0.789, 0.789]), [within, deviates]);
    }
}
