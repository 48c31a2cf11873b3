// SPDX-License-Identifier: MIT OR Apache-2.0
//! The accuracy of a packet's treatment: its delay, the spread of delays, losses.

use std::time::Duration;

use crate::Suite;
use crate::side::{Bench, Link, Side, here};
use crate::tap::Tap;
use support::probe::{Arrivals, Probe};
use support::stats::quantile;

/// Of a probe's packets, bytes.
const PAYLOAD: usize = 64;

/// Sends this many packets at this rate.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub packets_per_s: u32,
    pub count: u32,
}

pub fn run(suite: &mut Suite) {
    // hold: the quick run measures it in its own section.
    let sides = match suite.full {
        true => &[
            Side::Bare,
            Side::Netem,
            Side::Emud,
            Side::EmudQdisc,
            Side::EmudHold,
        ][..],
        false => &[Side::Bare, Side::Netem, Side::Emud, Side::EmudQdisc][..],
    };
    let sides = here(suite, sides);
    let mut benches: Vec<Bench> = sides.into_iter().map(Bench::new).collect();
    // A turn of a full run has enough packets to need no more of them.
    for turn in 0..suite.turns.min(3) {
        for bench in &mut benches {
            departures(suite, bench);
            if bench.side != Side::Bare {
                jitter(suite, bench, turn == 0);
                losses(suite, bench, turn == 0);
            }
            // The holder's lease would delay the others' worst packets.
            if bench.side == Side::EmudHold {
                bench.clear();
            }
        }
    }
}

/// Delays and rates; a fast stream has more packets, for it is over sooner.
fn departures(suite: &mut Suite, bench: &mut Bench) {
    let (delays_ms, more): (&[f64], u32) = match suite.full {
        true => (&[1.0, 10.0, 100.0], 4),
        false => (&[10.0], 1),
    };
    let streams = [(1000, 300), (10_000, 1000), (100_000, 2000)];
    for delay_ms in delays_ms {
        bench.set(&Link::delay(*delay_ms));
        for (packets_per_s, count) in streams {
            let stream = Stream {
                packets_per_s,
                count: count * more,
            };
            departure(suite, bench, *delay_ms, stream);
        }
    }
}

/// How much later than configured packets leave the device, and how much later they arrive. Nothing
/// is subtracted: "bare" is beside it.
pub fn departure(suite: &mut Suite, bench: &Bench, delay_ms: f64, stream: Stream) {
    let tap = Tap::open(&bench.lab);
    let arrivals = arrival(suite, bench, delay_ms, stream);
    let left = tap.departures(PAYLOAD);
    let case = case(delay_ms, stream);
    // Otherwise a packet was lost behind the device, or by the tap.
    assert_eq!(left.0.len(), arrivals.0.len(), "{case}: departures");
    if reached(sending_rate(&arrivals), stream.packets_per_s) {
        errors(suite, bench, &case, "departure", delay_ms, &left);
    }
}

/// The same at the receiver only. It stamps a packet when it leaves the device, except one that
/// still has fq's departure time: that one after IP, about 3 us later. So for fq the departure
/// counts.
pub fn arrival(suite: &mut Suite, bench: &Bench, delay_ms: f64, stream: Stream) -> Arrivals {
    let arrivals = sent(bench, stream);
    let case = case(delay_ms, stream);
    let rate = sending_rate(&arrivals);
    if reached(rate, stream.packets_per_s) {
        errors(suite, bench, &case, "arrival", delay_ms, &arrivals);
    } else {
        // Under less load than another side's, which is no comparison.
        let side = bench.side.name();
        suite.results.miss(&format!(
            "{case}: {side}: errors: one sender here makes fewer, see `sent`"
        ));
    }
    let mut add = |metric: &str, unit: &str, value: f64| {
        suite
            .results
            .add(&case, bench.side.name(), metric, unit, value);
    };
    if let Some(rate) = rate {
        add("sent", "packets/s", rate);
    }
    add("lost", "packets", arrivals.lost(stream.count).len() as f64);
    add("overtaken", "packets", arrivals.reordered() as f64);
    arrivals
}

/// Whether a sender that reaches this rate measures the one that was wanted.
pub fn reached(rate: Option<f64>, packets_per_s: u32) -> bool {
    rate.is_some_and(|rate| rate >= 0.98 * f64::from(packets_per_s))
}

fn case(delay_ms: f64, stream: Stream) -> String {
    let rate = stream.packets_per_s;
    format!("delay {delay_ms} ms, {rate} packets/s asked for")
}

fn errors(suite: &mut Suite, bench: &Bench, case: &str, of: &str, delay_ms: f64, times: &Arrivals) {
    let asked_ms = match bench.side {
        Side::Bare | Side::BareWire => 0.0,
        _ => delay_ms,
    };
    for (name, value) in spread(times, asked_ms) {
        let metric = format!("{of} error, {name}");
        let side = bench.side.name();
        suite.results.add(case, side, &metric, "us", value);
    }
}

/// Of errors in us, negative if early: the median and the earliest; and the 99th percentile and the
/// worst of how far off packets are. A link that sends early by design would otherwise have no early
/// packet among its worst.
pub fn spread(times: &Arrivals, asked_ms: f64) -> [(&'static str, f64); 4] {
    let delays = times.delays_ms();
    let errors: Vec<f64> = delays.iter().map(|ms| (ms - asked_ms) * 1e3).collect();
    let off: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    [
        ("median", quantile(&errors, 0.5)),
        ("p99", quantile(&off, 0.99)),
        ("worst", quantile(&off, 1.0)),
        ("earliest", quantile(&errors, 0.0)),
    ]
}

fn sent(bench: &Bench, stream: Stream) -> Arrivals {
    let interval_ns = 1_000_000_000 / u64::from(stream.packets_per_s);
    let probe = Probe {
        payload_len: PAYLOAD,
        patience: Duration::from_millis(300),
        // At even intervals, of which a delay is a multiple, each packet would be due while another is
        // on its way to the qdisc: what was measured then was how long that takes.
        scattered: true,
        ..Probe::new(&bench.lab, stream.count, interval_ns)
    };
    let arrivals = probe.run();
    assert!(
        !arrivals.0.is_empty(),
        "{}: nothing came",
        bench.side.name()
    );
    arrivals
}

/// Returns whether only the link lost packets; otherwise the case is reported as not measured.
fn whole(suite: &mut Suite, bench: &Bench, case: &str) -> bool {
    let dropped = bench.dropped();
    if dropped > 0 {
        let side = bench.side.name();
        let why = format!("{case}: {side}: {dropped} packets were dropped where they waited");
        suite.results.miss(&why);
    }
    dropped == 0
}

/// The sender's rate, by its own stamps; `None` of fewer than two packets.
pub fn sending_rate(arrivals: &Arrivals) -> Option<f64> {
    let sent = || arrivals.0.iter().map(|arrival| arrival.sent_ns);
    let numbers = || arrivals.0.iter().map(|arrival| arrival.number);
    let packets = numbers().max()? - numbers().min()?;
    let span_ns = sent().max()? - sent().min()?;
    (span_ns > 0).then(|| f64::from(packets) * 1e9 / span_ns as f64)
}

/// A normal delay, independent for each packet on both sides, like netem's; and in emud's own
/// order.
fn jitter(suite: &mut Suite, bench: &mut Bench, first: bool) {
    const MEAN_MS: f64 = 20.0;
    const SD_MS: f64 = 2.0;
    let netem = format!("delay {MEAN_MS}ms {SD_MS}ms distribution normal");
    let emud = |reorder: &str| {
        let what = r#"distribution = "normal""#;
        format!(
            r#"delay={{ mean = "{MEAN_MS}ms", sd = "{SD_MS}ms", {what}, reorder = "{reorder}" }}"#
        )
    };
    let count = if suite.full { 10_000 } else { 2000 };
    for (reorder, name) in [("jitter", "each packet's own"), ("never", "in order")] {
        // netem has no other; in order, values are a coherence time apart: long runs only.
        if reorder == "never" && (bench.side == Side::Netem || !suite.full) {
            continue;
        }
        bench.set(&Link {
            delay_ms: MEAN_MS,
            netem: netem.clone(),
            emud: vec![emud(reorder), "loss=0%".to_owned()],
        });
        let stream = Stream {
            packets_per_s: 1000,
            count,
        };
        let delays = sent(bench, stream).delays_ms();
        let case = format!("delay {MEAN_MS} ms, normal jitter of sd {SD_MS} ms, {name}");
        if !whole(suite, bench, &case) {
            continue;
        }
        if first && bench.side == Side::Emud {
            suite.results.add(&case, "theory", "delay sd", "ms", SD_MS);
        }
        let side = bench.side.name();
        let (mean, sd) = moments(&delays);
        suite.results.add(&case, side, "delay mean", "ms", mean);
        suite.results.add(&case, side, "delay sd", "ms", sd);
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Gilbert-Elliott that loses every packet in its bad state: a share p / (p + r), in bursts of 1 /
/// r.
fn losses(suite: &mut Suite, bench: &mut Bench, first: bool) {
    const P: f64 = 0.02;
    const R: f64 = 0.25;
    bench.set(&Link {
        delay_ms: 1.0,
        netem: format!("delay 1ms loss gemodel {}% {}%", P * 1e2, R * 1e2),
        emud: vec![
            "delay=1ms".to_owned(),
            format!(
                r#"loss={{ model = "gilbert-elliott", p = "{}%", r = "{}%" }}"#,
                P * 1e2,
                R * 1e2
            ),
        ],
    });
    let stream = Stream {
        packets_per_s: 10_000,
        count: if suite.full { 20_000 } else { 4000 },
    };
    let lost = sent(bench, stream).lost(stream.count);
    let case = "Gilbert-Elliott loss, p 2 %, r 25 %";
    if !whole(suite, bench, case) {
        return;
    }
    let bursts = lost.iter().enumerate();
    let bursts = bursts.filter(|&(i, n)| i == 0 || lost[i - 1] + 1 != *n);
    let mean_burst = lost.len() as f64 / bursts.count() as f64;
    let mut add = |side: &str, rate: f64, burst: f64| {
        suite.results.add(case, side, "loss", "%", rate * 1e2);
        suite
            .results
            .add(case, side, "mean burst", "packets", burst);
    };
    if first && bench.side == Side::Emud {
        add("theory", P / (P + R), 1.0 / R);
    }
    let share = lost.len() as f64 / f64::from(stream.count);
    add(bench.side.name(), share, mean_burst);
}
