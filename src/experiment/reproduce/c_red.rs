// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: a TCP flow of the DiffServ pilot behind a FIFO of 50 packets, and behind RED.

use super::counts::Counts;
use super::live::Variant;
use super::newreno::{Network, Run};
use super::{Bench, Figure, ReproduceError, Tolerance};
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
pub(super) fn figures(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pfifo_lasts_606_ms() {
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
