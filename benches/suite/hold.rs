// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine hold, which carries packets through user space, beside engine fq if the kernel supports
//! it, and beside another emulator in user space if one is installed.

use std::time::Duration;

use crate::Suite;
use crate::accuracy::{Stream, arrival, departure};
use crate::side::{Bench, Link, Side, here};
use crate::tcp::{self, Run};
use support::probe::{Arrival, Probe};

const DELAY_MS: f64 = 20.0;

pub fn run(suite: &mut Suite) {
    let wanted = [
        Side::Bare,
        Side::BareWire,
        Side::Emud,
        Side::EmudHold,
        Side::Rattan,
        Side::Wirefilter,
    ];
    let sides = here(suite, &wanted);
    let mut benches: Vec<Bench> = sides.into_iter().map(Bench::new).collect();
    // In a guest hold costs minutes of real time: the quick run is short.
    let turns = suite.turns.min(if suite.full { 3 } else { 2 });
    for _ in 0..turns {
        for bench in &mut benches {
            bench.set(&Link::delay(DELAY_MS));
            if bench.side != Side::BareWire {
                errors(suite, bench);
                flood(suite, bench);
            }
            // The quick run bounds hold by wire packets alone.
            if suite.full || bench.side != Side::Bare {
                throughput(suite, bench);
            }
            // Programs in user space continue to run while others are measured.
            if bench.side.is_in_user_space() {
                bench.clear();
            }
        }
    }
}

/// Packets wait behind the sender's device for another emulator: there is only the arrival.
fn errors(suite: &mut Suite, bench: &Bench) {
    let more = if suite.full { 4 } else { 1 };
    for (packets_per_s, count) in [(1000, 500), (10_000, 3000)] {
        let stream = Stream {
            packets_per_s,
            count: count * more,
        };
        if matches!(bench.side, Side::Rattan | Side::Wirefilter) {
            arrival(suite, bench, DELAY_MS, stream);
        } else {
            departure(suite, bench, DELAY_MS, stream);
        }
    }
}

/// As fast as one sender can send: packets that arrive, and those that do not.
fn flood(suite: &mut Suite, bench: &Bench) {
    let count = if suite.full { 20_000 } else { 5000 };
    let probe = Probe {
        patience: Duration::from_millis(300),
        ..Probe::new(&bench.lab, count, 0)
    };
    let arrivals = probe.run().0;
    let case = "as many small packets as one sender sends";
    let (side, results) = (bench.side.name(), &mut suite.results);
    match delivered_per_s(&arrivals) {
        Some(rate) => results.add(case, side, "delivered", "packets/s", rate),
        None => results.miss(&format!("{case}: {side}: fewer than two came")),
    }
    let lost = 1.0 - arrivals.len() as f64 / f64::from(count);
    results.add(case, side, "lost", "%", lost * 1e2);
}

/// `None` of fewer than two packets, or of packets that came at one time.
pub fn delivered_per_s(arrivals: &[Arrival]) -> Option<f64> {
    let (first, last) = (arrivals.first()?, arrivals.last()?);
    let span_ns = last.arrived_ns.saturating_sub(first.arrived_ns);
    (span_ns > 0).then(|| (arrivals.len() - 1) as f64 * 1e9 / span_ns as f64)
}

/// One flow; hold sees wire packets, so `bare, gso_max_segs 1` is its limit.
fn throughput(suite: &mut Suite, bench: &Bench) {
    let cubic = tcp::has_control(&bench.lab, "cubic");
    let congestion_control = if cubic { "cubic" } else { "reno" };
    let run = Run {
        flows: 1,
        congestion_control,
        warm_up: Duration::from_millis(if suite.full { 500 } else { 250 }),
        duration: Duration::from_millis(if suite.full { 1000 } else { 250 }),
    };
    let case = format!("delay {DELAY_MS} ms, 1 flow, {congestion_control}");
    run.measure(&mut suite.results, bench, &case);
}
