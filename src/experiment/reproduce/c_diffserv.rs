// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: schedulers and queues of a DiffServ pilot, and its simulations.
//!
//! Longer than 400 lines: three published tables and their theory.

use emud_monitor::log::RunVerdict;

use super::counts::Counts;
use super::live::Variant;
use super::newreno::{Network, Run};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};
use crate::bottleneck::aqm::Aqm;
use crate::bottleneck::{Arrival, Class, Decision, Limits, Plan, Schedule, Server};
use crate::profile::aqm::choice;
use crate::profile::{self, Length};

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
    figures.extend(red(bench)?);
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

/// Rate of data of the four streams together, and of each one, Mibit/s.
const TOS_RATE: f64 = 3.87;
const TOS_LOAD: f64 = 1.06;

/// The source has no loads: each sender's is the rate of the fastest one.
fn by_tos(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let seconds = if bench.quick { 5.0 } else { 30.0 };
    let packets = TOS_LOAD * MIBIT_BITS * seconds / 8.0 / SIZE;
    let counts = bench.run(&Variant {
        title: "ToS",
        scenario: "c-tos",
        env: &[("PACKETS", format!("{packets:.0}"))],
        ..Variant::default()
    })?;
    let run = Some(counts.verdict);
    let rates =
        [6001, 6002, 6003, 6004].map(|port| counts.rate(port).map(|rate| rate / MIBIT_BITS));
    let rest = TOS_RATE - 3.0 * TOS_LOAD;
    let rows = [
        ("ToS 0x10", 1.06, TOS_LOAD),
        ("ToS 0x0", 1.03, TOS_LOAD),
        ("ToS 0x4", 0.988, TOS_LOAD),
        ("ToS 0x8", 0.789, rest),
    ];
    let figures = rows
        .into_iter()
        .zip(rates)
        .map(|((name, published, theory), rate)| {
            let figure = Figure::new(name, MIBIT).published(published).theory(theory);
            figure.measured(rate, run)
        });
    let mut figures: Vec<_> = figures.collect();
    figures.extend(order(&rates, run));
    Ok(figures)
}

/// 0x10 is the fastest and 0x8 the slowest, whatever the rates. The first three have all they send, so they
/// are equal but for a packet at the end.
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
        row(
            "ToS 0x10 over the faster of 0x0 and 0x4",
            first,
            among(f64::max),
            1.06 / 1.03,
            0.995,
        ),
        row(
            "the slower of ToS 0x0 and 0x4 over 0x8",
            among(f64::min),
            last,
            0.988 / 0.789,
            1.05,
        ),
    ]
}

/// Bytes of a full frame.
const FULL: f64 = 1514.0;
/// Of 50 frames at 1 Mbit/s, ms.
const FULL_PFIFO: f64 = 50.0 * FULL * 8.0 / 1e6 * 1e3;
const RED: &str = "bottleneck.hub.class.flow.queue={bytes=\"60000B\", aqm=\"red\", min=\"15000B\", max=\"45000B\", \
                   probability=\"10%\"}";
/// Segments in flight with a socket buffer of 128 KiB: the kernel doubles it, and counts memory, some 2.5 KiB for
/// a segment of 1448 bytes.
const WINDOW: f64 = 2.0 * 131_072.0 / 2_560.0;

/// pfifo has no manager.
struct NoManager;

impl Aqm for NoManager {}

/// What NewReno does in virtual time: mean round trip in ms, packets lost.
fn new_reno(seconds: u64, buffer_packets: usize, manager: &mut dyn Aqm) -> (f64, f64) {
    let network = Network {
        flows: 1,
        rate: 1_000_000,
        packet_bytes: FULL as u64,
        round_trip_ns: 1_000_000,
        buffer_packets,
        window: WINDOW,
        duration_ns: seconds * 1_000_000_000,
    };
    let outcome = Run::new(&network, manager, 1).outcome();
    let trip_ns = outcome.mean_wait_ns + FULL * 8e3 + 1e6;
    (trip_ns / 1e6, (outcome.signals + outcome.overflows) as f64)
}

/// Returns the figures of the class, as [`RED`] has them; of its limit one packet is on the wire.
fn new_reno_with_red(seconds: u64) -> (f64, f64) {
    let red = profile::Red {
        min: Length::Bytes(15_000),
        max: Length::Bytes(45_000),
        probability: 0.1,
        ..profile::Red::default()
    };
    let mut manager = choice(&profile::Aqm::Red(red), 1_000_000).start(0);
    new_reno(seconds, 39, &mut manager)
}

/// In one of two classes of 500 kbit/s; the other one is empty, and lends its rate.
fn red(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let seconds = if bench.quick { 8 } else { 60 };
    let run = |title, set| {
        bench.run(&Variant {
            title,
            scenario: "c-red",
            set,
            env: &[("TRANSFER", format!("{seconds}s"))],
            ..Variant::default()
        })
    };
    let [pfifo, red] = [run("TCP, pfifo of 50", &[])?, run("TCP, RED", &[RED])?];
    let (_, pfifo_lost) = new_reno(seconds, 49, &mut NoManager);
    let (mean, red_lost) = new_reno_with_red(seconds);
    let rtt = |counts: &Counts, n: usize| Some(counts.transferred()?.rtt_ns?[n] as f64 / 1e6);
    let lost = |counts: &Counts| Some(counts.transferred()?.retransmissions as f64);
    let full = Figure::new("TCP, pfifo of 50: longest RTT", "ms")
        .published(500.0)
        .theory(FULL_PFIFO);
    // The kernel's TCP is not NewReno, but for a flow that has the link alone close to it.
    let average = Figure::new("TCP, RED: mean RTT", "ms")
        .published(250.0)
        .theory(mean)
        .within(Tolerance::Share(0.1));
    let mut figures = vec![
        full.measured(rtt(&pfifo, 2), Some(pfifo.verdict)),
        average.measured(rtt(&red, 1), Some(red.verdict)),
    ];
    for (counts, name, published, theory) in [
        (&pfifo, "TCP, pfifo of 50", 11.0, pfifo_lost),
        (&red, "TCP, RED", 21.0, red_lost),
    ] {
        let figure = Figure::new(format!("{name}: retransmissions"), "packets");
        let figure = figure.published(published).theory(theory);
        let figure = figure.within(Tolerance::Share(0.25));
        figures.push(figure.measured(lost(counts), Some(counts.verdict)));
    }
    Ok(figures)
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
        assert!((FULL_PFIFO - 605.6).abs() < 0.1);
    }

    /// Of --quick, where three hosts had 207 to 214 ms, 52 and 53, and of the whole minute, where one had 156 ms,
    /// 94 and 61.
    #[test]
    fn new_reno_is_close_to_the_kernels_tcp() {
        for (seconds, trip_ms, losses) in [(8, 210.0, [52.0, 53.0]), (60, 156.0, [94.0, 61.0])] {
            let (mean, red_lost) = new_reno_with_red(seconds);
            let (_, pfifo_lost) = new_reno(seconds, 49, &mut NoManager);
            println!("{seconds} s: {mean} ms, {red_lost}, {pfifo_lost}");
            assert!((mean / trip_ms - 1.0).abs() < 0.1, "{mean} ms");
            for (lost, of_kernel) in [red_lost, pfifo_lost].into_iter().zip(losses) {
                assert!((of_kernel / lost - 1.0).abs() < 0.2, "{lost} lost");
            }
        }
    }
}
