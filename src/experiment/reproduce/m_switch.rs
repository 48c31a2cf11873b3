// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: what a forwarding decision between nodes of one host costs. In emud the classifier decides: it
//! finds the link of a pair of addresses. The kernel measures each run of it on a test packet.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use aya::programs::{SchedClassifier, TestRun, TestRunOptions};

use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, m_contention};
use crate::abi;
use crate::datapath::compiled::matching;
use crate::datapath::maps::{Loaded, Maps, Program};
use crate::datapath::stage::compile::{Compiled, PacketTarget, compile, of_number};
use crate::datapath::stage::features;
use crate::datapath::stage::sizes::Sizes;
use crate::host::now_ns;
use crate::profile::{Pair, Profile};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-switch",
    description: "The cost of a forwarding decision between nodes of one host, with frames of 64 to 1,500 bytes",
    source: m_contention::EXPERIMENT.source,
    method: "100,000 runs of the classifier with links of 64 x 63 pairs of nodes on test packets (BPF_PROG_TEST_RUN), \
             less those of one that has a single link, in turn; and 96,000 frames between 8 nodes of the scenario \
             m-switch (--quick: 9,600)",
    scenarios: &["m-switch"],
    thresholds: None,
    measure,
};

const FRAMES: u32 = 100_000;
const NODES: u32 = 64;
/// Shortest, mean and longest decision, ns.
const PUBLISHED: [f64; 3] = [88.0, 98.0, 1388.0];
/// Frames of Ethernet without their checksum.
const SHORTEST: u32 = 60;
const LONGEST: u32 = 1496;
/// IPPROTO_UDP
const UDP: u8 = 17;
const LINK: &str = "[link]\nrate = \"10Gbit\"\ndelay = \"1ms\"\n";
/// Of the first pair; each further one has another delay.
const DELAY_NS: u64 = 1_000_000_000;
const STEP_NS: u64 = 1_000_000;
/// Of `struct __sk_buff` (include/uapi/linux/bpf.h).
const SKB_LEN: usize = 192;
const SKB_TSTAMP: usize = 152;
/// Times the published figure: neither machine nor decision are the same.
const FACTOR: f64 = 4.0;
/// Times the mean: about ten lines of a pair's state at 100 ns each; 611 ns were measured.
const UNCACHED: f64 = 10.0;
const MEMORY: &str =
    "each pair has a separate state in memory, which the caches of the CPU do not hold";
const COARSE: &str = "the clock of this host is too coarse to measure a decision";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    (bench.progress)("m-switch: decisions");
    let mut figures = decisions()?;
    figures.push(frames(bench)?);
    Ok(figures)
}

/// Of runs of a classifier, ns. Interrupts are in a mean and in the longest run, but not in a median, and of a run of
/// less than 1 us not in one of a thousand.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Runs {
    least: f64,
    median: f64,
    /// Longer is one of a thousand.
    long: f64,
}

impl Runs {
    fn of(mut all: Vec<u32>) -> Self {
        all.sort_unstable();
        let at = |index: usize| f64::from(all[index]);
        Self {
            least: at(0),
            median: at(all.len() / 2),
            long: at((all.len() - 1) * 999 / 1000),
        }
    }
}

fn decisions() -> Result<Vec<Figure>, ReproduceError> {
    let matrix = format!("{LINK}[matrix]\ncapacity = {}\n", NODES * (NODES - 1));
    let [(one, _), (pairs, mut maps)] = [loaded(LINK)?, loaded(&matrix)?];
    let all: Vec<Pair> = (0..NODES * NODES).filter_map(pair).collect();
    let applied = maps.apply_pairs(&all, true).map_err(kernel)?;
    applied.map_err(|_| kernel("no room for the pairs"))?;
    let programs = [
        one.program(Program::Classify),
        pairs.program(Program::Classify),
    ];
    let [one, pairs] = programs.map(|program| program.map_err(kernel));
    let (one, pairs) = (one?, pairs?);
    let (mut without, mut same, mut any) = (vec![], vec![], vec![]);
    for n in 0..FRAMES {
        let size = SHORTEST + n % (LONGEST - SHORTEST + 1);
        let of_one = frame(&all[0], size);
        without.push(run(one, &of_one)?);
        // Of two runs the second one has the caches of the published measurement.
        run(pairs, &of_one)?;
        same.push(run(pairs, &of_one)?);
        any.push(run(pairs, &frame(&all[n as usize * 31 % all.len()], size))?);
    }
    let found: Result<Vec<bool>, _> = all.iter().map(|pair| takes_its_link(pairs, pair)).collect();
    let found = found?.into_iter().filter(|found| *found).count();
    let [without, same, any] = [without, same, any].map(Runs::of);
    let right = Figure::new("pairs whose frames take their own link", "%").theory(100.0);
    let right = right.within(Tolerance::Absolute(0.0));
    let mut figures = figures(without, same, any);
    figures.push(right.measured(Some(100.0 * found as f64 / all.len() as f64), None));
    Ok(figures)
}

/// `None`: a node sends nothing to itself.
fn pair(n: u32) -> Option<Pair> {
    let (from, to) = (n / NODES, n % NODES);
    let address = |node: u32| Ipv4Addr::from(0x0a00_0001 + node).into();
    (from != to).then(|| Pair {
        source: address(from),
        destination: address(to),
        rate: None,
        delay_ns: Some(DELAY_NS + u64::from(n) * STEP_NS),
        loss: None,
    })
}

fn frame(pair: &Pair, size: u32) -> Vec<u8> {
    let mut frame = vec![0; size as usize];
    frame[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(size as u16 - 14).to_be_bytes());
    frame[23] = UDP;
    for (at, address) in [(26, pair.source), (30, pair.destination)] {
        if let std::net::IpAddr::V4(address) = address {
            frame[at..at + 4].copy_from_slice(&address.octets());
        }
    }
    frame
}

/// Time of one run, ns.
fn run(classifier: &SchedClassifier, frame: &[u8]) -> Result<u32, ReproduceError> {
    let options = TestRunOptions {
        data_in: Some(frame),
        ..TestRunOptions::new()
    };
    let result = classifier.test_run(options).map_err(kernel)?;
    Ok(u32::try_from(result.duration.as_nanos()).unwrap_or(u32::MAX))
}

/// The departure has the delay of the pair, which no other pair has.
fn takes_its_link(classifier: &SchedClassifier, pair: &Pair) -> Result<bool, ReproduceError> {
    let mut context = [0; SKB_LEN];
    let frame = frame(pair, SHORTEST);
    let options = TestRunOptions {
        data_in: Some(&frame),
        ctx_out: Some(&mut context),
        ..TestRunOptions::new()
    };
    let before = now_ns();
    classifier.test_run(options).map_err(kernel)?;
    let after = now_ns();
    let departure = context[SKB_TSTAMP..].first_chunk();
    let departure = departure.map(|stamp| u64::from_ne_bytes(*stamp));
    Ok(departure.is_some_and(|departure| has_delay(pair, before..=after, departure)))
}

/// Serialization, and the lead that fq's stamp has, are less than half a step.
fn has_delay(pair: &Pair, sent: RangeInclusive<u64>, departure: u64) -> bool {
    let delay = pair.delay_ns.unwrap_or_default();
    let near = sent.start() + delay - STEP_NS / 2..=sent.end() + delay + STEP_NS / 2;
    near.contains(&departure)
}

/// Returns the classifier as it is attached with engine fq.
fn loaded(text: &str) -> Result<(Loaded, Maps), ReproduceError> {
    let profile = Profile::parse(text, "m-switch")?;
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_STAMP,
        ifindex: 0,
        l3: false,
    };
    let one = |direction: u32| -> Result<Vec<Compiled>, ReproduceError> {
        let links = (0..).zip(profile.links_of(direction));
        let links = links.map(|(number, link)| {
            let mut compiled =
                compile(link, of_number(1, number), direction, 0, place).map_err(kernel)?;
            // A test packet has a socket, and no device to be cloned to.
            compiled.link.flags &= !abi::EMUD_F_CLONE;
            Ok(compiled)
        });
        let mut links = links.collect::<Result<Vec<_>, ReproduceError>>()?;
        matching(&profile, direction, &mut links);
        Ok(links)
    };
    let [up, down] = [one(abi::EMUD_UP)?, one(abi::EMUD_DOWN)?];
    let features = features::of([&up, &down]);
    let mut loaded =
        Loaded::load(&[Program::Classify], &Sizes::of(&profile), features).map_err(kernel)?;
    let mut maps = loaded.maps().map_err(kernel)?;
    maps.init(1, 0).map_err(kernel)?;
    maps.apply([&up, &down]).map_err(kernel)?;
    Ok((loaded, maps))
}

fn kernel(error: impl std::fmt::Display) -> ReproduceError {
    ReproduceError::Kernel {
        what: "the classifier",
        error: error.to_string(),
    }
}

/// The cost of the decision is the difference; a run also contains the whole rest of the classifier.
fn figures(without: Runs, same: Runs, any: Runs) -> Vec<Figure> {
    let [least, mean, most] = PUBLISHED;
    // Each run and each decision takes some time.
    let judged = |figure: Figure, ns: f64| match without.least > 0.0 && ns > 0.0 {
        true => figure.measured(Some(ns), None),
        false => figure.lacking(COARSE),
    };
    let figure = |name: &str, published: f64, value: f64| {
        let figure = Figure::new(name, "ns").published(published);
        let figure = figure.within(Tolerance::Range(0.0, FACTOR * published));
        judged(figure, value)
    };
    let other = Figure::new("decision, each frame of another pair: median", "ns");
    let other = other.within(Tolerance::Range(0.0, FACTOR * mean));
    let other = other.known(FACTOR * mean, UNCACHED * mean, MEMORY);
    let longest = Figure::new("the whole classifier, longest but for 1 in 1,000", "ns");
    let longest = longest
        .published(most)
        .within(Tolerance::Range(0.0, FACTOR * most));
    vec![
        figure("decision: shortest", least, same.least - without.least),
        figure("decision: median", mean, same.median - without.median),
        judged(other, any.median - without.median),
        judged(longest, any.long.max(same.long)),
    ]
}

fn frames(bench: &Bench<'_>) -> Result<Figure, ReproduceError> {
    let packets = if bench.quick { 400 } else { 4_000 };
    let counts = bench.run(&Variant {
        title: "frames between 8 nodes",
        scenario: "m-switch",
        env: &[("PACKETS", packets.to_string())],
        ..Variant::default()
    })?;
    let ports = (1..=8).flat_map(|node| [6000, 6100, 6200].map(|base| base + node));
    let arrived = ports.map(|port| Some(counts.received(port)?.packets));
    let arrived: Option<u64> = arrived.sum();
    let share = arrived.map(|arrived| 100.0 * arrived as f64 / f64::from(24 * packets));
    let figure = Figure::new("frames that arrive at their node", "%").theory(100.0);
    let figure = figure.within(Tolerance::Absolute(0.0));
    Ok(figure.measured(share, Some(counts.verdict)))
}

#[cfg(test)]
mod tests {
    use super::super::FigureVerdict;
    use super::*;

    #[test]
    fn every_two_nodes_have_a_pair_each_way() {
        let all: Vec<Pair> = (0..NODES * NODES).filter_map(pair).collect();
        assert_eq!(all.len() as u32, NODES * (NODES - 1));
        let frame = frame(&all[0], 100);
        assert_eq!(frame[14..18], [0x45, 0, 0, 86]);
        assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
    }

    #[test]
    fn the_delay_of_another_pair_is_not_its_own() {
        let of = [1, 2, 3].map(|n| pair(n).unwrap());
        for early in [0, 3_200] {
            let departure = 7_001_000 + DELAY_NS + 2 * STEP_NS - early;
            let own = of.map(|pair| has_delay(&pair, 7_000_000..=7_010_000, departure));
            assert_eq!(own, [false, true, false]);
        }
    }

    /// What a run costs without a decision is not part of it.
    #[test]
    fn a_decision_is_the_difference() {
        let of = |ns: u32, long: u32| {
            Runs::of(
                (0..1_000)
                    .map(|n| if n < 2 { long } else { ns - n % 2 })
                    .collect(),
            )
        };
        let judged = |any, long| {
            let figures = figures(of(100, 100), of(250, 250), of(any, long));
            let of = |figure: &Figure| (figure.measured, figure.verdict);
            figures.iter().map(of).collect::<Vec<_>>()
        };
        use FigureVerdict::{Deviates, Explained, Within};
        let measured = |values: [f64; 4]| values.map(Some);
        let (values, verdicts): (Vec<_>, Vec<_>) = judged(700, 1_600).into_iter().unzip();
        assert_eq!(values, measured([150.0, 150.0, 600.0, 1600.0]));
        assert_eq!(verdicts, [Within, Within, Explained, Within]);
        // Neither does an interrupt explain what one run of 500 has, nor memory what ten accesses do not take.
        let verdicts = |any, long| {
            judged(any, long)
                .into_iter()
                .map(|(_, verdict)| verdict)
                .skip(2)
        };
        assert!(verdicts(1_200, 1_300).eq([Deviates, Within]));
        assert!(verdicts(250, 60_000).eq([Within, Deviates]));
        // A coarse clock has runs without a duration, and decisions that shorten them.
        let missing = |without, same, any| {
            let figures = figures(without, same, any);
            let is_missing = |figure: &Figure| figure.verdict == FigureVerdict::Missing;
            figures.iter().map(is_missing).collect::<Vec<_>>()
        };
        let none = Runs {
            least: 0.0,
            median: 0.0,
            long: 0.0,
        };
        let coarse = missing(none, of(250, 250), of(700, 1_600));
        assert_eq!(coarse, [true; 4]);
        let noise = missing(of(100, 100), of(100, 100), of(90, 1_600));
        assert_eq!(noise, [true, true, true, false]);
    }

    /// One of 1,000 may be an interrupt.
    #[test]
    fn one_of_a_thousand_is_left_out() {
        let one = Runs::of(
            (0..1_000)
                .map(|n| if n == 0 { 60_000 } else { 100 })
                .collect(),
        );
        assert_eq!(one.long, 100.0);
    }
}
