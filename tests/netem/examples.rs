// SPDX-License-Identifier: GPL-2.0-only
//! Every example of tc-netem(8), through stock netem and through what emud imports of it.

use super::judge::Judge;
use super::measure::{Sample, What};
use super::model::{Link, Loss, Who, simulate};
use super::pairs::{INTERVAL_MS, INTERVAL_NS, Pairs};
use super::probe::Probe;

pub struct Example {
    pub command: &'static str,
    pub link: Link,
    /// Why netem does something else. It is a difference that its recurrence shows, too, and one
    /// that must be there.
    pub differs: Option<&'static str>,
}

const NONE: Link = Link {
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
};

const SQUEEZED: &str = "netem's correlation squeezes its numbers towards one half";

/// Those of the page of 2011 and of the one since iproute2 6.9, EXAMPLES and text; then one of
/// each option that the text describes without a command. Those with a rate are in burst.rs.
#[rustfmt::skip]
pub const EXAMPLES: &[Example] = &[
    Example { command: "tc qdisc add dev eth0 root netem delay 100ms",
        link: Link { delay_ms: 100.0, ..NONE }, differs: None },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 10ms 25%",
        link: Link { delay_ms: 100.0, jitter_ms: 10.0, delay_correlation: 0.25, ..NONE },
        differs: Some("netem takes its correlated numbers modulo twice the jitter: no correlation is left") },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 20ms distribution normal",
        link: Link { delay_ms: 100.0, jitter_ms: 20.0, normal: true, ..NONE }, differs: None },
    Example { command: "tc qdisc change dev eth0 root netem loss 0.1%",
        link: Link { loss: Loss::Random { p: 0.001, correlation: 0.0 }, ..NONE }, differs: None },
    Example { command: "tc qdisc change dev eth0 root netem duplicate 1%",
        link: Link { duplicate: 0.01, ..NONE }, differs: None },
    Example { command: "tc qdisc change dev eth0 root netem loss 0.3% 25%",
        link: Link { loss: Loss::Random { p: 0.003, correlation: 0.25 }, ..NONE }, differs: Some(SQUEEZED) },
    Example { command: "tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50%",
        link: Link { delay_ms: 10.0, reorder: 0.25, reorder_correlation: 0.5, ..NONE }, differs: Some(SQUEEZED) },
    Example { command: "tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50% gap 5",
        link: Link { delay_ms: 10.0, reorder: 0.25, reorder_correlation: 0.5, gap: 5, ..NONE }, differs: Some(SQUEEZED) },
    // What `gap 5 delay 10ms` of the page is for; tc refuses that.
    Example { command: "tc qdisc add dev eth0 root netem delay 10ms reorder 100% gap 5",
        link: Link { delay_ms: 10.0, reorder: 1.0, gap: 5, ..NONE }, differs: None },
    Example { command: "tc qdisc change dev eth0 root netem delay 100ms 75ms",
        link: Link { delay_ms: 100.0, jitter_ms: 75.0, ..NONE }, differs: None },
    Example { command: "tc qdisc add dev eth0 parent 30:1 handle 31: netem delay 200ms 10ms distribution normal",
        link: Link { delay_ms: 200.0, jitter_ms: 10.0, normal: true, ..NONE }, differs: None },
    Example { command: "netem loss gemodel 1% 10% 70% 0.1%",
        link: Link { loss: Loss::GilbertElliott { p: 0.01, r: 0.1, bad: 0.7, good: 0.001 }, ..NONE }, differs: None },
    Example { command: "netem loss state 2% 20% 10% 30% 0.5%",
        link: Link { loss: Loss::FourState { p13: 0.02, p31: 0.2, p32: 0.1, p23: 0.3, p14: 0.005 }, ..NONE }, differs: None },
    Example { command: "netem corrupt 20%",
        link: Link { corrupt: 0.2, ..NONE },
        differs: Some("netem may hit the source's hardware address, which nobody checks") },
];

/// What the page says beside, which no sample can be compared of.
pub const PARSED: &[&str] = &[
    "tc qdisc add dev eth0 root netem rate 5kbit 20 100 5",
    "netem limit 1000",
    "netem rate 100kbit",
    "netem rate 100kbit -14",
    "netem rate 100kbit 0 48 5",
    "netem slot 800us",
    "netem loss 1% ecn",
];

/// Packets for the theory, many more than measured.
const SIMULATED: u32 = 1 << 16;

pub fn measure(example: &Example, pairs: &Pairs, count: u32) {
    let machine = pairs.machine();
    let arrivals = pairs.run(example.command, |lab| Probe {
        copies: 2,
        ..Probe::new(lab, count, INTERVAL_NS)
    });
    let simulated = [Who::Netem, Who::Emud]
        .map(|who| simulate(&example.link, who, SIMULATED.max(4 * count), INTERVAL_MS));
    let mut judge = Judge::new(example.command, machine.spread_ms);
    for what in What::ALL {
        if what == What::Correlation && example.link.jitter_ms == 0.0 {
            continue;
        }
        let figure = |arrivals, count, added_ms| {
            Sample {
                arrivals,
                count,
                interval_ms: INTERVAL_MS,
                added_ms,
            }
            .figure(what)
            .expect("enough packets")
        };
        let measured = [Who::Netem, Who::Emud]
            .map(|who| figure(&arrivals[who as usize], count, machine.added_ms(who)));
        let theory = [Who::Netem, Who::Emud]
            .map(|who| figure(&simulated[who as usize], SIMULATED.max(4 * count), 0.0));
        judge.figure(what, measured, theory, f64::from(count));
    }
    judge.end(example.differs);
}
