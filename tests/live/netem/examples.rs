// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every example of tc-netem(8), through stock netem and through emud's import of it.

use super::judge::Judge;
use super::measure::{Sample, What};
use super::model::{Link, Loss, Who, simulate};
use super::pairs::Pairs;
use support::probe::{Arrivals, Probe};

/// One each of these; no whole part of a delay, so that sending and arriving do not meet.
pub const INTERVAL_NS: u64 = 1_037_000;

pub struct Example {
    pub command: &'static str,
    pub link: Link,
    /// How netem differs, and why.
    pub differs: &'static [What],
    pub reason: &'static str,
}

pub const NONE: Link = Link {
    delay_ms: 0.0,
    jitter_ms: 0.0,
    normal: false,
    delay_correlation: 0.0,
    loss: Loss::None,
    duplicate: 0.0,
    corrupt: 0.0,
    reorder: 0.0,
    reorder_correlation: 0.0,
    gap: 0,
    slot_ms: 0.0,
};

const SQUEEZED: &str = "netem's correlation squeezes its numbers towards one half";

/// Those of the page of 2011 and of the one since iproute2 6.9, EXAMPLES and text; then one of
/// each option that the text describes without a command. Those with a rate are in burst.rs.
#[rustfmt::skip]
pub const EXAMPLES: &[Example] = &[
    Example { command: "tc qdisc add dev eth0 root netem delay 100ms",
        link: Link { delay_ms: 100.0, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 10ms 25%",
        link: Link { delay_ms: 100.0, jitter_ms: 10.0, delay_correlation: 0.25, ..NONE },
        differs: &[What::Correlation], reason: "netem takes its correlated numbers modulo twice the jitter: no correlation is left" },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 20ms distribution normal",
        link: Link { delay_ms: 100.0, jitter_ms: 20.0, normal: true, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc change dev eth0 root netem loss 0.1%",
        link: Link { loss: Loss::Random { p: 0.001, correlation: 0.0 }, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc change dev eth0 root netem duplicate 1%",
        link: Link { duplicate: 0.01, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc change dev eth0 root netem loss 0.3% 25%",
        link: Link { loss: Loss::Random { p: 0.003, correlation: 0.25 }, ..NONE },
        differs: &[What::Lost], reason: SQUEEZED },
    Example { command: "tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50%",
        link: Link { delay_ms: 10.0, reorder: 0.25, reorder_correlation: 0.5, ..NONE },
        differs: &[What::DelayMean, What::DelaySd, What::Overtaken], reason: SQUEEZED },
    Example { command: "tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50% gap 5",
        link: Link { delay_ms: 10.0, reorder: 0.25, reorder_correlation: 0.5, gap: 5, ..NONE },
        differs: &[What::DelayMean, What::DelaySd, What::Overtaken], reason: SQUEEZED },
    // The intention of `gap 5 delay 10ms` on the page, which tc rejects.
    Example { command: "tc qdisc add dev eth0 root netem delay 10ms reorder 100% gap 5",
        link: Link { delay_ms: 10.0, reorder: 1.0, gap: 5, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 75ms",
        link: Link { delay_ms: 100.0, jitter_ms: 75.0, ..NONE }, differs: &[], reason: "" },
    Example { command: "tc qdisc add dev eth0 parent 30:1 handle 31: netem delay 200ms 10ms distribution normal",
        link: Link { delay_ms: 200.0, jitter_ms: 10.0, normal: true, ..NONE }, differs: &[], reason: "" },
    Example { command: "netem loss gemodel 1% 10% 70% 0.1%",
        link: Link { loss: Loss::GilbertElliott { p: 0.01, r: 0.1, bad: 0.7, good: 0.001 }, ..NONE }, differs: &[], reason: "" },
    Example { command: "netem loss state 2% 20% 10% 30% 0.5%",
        link: Link { loss: Loss::FourState { p13: 0.02, p31: 0.2, p32: 0.1, p23: 0.3, p14: 0.005 }, ..NONE }, differs: &[], reason: "" },
    Example { command: "netem corrupt 20%",
        link: Link { corrupt: 0.2, ..NONE },
        differs: &[What::Lost], reason: "netem may hit the source's hardware address, which nobody checks" },
    // Marks packets where possible, which the probes do not permit.
    Example { command: "netem loss 1% ecn",
        link: Link { loss: Loss::Random { p: 0.01, correlation: 0.0 }, ..NONE }, differs: &[], reason: "" },
    Example { command: "netem slot 5ms",
        link: Link { slot_ms: 5.0, ..NONE },
        differs: &[What::DelayMean, What::DelaySd], reason: "netem's slot begins when a packet waits for it, emud's when the last one ends" },
];

/// Statements of the page that cannot be compared with a sample.
pub const PARSED: &[&str] = &[
    "tc qdisc add dev eth0 root netem rate 5kbit 20 100 5",
    "netem limit 1000",
    "netem rate 100kbit",
    "netem rate 100kbit -14",
    "netem rate 100kbit 0 48 5",
    "netem slot 800us",
];

/// Packets for the theory, far more than measured.
const SIMULATED: u32 = 1 << 16;

/// Netem's arrivals and emud's, when they have been judged.
pub fn measure(example: &Example, pairs: &Pairs, count: u32, interval_ns: u64) -> [Arrivals; 2] {
    let interval_ms = interval_ns as f64 / 1e6;
    let machine = pairs.machine();
    let arrivals = pairs.run(example.command, |lab| Probe {
        copies: 2,
        ..Probe::new(lab, count, interval_ns)
    });
    let simulated = SIMULATED.max(4 * count);
    let theory = [Who::Netem, Who::Emud].map(|who| {
        let arrivals = simulate(&example.link, who, simulated, interval_ms);
        Sample::new(&arrivals, simulated, interval_ms, 0.0)
    });
    let got = [Who::Netem, Who::Emud].map(|who| {
        let added_ms = machine.added_ms[who as usize];
        Sample::new(&arrivals[who as usize], count, interval_ms, added_ms)
    });
    println!("    {}", example.command);
    let mut judge = Judge {
        spread_ms: machine.spread_ms,
        measured: f64::from(count),
        simulated: f64::from(simulated),
        wrong: vec![],
    };
    for what in What::ALL {
        if what == What::Correlation && example.link.jitter_ms == 0.0 {
            continue;
        }
        let figures = |samples: &[Sample; 2]| {
            [0, 1].map(|i| samples[i].figure(what).expect("enough packets"))
        };
        let differs = example.differs.contains(&what);
        judge.figure(what, figures(&got), figures(&theory), differs);
    }
    if !example.differs.is_empty() {
        println!("    because {}", example.reason);
    }
    judge.end(example.command);
    arrivals
}
