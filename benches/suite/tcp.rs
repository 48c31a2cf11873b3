// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over a link on the sender's own interface: the effect of its delay, and of its losses.

use std::time::Duration;

use crate::Suite;
use crate::figure::Results;
use crate::flows::goodput_bit_s;
use crate::side::{Bench, Link, Side, here};
use support::bulk::SEGMENT;
use support::lab::{self, Lab};

/// Of a measurement: its flows, the start that is left out, and its length.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub flows: usize,
    pub congestion_control: &'static str,
    pub warm_up: Duration,
    pub duration: Duration,
}

pub fn run(suite: &mut Suite) {
    let turns = turns(suite);
    let sides = here(
        suite,
        &[Side::Bare, Side::Netem, Side::Emud, Side::EmudQdisc],
    );
    let mut benches: Vec<Bench> = sides.into_iter().map(Bench::new).collect();
    let controls = controls(suite, &benches[0].lab);
    let delays_ms: &[f64] = match suite.full {
        true => &[0.0, 1.0, 10.0, 50.0, 100.0, 200.0],
        false => &[0.0, 10.0, 50.0],
    };
    for _ in 0..turns {
        for &delay_ms in delays_ms {
            // Without a delay, only the bare path: the limit of the machine.
            let of = |bench: &&mut Bench| (bench.side == Side::Bare) == (delay_ms == 0.0);
            for bench in benches.iter_mut().filter(of) {
                delayed(suite, bench, delay_ms, &controls);
            }
        }
    }
    benches.retain(|bench| bench.side != Side::Bare);
    let wire = here(suite, &[Side::NetemWire]);
    benches.extend(wire.into_iter().map(Bench::new));
    for turn in 0..turns {
        losses(suite, &mut benches, turn == 0);
    }
}

/// A full run has many cases, and each gets fewer turns: a guest's clock counts nearly the same
/// each time.
fn turns(suite: &Suite) -> usize {
    suite.turns.min(2)
}

const FLOWS: usize = 10;

/// Cubic, and BBR where the kernel has it and all is measured.
fn controls(suite: &mut Suite, lab: &Lab) -> Vec<&'static str> {
    if !suite.full {
        return vec!["cubic"];
    }
    // Built in or a module: only the result counts.
    let _ = lab::run(std::process::Command::new("modprobe").arg("tcp_bbr"));
    if has_control(lab, "bbr") {
        return vec!["cubic", "bbr"];
    }
    suite.results.miss("BBR: this kernel has no tcp_bbr");
    vec!["cubic"]
}

/// Returns whether this congestion control exists: a kernel may list one that it then rejects.
pub fn has_control(lab: &Lab, name: &str) -> bool {
    let script = format!("echo {name} >/proc/sys/net/ipv4/tcp_congestion_control");
    let mut command = std::process::Command::new("ip");
    let in_a = command.args(["netns", "exec", &lab.a, "sh", "-c", &script]);
    lab::run(in_a).code == 0
}

fn delayed(suite: &mut Suite, bench: &mut Bench, delay_ms: f64, controls: &[&'static str]) {
    let flows: &[usize] = if suite.full { &[1, FLOWS] } else { &[1] };
    bench.set(&Link::delay(delay_ms));
    for &congestion_control in controls {
        for &flows in flows {
            let run = Run {
                congestion_control,
                ..Run::over(delay_ms, flows)
            };
            let many = if flows == 1 { "flow" } else { "flows" };
            let case = format!("delay {delay_ms} ms, {flows} {many}, {congestion_control}");
            run.measure(&mut suite.results, bench, &case);
        }
    }
    let dropped = bench.dropped();
    assert_eq!(dropped, 0, "{}: dropped", bench.side.name());
}

impl Run {
    /// Long enough for a flow to fill its window, which takes it some 15 round trips. Many flows
    /// send more than a guest has the real time for, so they have fewer.
    fn over(delay_ms: f64, flows: usize) -> Self {
        let trips =
            |n: f64, least_s: f64| Duration::from_secs_f64((n * delay_ms / 1e3).max(least_s));
        let (first, then) = if flows == 1 {
            (15.0, 10.0)
        } else {
            (12.0, 6.0)
        };
        Self {
            flows,
            congestion_control: "cubic",
            warm_up: trips(first, 0.1),
            duration: trips(then, 0.2),
        }
    }

    /// Adds the goodput of all flows, at the receivers.
    pub fn measure(&self, results: &mut Results, bench: &Bench, case: &str) {
        bench.lab.in_a(&format!(
            "echo {} >/proc/sys/net/ipv4/tcp_congestion_control
             echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save",
            self.congestion_control
        ));
        let Self {
            flows,
            warm_up,
            duration,
            ..
        } = *self;
        let goodput = goodput_bit_s(&bench.lab, flows, warm_up, duration) / 1e6;
        let side = bench.side.name();
        // It can stop for good, with data on both of its sides.
        if goodput == 0.0 && bench.side == Side::Wirefilter {
            results.miss(&format!("{case}: {side} passed nothing"));
            return;
        }
        assert!(goodput > 0.0, "nothing came");
        results.add(case, side, "goodput", "Mbit/s", goodput);
    }
}

/// Reno, for which Mathis et al. give goodput = MSS / RTT * C / sqrt(p). C is sqrt(3/2), that of
/// an acknowledgement for every packet: Linux counts the packets acknowledged, so its window
/// grows by one a round trip also where acknowledgements are delayed.
fn losses(suite: &mut Suite, benches: &mut [Bench], first: bool) {
    const DELAY_MS: f64 = 10.0;
    let (losses, events): (&[f64], f64) = match suite.full {
        true => (&[0.001, 0.002, 0.01], 100.0),
        false => (&[0.01], 40.0),
    };
    for &p in losses {
        let case = format!(
            "delay {DELAY_MS} ms, loss {} %, 1 flow, reno",
            (p * 1e4).round() / 1e2
        );
        let packets_per_s = 1.5f64.sqrt() / p.sqrt() / (DELAY_MS / 1e3);
        let bound = packets_per_s * SEGMENT * 8.0 / 1e6;
        if first {
            let results = &mut suite.results;
            results.add(&case, "Mathis bound", "goodput", "Mbit/s", bound);
        }
        let run = Run {
            flows: 1,
            congestion_control: "reno",
            // The first loss ends slow start.
            warm_up: Duration::from_secs_f64(10.0 / p / packets_per_s),
            duration: Duration::from_secs_f64(events / p / packets_per_s),
        };
        for bench in benches.iter_mut() {
            let percent = p * 1e2;
            bench.set(&Link {
                delay_ms: DELAY_MS,
                netem: format!("delay {DELAY_MS}ms loss {percent}%"),
                emud: vec![format!("delay={DELAY_MS}ms"), format!("loss={percent}%")],
            });
            run.measure(&mut suite.results, bench, &case);
        }
    }
}
