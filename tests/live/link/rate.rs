// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput: the link's rate, its queue, and a TCP flow with its delay.

use std::time::Duration;

use support::bulk::{Bulk, FRAME, SEGMENT};
use support::lab::{Engine, Lab, Verdict, packets_per_s, promised, run, scaled_s, sh};
use support::probe::{Arrivals, HEADERS, Probe};
use support::stats::median;

/// Within this share of what the length on the wire allows.
const WITHIN: f64 = 0.01;

/// Payload of a full packet.
const FULL: usize = 1514 - HEADERS;

fn probe(lab: &Lab, count: u32, interval_ns: u64) -> Probe {
    Probe {
        payload_len: FULL,
        // Longer than any packet waits for its predecessor.
        patience: Duration::from_millis(700),
        ..Probe::new(lab, count, interval_ns)
    }
}

/// The rates that this machine has the packets for.
fn rates() -> impl Iterator<Item = (&'static str, f64, f64)> {
    [
        ("384kbit", 384e3, 6.0),
        ("10Mbit", 10e6, 4.0),
        ("100Mbit", 100e6, 3.0),
    ]
    .into_iter()
    .filter(|(_, rate, _)| {
        let wanted = (1.3 * rate / 8.0 / 1514.0) as u32;
        packets_per_s(wanted) == wanted
    })
}

/// UDP at a quarter more than the link carries.
pub fn udp(engine: Engine) {
    let mut verdict = Verdict::default();
    for (name, rate, seconds) in rates() {
        let lab = Lab::new();
        lab.attach(
            engine,
            &format!("[link]\nrate = \"{name}\"\nqueue = \"100ms\"\n[down]\noverhead = 24"),
            &[],
        );
        // Both directions, and bytes that only the wire sees.
        for (overhead, reverse) in [(0.0, false), (24.0, true)] {
            let wire = 8.0 * (1514.0 + overhead);
            let interval_s = wire / rate / 1.25;
            let mut probe = probe(
                &lab,
                (scaled_s(seconds, 1.6).as_secs_f64() / interval_s) as u32,
                (interval_s * 1e9) as u64,
            );
            if reverse {
                probe.address = Lab::A4.parse().expect("an address");
                std::mem::swap(&mut probe.from, &mut probe.to);
            }
            let arrivals = probe.run();
            let direction = if reverse { "down" } else { "up" };
            let name = format!("{direction}, overhead {overhead}, {name}");
            verdict.near(
                &format!("{name}: bit/s on the wire"),
                rate,
                rate_of(&arrivals, wire),
                WITHIN * rate,
            );
            // A fifth is too much for the link; the queue takes the first of that.
            verdict.at_least(
                &format!("{name}: share lost"),
                0.1,
                1.0 - arrivals.0.len() as f64 / f64::from(probe.count),
            );
        }
    }
    verdict.end();
}

/// Over the last three quarters of the arrivals: by then there is a queue of 100 ms, which a
/// sender that is held up does not empty.
fn rate_of(arrivals: &Arrivals, bits: f64) -> f64 {
    let full = &arrivals.0[arrivals.0.len() / 4..];
    let (first, last) = (full.first().unwrap(), full.last().unwrap());
    let seconds = (last.arrived_ns - first.arrived_ns) as f64 / 1e9;
    (full.len() - 1) as f64 * bits / seconds
}

/// One TCP flow; its acknowledgements come back without limit.
pub fn tcp(engine: Engine) {
    let mut verdict = Verdict::default();
    for (name, rate, seconds) in rates() {
        let lab = Lab::new();
        lab.attach(
            engine,
            &format!("[link]\ndelay = \"2ms\"\n[up]\nrate = \"{name}\"\nqueue = \"4000p\""),
            &[],
        );
        let bulk = Bulk {
            // Enough to keep the link busy, too little to fill the queue.
            window: Some(if rate < 1e6 { 64 << 10 } else { 1 << 20 }),
            warm_up: Duration::from_millis(500),
            duration: scaled_s(seconds, 1.5),
            ..flow(&lab)
        };
        let allowed = rate * SEGMENT / FRAME;
        verdict.near(
            &format!("{name}: payload bit/s"),
            allowed,
            bulk.goodput_bit_s(),
            WITHIN * allowed,
        );
        verdict.same(
            &format!("{name}: dropped by the queue"),
            0,
            lab.shown("/up/counters/queue_dropped"),
        );
    }
    verdict.end();
}

fn flow(lab: &Lab) -> Bulk {
    Bulk {
        from: lab.a.clone(),
        to: lab.b.clone(),
        address: Lab::B4.parse().expect("an address"),
        // 20 round trips over the longest link here.
        warm_up: Duration::from_secs(1),
        duration: scaled_s(2.0, 1.0),
        window: None,
    }
}

/// All at once into an empty queue: what fits arrives, one after the other.
pub fn queue(engine: Engine) {
    // 200 kbit/s is 60.56 ms a packet.
    const CASES: &[(&str, usize)] = &[
        ("1p", 1),
        ("20p", 20),
        // 20 frames exactly; three quarters of one less, which the time it takes to send the
        // packets (1 ms drains 25 bytes) cannot make up for.
        ("30280B", 20),
        ("29150B", 19),
        // The packet that waits 1,029 ms is the 18th, the 17th waits 969 ms.
        ("1000ms", 17),
    ];
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "[up]\nrate = \"200kbit\"\nqueue = \"20p\"", &[]);
    for (size, fits) in CASES {
        lab.emud(&["set", "va", &format!("up.queue={size}")])
            .expect(0);
        let before = lab.shown("/up/counters/queue_dropped");
        let arrivals = probe(&lab, 60, 0).run();
        verdict.same(&format!("queue {size} holds"), *fits, arrivals.0.len());
        verdict.same(
            &format!("queue {size}: the first that did not fit"),
            Some(*fits as u32),
            arrivals.lost(60).first().copied(),
        );
        verdict.same(
            &format!("queue {size}: dropped by emud's count"),
            60 - *fits as u64,
            lab.shown("/up/counters/queue_dropped") - before,
        );
    }
    verdict.end();
}

/// One TCP flow that the holder delays against the bare interface, alternating.
pub fn tcp_keeps_its_pace(engine: Engine) {
    const LEAST: f64 = 0.8;
    let cpus = std::thread::available_parallelism().expect("a number of CPUs");
    if engine.is_stamped() || cpus.get() < 2 {
        println!("    for engine hold, and where the holder has a CPU beside the sender's");
        return;
    }
    let lab = Lab::new();
    // The same segmentation in both cases.
    sh(&format!("ip -n {} link set dev va gso_max_segs 1", lab.a));
    let (mut bare, mut delayed) = (vec![], vec![]);
    for _ in 0..5 {
        bare.push(flow(&lab).goodput_bit_s() / 1e6);
        lab.attach(engine, "[link]\ndelay = \"20ms\"", &["--direction", "up"]);
        delayed.push(flow(&lab).goodput_bit_s() / 1e6);
        lab.detach();
    }
    println!("    Mbit/s bare {bare:.0?}, over 20 ms {delayed:.0?}");
    // Neighbours in time have the same machine.
    let shares: Vec<f64> = delayed.iter().zip(&bare).map(|(d, b)| d / b).collect();
    let mut verdict = Verdict::default();
    verdict.at_least("share of the bare interface", LEAST, median(&shares));
    verdict.end();
}

/// One TCP flow over 50 ms on the sender's own interface against netem, alternating.
pub fn tcp_against_netem(engine: Engine) {
    const LEAST: f64 = 0.95;
    if engine == Engine::Hold {
        return;
    }
    let lab = Lab::new();
    // The window is to limit the flow. A sender whose buffer is full wakes when a third of it is free
    // (sk_stream_min_wspace()), so its flight swings by the pattern of acknowledgements: in 6.12 0.80 of netem, and
    // 0.93 to 0.97 with another sender.
    lab.in_a("sysctl -qw net.ipv4.tcp_wmem=\"4096 16384 33554432\"");
    let netem = "qdisc add dev va root netem delay 50ms limit 100000";
    let there = run(std::process::Command::new("tc")
        .args(["-n", &lab.a])
        .args(netem.split(' ')));
    if there.code != 0 {
        assert!(!promised("EMUD_EXPECT", "netem"), "{}", there.err);
        println!("    no netem here: {}", there.err.trim());
        return;
    }
    let (mut stock, mut emulated) = (vec![], vec![]);
    for round in 0..3 {
        if round > 0 {
            sh(&format!("tc -n {} {netem}", lab.a));
        }
        stock.push(flow(&lab).goodput_bit_s() / 1e6);
        sh(&format!("tc -n {} qdisc del dev va root", lab.a));
        lab.attach(engine, "[link]\ndelay = \"50ms\"", &["--direction", "up"]);
        emulated.push(flow(&lab).goodput_bit_s() / 1e6);
        lab.detach();
    }
    println!("    Mbit/s netem {stock:.0?}, emud {emulated:.0?}");
    let mut verdict = Verdict::default();
    verdict.at_least(
        "share of netem's",
        LEAST,
        median(&emulated) / median(&stock),
    );
    verdict.end();
}
