// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: a TCP flow of the DiffServ pilot behind a FIFO of 50 packets, and behind RED.

use super::counts::{Counts, worst};
use super::live::Variant;
use super::newreno::{Network, Run};
use super::{Bench, Figure, ReproduceError};
use crate::bottleneck::aqm::Aqm;
use crate::profile::aqm::choice;
use crate::profile::{self, Length};

/// Bytes of a full frame.
const FULL: f64 = 1514.0;
/// Of 50 frames at 1 Mbit/s, ms.
const FULL_PFIFO: f64 = 50.0 * FULL * 8.0 / 1e6 * 1e3;
const RED: &str = "bottleneck.hub.class.flow.queue={bytes=\"60000B\", aqm=\"red\", min=\"15000B\", max=\"45000B\", \
                   probability=\"10%\"}";
/// Segments in flight with a socket buffer of 128 KiB: the kernel doubles it, and counts memory, some 2.5 KiB for
/// a segment of 1448 bytes.
const WINDOW: f64 = 2.0 * 131_072.0 / 2_560.0;
/// Seconds of a transfer. Its first packets overflow both queues alike; after that RED alone loses many. So its losses are
/// 1.9 times those of pfifo, as published, after 90 s, and 1.3 times after 40.
const SECONDS: u64 = 90;
const QUICK_SECONDS: u64 = 40;
/// RED drops at random.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;
const WHY: &str = "theory is NewReno in virtual time, and of RED, which drops at random, the mean of 8 runs; the kernel's \
                   TCP begins with a larger window and repairs several losses at once";

/// pfifo has no manager.
struct NoManager;

impl Aqm for NoManager {}

/// What NewReno does in virtual time: mean round trip in ms, packets lost. Of a limit one packet is on the wire.
fn new_reno(seconds: u64, seed: u64, limit: usize, manager: &mut dyn Aqm) -> [f64; 2] {
    let network = Network {
        flows: 1,
        rate: 1_000_000,
        packet_bytes: FULL as u64,
        round_trip_ns: 1_000_000,
        buffer_packets: limit - 1,
        window: WINDOW,
        duration_ns: seconds * 1_000_000_000,
    };
    let outcome = Run::new(&network, manager, seed).outcome();
    let trip_ns = outcome.mean_wait_ns + FULL * 8e3 + 1e6;
    let lost = outcome.signals + outcome.overflows;
    [trip_ns / 1e6, lost as f64]
}

fn with_pfifo(seconds: u64) -> [f64; 2] {
    new_reno(seconds, 1, 50, &mut NoManager)
}

/// With the figures that [`RED`] has.
fn with_red(seconds: u64) -> [f64; 2] {
    let red = profile::Red {
        min: Length::Bytes(15_000),
        max: Length::Bytes(45_000),
        probability: 0.1,
        ..profile::Red::default()
    };
    let choice = choice(&profile::Aqm::Red(red), 1_000_000);
    let runs = SEEDS.map(|seed| new_reno(seconds, seed, 40, &mut choice.start(0)));
    let sum = runs.reduce(|sum, run| [sum[0] + run[0], sum[1] + run[1]]);
    let count = SEEDS.count() as f64;
    sum.unwrap_or_default().map(|sum| sum / count)
}

/// In one of two classes of 500 kbit/s; the other one is empty, and lends its rate.
pub(super) fn figures(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let seconds = if bench.quick { QUICK_SECONDS } else { SECONDS };
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
    let [[_, pfifo_lost], [mean, red_lost]] = [with_pfifo(seconds), with_red(seconds)];
    let rtt = |counts: &Counts, n: usize| Some(counts.transferred()?.rtt_ns?[n] as f64 / 1e6);
    let lost = |counts: &Counts| Some(counts.transferred()?.retransmissions as f64);
    let over = |above: Option<f64>, below: Option<f64>| Some(above? / below?);
    let figure = |name: &str, unit, published: f64, theory: f64| {
        let figure = Figure::new(format!("TCP, {name}"), unit);
        figure.published(published).theory(theory)
    };
    // Within 3 %, or by this share for that reason.
    let figure_of_tcp = |name: &str, unit, published: f64, theory: f64, share: f64| {
        let [from, to] = [1.0 - share, 1.0 + share].map(|factor| factor * theory);
        figure(name, unit, published, theory).known(from, to, WHY)
    };
    let both = worst([&pfifo, &red]);
    let (halved, doubled) = (FULL_PFIFO / mean, red_lost / pfifo_lost);
    Ok(vec![
        figure("pfifo of 50: longest RTT", "ms", 500.0, FULL_PFIFO)
            .measured(rtt(&pfifo, 2), Some(pfifo.verdict)),
        figure_of_tcp("RED: mean RTT", "ms", 250.0, mean, 0.1)
            .measured(rtt(&red, 1), Some(red.verdict)),
        figure_of_tcp(
            "longest RTT with pfifo over the mean one with RED",
            "ratio",
            2.0,
            halved,
            0.1,
        )
        .measured(over(rtt(&pfifo, 2), rtt(&red, 1)), both),
        figure_of_tcp(
            "pfifo of 50: retransmissions",
            "packets",
            11.0,
            pfifo_lost,
            0.25,
        )
        .measured(lost(&pfifo), Some(pfifo.verdict)),
        figure_of_tcp("RED: retransmissions", "packets", 21.0, red_lost, 0.25)
            .measured(lost(&red), Some(red.verdict)),
        figure_of_tcp(
            "retransmissions with RED over those with pfifo",
            "ratio",
            21.0 / 11.0,
            doubled,
            0.2,
        )
        .measured(over(lost(&red), lost(&pfifo)), both),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pfifo_lasts_606_ms() {
        assert!((FULL_PFIFO - 605.6).abs() < 0.1);
    }

    /// Of 8 s, where three hosts had 207 to 214 ms, 52 and 53, and of a minute, where one had 156 ms, 94 and 61.
    #[test]
    fn new_reno_is_close_to_the_kernels_tcp() {
        for (seconds, trip_ms, losses) in [(8, 210.0, [52.0, 53.0]), (60, 156.0, [94.0, 61.0])] {
            let [mean, red_lost] = with_red(seconds);
            let [_, pfifo_lost] = with_pfifo(seconds);
            println!("{seconds} s: {mean} ms, {red_lost}, {pfifo_lost}");
            assert!((mean / trip_ms - 1.0).abs() < 0.1, "{mean} ms");
            for (lost, of_kernel) in [red_lost, pfifo_lost].into_iter().zip(losses) {
                assert!((of_kernel / lost - 1.0).abs() < 0.2, "{lost} lost");
            }
        }
    }

    /// RED halves the round trip and loses about twice as much; in a short run it loses more.
    #[test]
    fn the_lengths_show_the_difference() {
        for (seconds, least, most) in [(QUICK_SECONDS, 1.25, 1.45), (SECONDS, 1.8, 2.0)] {
            let [mean, red_lost] = with_red(seconds);
            let [_, pfifo_lost] = with_pfifo(seconds);
            let ratio = red_lost / pfifo_lost;
            println!("{seconds} s: {mean} ms, {red_lost} of {pfifo_lost}: {ratio}");
            assert!((least..most).contains(&ratio), "{ratio}");
            // Also if the kernel differs by what is explained.
            assert!(0.9 * FULL_PFIFO / mean > 2.0 && 0.8 * ratio > 1.0);
        }
    }
}
