// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion signalled by marks: TCP with ECN over a link that marks.

use std::time::Duration;

use support::bulk::Bulk;
use support::lab::{Engine, Lab, Verdict, scaled_s};

const QUEUES: &[(&str, &str)] = &[
    ("threshold", "ecn = \"10ms\""),
    ("codel", "aqm = \"codel\", ecn = true"),
    (
        "red",
        "aqm = \"red\", min = \"5ms\", max = \"100ms\", probability = \"20%\", weight = 0.1, ecn = true",
    ),
    // With the usual gains the probability takes seconds to rise.
    (
        "pie",
        "aqm = \"pie\", target = \"5ms\", alpha = 1, beta = 1, ecn = true",
    ),
    (
        "ared",
        "aqm = \"ared\", target = \"20ms\", weight = 0.1, ecn = true",
    ),
    (
        "rio",
        "aqm = \"rio\", min = \"5ms\", max = \"100ms\", probability = \"20%\", weight = 0.1, \
         assured-min = \"10ms\", assured-max = \"200ms\", ecn = true",
    ),
    (
        "pi",
        "aqm = \"pi\", target = \"5ms\", a = 2e-3, b = 1.9e-3, ecn = true",
    ),
    (
        "rem",
        "aqm = \"rem\", target = \"5ms\", gamma = 0.05, phi = 1.01, ecn = true",
    ),
];

/// A queue's profile, and its counters: marked, dropped by the manager, dropped because it was full.
struct PacketTarget {
    profile: fn(&str) -> String,
    marked: &'static str,
    managed: &'static str,
    full: &'static str,
}

/// The rate of the queues.
const MBIT_S: f64 = 10.0;

/// From here on, what a queue drops is not judged: ten times the round trip.
const LATE_MS: u64 = 100;

/// Every mark that emud counts arrives, and no queue overflows.
pub fn marks(engine: Engine) {
    let profile = |queue: &str| {
        format!(
            "[link]\ndelay = \"5ms\"\n[up]\nrate = \"10Mbit\"\nqueue = {{ time = \"1s\", {queue} }}"
        )
    };
    let place = PacketTarget {
        profile,
        marked: "/up/counters/marked",
        // Above 10 % PIE drops packets that it could mark.
        managed: "/up/counters/aqm_dropped/pie",
        full: "/up/counters/queue_dropped",
    };
    marks_in(engine, &place);
}

/// The same in a class of a bottleneck.
pub fn marks_in_a_class() {
    let profile = |queue: &str| {
        format!(
            "[link]\ndelay = \"5ms\"\n[up]\nclass = \"b.x\"\n\
             [bottleneck.b]\nrate = \"10Mbit\"\n\
             [bottleneck.b.class.x]\nqueue = {{ limit = \"1000p\", {queue} }}\n"
        )
    };
    let place = PacketTarget {
        profile,
        marked: "/bottlenecks/0/classes/0/marked",
        managed: "/bottlenecks/0/classes/0/dropped_aqm",
        full: "/bottlenecks/0/classes/0/dropped_full",
    };
    marks_in(Engine::Hold, &place);
}

fn marks_in(engine: Engine, place: &PacketTarget) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.add_ipv6();
    for side in [&lab.a, &lab.b] {
        support::lab::sh(&format!(
            "ip netns exec {side} sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_ecn'"
        ));
    }
    for (n, (name, queue)) in QUEUES.iter().enumerate() {
        lab.attach(engine, &(place.profile)(queue), &[]);
        let families = [("IPv4", Lab::B4), ("IPv6", Lab::B6)];
        // In `make test` each queue has one of them.
        let families = match support::full() {
            true => &families[..],
            false => &families[n % 2..][..1],
        };
        for (family, address) in families {
            let before = (
                lab.shown(place.marked),
                came_marked(&lab),
                lab.shown(place.managed),
            );
            let flow = Bulk {
                from: lab.a.clone(),
                to: lab.b.clone(),
                address: address.parse().expect("an address"),
                warm_up: Duration::from_millis(500),
                // In a guest's second PI, which forgets slowly, only answers what filled the queue first: in 6.1
                // one IPv6 flow had 2.7 to 7.9 Mbit/s five times.
                duration: scaled_s(2.0, if support::full() { 2.0 } else { 1.0 }),
                window: None,
            };
            let marked = || lab.shown(place.marked) - before.0;
            // A sender that the machine held up leaves the queue empty, and then nothing is to signal: once
            // PIE had no signal in a transfer beside other tests.
            let filled = (0..5).any(|_| {
                let mbit_s = flow.goodput_bit_s() / 1e6;
                let signals = marked() + lab.shown(place.managed) - before.2;
                println!("    {name}, {family}: {mbit_s:.2} Mbit/s, {signals} signals");
                mbit_s > 0.8 * MBIT_S && signals > 0
            });
            let name = format!("{name}, {family}");
            verdict.same(&format!("{name}: filled, with signals"), true, filled);
            // Packets in flight when the flow ends: at most the queue's second.
            std::thread::sleep(Duration::from_millis(1_200));
            let marked = marked();
            verdict.same(
                &format!("{name}: came marked"),
                marked,
                came_marked(&lab) - before.1,
            );
        }
        // What a machine that stood still releases late is acknowledged at once, and the sender answers
        // with twice as much: in one run 107 packets more than the queue takes.
        let late_ms = worst_late_ms(&lab, engine);
        let full = lab.shown(place.full);
        match late_ms < LATE_MS {
            true => verdict.same(&format!("{name}: dropped by a full queue"), 0, full),
            false => println!("    {name}: {full} dropped, frames up to {late_ms} ms late"),
        }
        lab.detach();
    }
    verdict.end();
}

/// Returns how late the holder sent the latest frame.
fn worst_late_ms(lab: &Lab, engine: Engine) -> u64 {
    match engine {
        Engine::Hold => {
            let [up, down] =
                ["up", "down"].map(|d| lab.shown(&format!("/{d}/holder/worst_late_ns")));
            up.max(down) / 1_000_000
        }
        _ => 0,
    }
}

/// Returns the packets with CE that b has received so far, according to its kernel.
fn came_marked(lab: &Lab) -> u64 {
    let ip4 = lab.in_b("cat /proc/net/netstat");
    let mut lines = ip4.lines().filter(|line| line.starts_with("IpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let ip4 = names
        .split_whitespace()
        .zip(values.split_whitespace())
        .find(|(name, _)| *name == "InCEPkts");
    let ip6 = lab.in_b("cat /proc/net/snmp6");
    let ip6 = ip6
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(name, _)| *name == "Ip6InCEPkts");
    [ip4, ip6]
        .into_iter()
        .map(|found| found.expect("a counter of CE").1.trim())
        .map(|count| count.parse::<u64>().expect("a count"))
        .sum()
}
