// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: a file for the nodes of two switches. In a pipeline every node passes on what it receives, so the
//! file takes S / C, as for a single receiver, and each link carries it once, beside acknowledgements of
//! data in the other direction. In a swarm the only source sends some pieces twice, and the link
//! between the switches carries most pieces several times.

use super::counts::{Counts, mean_of, worst};
use super::live::{Variant, lacks};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, s_overhead};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-snake",
    description: "A file for 8 nodes on two switches, in a pipeline and in a BitTorrent swarm",
    source: s_overhead::EXPERIMENT.source,
    method: "12.5 MB at 10 Mbit/s, instead of 1.25 GB at 1 Gbit/s, through the scenario s-snake: from the first \
             byte until the last node has the file; the mean of 3 swarms of aria2 (--quick: one)",
    scenarios: &["s-snake"],
    thresholds: None,
    measure,
};

const NODES: u16 = 8;
const FILE: f64 = 12.5e6;
/// File of the runs with the slow hop, bytes.
const PART: f64 = FILE / 10.0;
const MBIT_S: f64 = 10.0;
/// A hop of 54 Mbit/s beside 1 Gbit/s.
const SLOW: f64 = 0.054 * MBIT_S;
/// Data of a segment with time stamps, its frame on the wire, and half an acknowledgement: there is one for
/// every second segment.
const SEGMENT: f64 = 1448.0;
const FRAME: f64 = 1538.0;
const HALF_ACK: f64 = 90.0 / 2.0;
/// Of each frame, what a link does not count.
const WIRE: f64 = 24.0;
const BETWEEN: &str = "s1-s2";
const PROGRAMS: &[&str] = &["aria2c", "opentracker", "mktorrent"];
const LACKS: &str = "a swarm needs the programs aria2c, opentracker and mktorrent: install the Debian packages aria2, \
                     opentracker and mktorrent";
/// Most that the host adds to a hop, ms.
const HOST_MS: f64 = 3.0;
const HOST: &str = "the host adds up to 3 ms: two holders and a process must run for each hop";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let pipeline = bench.run(&Variant {
        title: "pipeline",
        scenario: "s-snake",
        counted: true,
        ..Variant::default()
    })?;
    let mut figures = of_pipeline(&pipeline);
    figures.push(slow_hop(bench)?);
    figures.extend(swarm(bench, &pipeline)?);
    Ok(figures)
}

/// Port from which a node stores.
fn port(node: u16) -> u16 {
    6000 + node
}

/// From the first byte until the last node of the pipeline has stored the last one, s.
fn time(counts: &Counts) -> Option<f64> {
    let stored = (2..=NODES).map(|node| Some(counts.stored(port(node))?.stored_ns));
    let stored: Option<Vec<u64>> = stored.collect();
    since_begin(counts, stored?.into_iter().max()?)
}

fn since_begin(counts: &Counts, ns: u64) -> Option<f64> {
    let begin = counts.reached("n1", "begin")?;
    Some(ns.checked_sub(begin)? as f64 / 1e9)
}

/// Data that passes a link of this rate, beside the acknowledgements, Mbit/s.
fn data(mbit_s: f64) -> f64 {
    mbit_s * SEGMENT / (FRAME + HALF_ACK)
}

/// Returns the number of links from a node to the next one.
fn links(node: u16) -> f64 {
    if node == NODES / 2 { 3.0 } else { 2.0 }
}

fn of_pipeline(counts: &Counts) -> Vec<Figure> {
    let run = Some(counts.verdict);
    let whole = Figure::new("pipeline: all nodes have the file", "s")
        .theory(FILE * 8e-6 / data(MBIT_S))
        // The window of a hop waits for up to 45 ms, of seven 3 %; the rest is the host.
        .within(Tolerance::Share(0.08));
    // Hops from n2 to n8: their first bytes.
    let frame_ms = FRAME * 8.0 / (MBIT_S * 1e3);
    let hops = f64::from(NODES - 2);
    let theory = (2..NODES).map(links).sum::<f64>() * frame_ms / hops;
    let first = |node| Some(counts.stored(port(node))?.first_ns);
    let delay = first(NODES).zip(first(2));
    let delay = delay.map(|(last, first)| (last as f64 - first as f64) / 1e6 / hops);
    let hop = Figure::new("pipeline: delay of a hop", "ms").theory(theory);
    let hop = hop.known(theory, theory + HOST_MS, HOST);
    let copy = (FRAME + HALF_ACK - 1.5 * WIRE) / SEGMENT;
    let names = (1..=NODES).map(|node| format!("n{node}"));
    let names = names.chain([BETWEEN.to_owned()]);
    let passed = names.flat_map(|link| ["up", "down"].map(|way| counts.link(&link, way)));
    let most = passed.flatten().map(|link| link.passed_bytes).max();
    let most = most.map(|bytes| bytes as f64 / FILE / copy);
    let copies = Figure::new("pipeline: copies of the file over any link", "1").published(1.0);
    vec![
        whole.measured(time(counts), run),
        hop.measured(delay, run),
        copies
            .theory(1.0)
            .within(Tolerance::Share(0.05))
            .measured(most, run),
    ]
}

fn slow_hop(bench: &Bench<'_>) -> Result<Figure, ReproduceError> {
    let counts = bench.run(&Variant {
        title: "pipeline, one hop of 0.54 Mbit/s",
        scenario: "s-snake",
        link: "n5",
        set: &[&format!("rate={SLOW}Mbit")],
        env: &[("SIZE", format!("{PART}"))],
        ..Variant::default()
    })?;
    // Of the last node, which the slow hop is before.
    let stored = counts.stored(port(NODES));
    let rate = stored.map(|stored| PART * 8e-6 / ((stored.last_ns - stored.first_ns) as f64 / 1e9));
    let figure = Figure::new("pipeline, one hop of 54 of 1000 Mbit/s: data", "Mbit/s");
    let figure = figure.published(SLOW).theory(data(SLOW));
    let figure = figure.within(Tolerance::Share(0.05));
    Ok(figure.measured(rate, Some(counts.verdict)))
}

fn swarm(bench: &Bench<'_>, pipeline: &Counts) -> Result<[Figure; 2], ReproduceError> {
    if PROGRAMS.iter().any(|program| lacks(program)) {
        return Ok(swarm_figures().map(|figure| figure.lacking(LACKS)));
    }
    let runs = if bench.quick { 1 } else { 3 };
    let runs = (0..runs).map(|_| {
        bench.run(&Variant {
            title: "swarm",
            scenario: "s-snake",
            env: &[("SWARM", "1".to_owned())],
            counted: true,
            ..Variant::default()
        })
    });
    Ok(of_swarm(&runs.collect::<Result<Vec<_>, _>>()?, pipeline))
}

fn swarm_figures() -> [Figure; 2] {
    let ratio = Figure::new("swarm: time, of that of the pipeline", "1").published(2.0);
    let ratio = ratio.within(Tolerance::Range(1.5, 3.0));
    let copies = Figure::new("swarm: copies of the file between the switches", "1");
    // n5 .. n8 need one together.
    [ratio, copies.within(Tolerance::AtLeast(1.0))]
}

fn of_swarm(runs: &[Counts], pipeline: &Counts) -> [Figure; 2] {
    let [ratio, copies] = swarm_figures();
    let swarm = mean_of(runs, |counts| {
        let complete = (2..=NODES).map(|node| counts.reached(&format!("n{node}"), "complete"));
        let complete: Option<Vec<u64>> = complete.collect();
        since_begin(counts, complete?.into_iter().max()?)
    });
    let between = mean_of(runs, |counts| {
        Some(counts.link(BETWEEN, "up")?.passed_bytes as f64 * SEGMENT / (FRAME - WIRE) / FILE)
    });
    // A ratio is of both.
    let both = worst(runs.iter().chain([pipeline]));
    let times = swarm.zip(time(pipeline));
    [
        ratio.measured(times.map(|(swarm, pipeline)| swarm / pipeline), both),
        copies.measured(between, worst(runs)),
    ]
}

#[cfg(test)]
mod tests {
    use emud_monitor::log::RunVerdict::{self, Clean, Contended, Invalid};
    use serde_json::{Value, json};

    use super::super::FigureVerdict;
    use super::super::counts::Logged;
    use super::*;
    use crate::experiment::traffic::Stored;

    const S: u64 = 1_000_000_000;

    /// What nodes print at a time.
    fn counts(run: RunVerdict, lines: impl Iterator<Item = (u16, u64, Value)>) -> Counts {
        let line = |(node, mono_ns, text): (u16, u64, Value)| {
            let line = json!({
                "type": "output", "mono_ns": mono_ns, "node": format!("n{node}"), "stream": "stdout",
                "text": text.to_string(), "partial": false,
            });
            format!("{line}\n")
        };
        let begin = (1, S, json!({"reached": "begin"}));
        let log: String = lines.chain([begin]).map(line).collect();
        Counts::of(run, vec![], Logged::parse(&log).unwrap()).unwrap()
    }

    /// 20 s for the swarm, 10 s for the pipeline.
    #[test]
    fn a_ratio_needs_both_of_its_runs() {
        let of = |swarm, pipeline| {
            let complete = (2..=NODES).map(|node| (node, 21 * S, json!({"reached": "complete"})));
            let stored = (2..=NODES).map(|node| {
                let (port, stored_ns) = (port(node), 11 * S);
                let stored = Stored {
                    port,
                    stored_ns,
                    ..Stored::default()
                };
                (node, 11 * S, json!({ "stored": stored }))
            });
            let [ratio, _] = of_swarm(&[counts(swarm, complete)], &counts(pipeline, stored));
            assert_eq!(ratio.measured, Some(2.0));
            ratio.verdict
        };
        assert_eq!(of(Clean, Clean), FigureVerdict::Within);
        assert_eq!(of(Clean, Contended), FigureVerdict::Contended);
        assert_eq!(of(Contended, Invalid), FigureVerdict::Invalid);
        assert_eq!(of(Contended, Clean), FigureVerdict::Contended);
    }

    /// 10 Gbit at 1 Gbit/s, or 100 Mbit at 10 Mbit/s.
    #[test]
    fn theory() {
        assert!((FILE * 8e-6 / data(MBIT_S) - 10.9323).abs() < 1e-4);
        assert!((data(SLOW) - 0.4940).abs() < 1e-4);
        let links: Vec<f64> = (1..NODES).map(links).collect();
        assert_eq!(links, [2.0, 2.0, 2.0, 3.0, 2.0, 2.0, 2.0]);
    }
}
