// SPDX-License-Identifier: MIT OR Apache-2.0
//! T: a tree of HTB classes with netem leaves behind a router.

use super::counts::Counts;
use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "t-tree",
    description: "Two networks and the rest behind 100 Mbit/s: guaranteed rates, borrowing, delay and loss",
    source: "M. Tiainen, \"Network Environment for Testing Peer-to-Peer Streaming Applications\", MSc thesis, \
             Tampere University of Technology, 2010",
    method: "UDP streams through the scenario t-tree; rates on the wire, counted by the receiver, so theory \
             includes the loss of the class; without the first second",
    scenarios: &["t-tree"],
    thresholds: None,
    measure,
};

/// Near, far and the rest.
const PORTS: [u16; 3] = [6001, 6002, 6003];
const SIZE: f64 = 1470.0;
/// With the headers of UDP, IP and Ethernet.
const FRAME: f64 = SIZE + 42.0;
const LOSS: [f64; 3] = [0.01, 0.02, 0.0];
const DELAY_MS: [f64; 2] = [50.0, 200.0];
const MBIT: &str = "Mbit/s";

/// What a variant has of each class: load in Mbit/s (0: none).
struct Load<'a> {
    title: &'a str,
    mbit: [u32; 3],
    set: &'a [&'a str],
    seconds: f64,
}

fn run(bench: &Bench<'_>, load: &Load<'_>) -> Result<Counts, ReproduceError> {
    let env: Vec<_> = (["NEAR", "FAR", "REST"].into_iter().zip(load.mbit))
        .flat_map(|(class, mbit)| {
            let packets = f64::from(mbit) * 1e6 * load.seconds / 8.0 / SIZE;
            [
                (class, mbit.to_string()),
                (packets_of(class), format!("{packets:.0}")),
            ]
        })
        .collect();
    bench.run(&Variant {
        title: load.title,
        scenario: "t-tree",
        set: load.set,
        env: &env,
        ..Variant::default()
    })
}

fn packets_of(class: &str) -> &'static str {
    match class {
        "NEAR" => "NEAR_PACKETS",
        "FAR" => "FAR_PACKETS",
        _ => "REST_PACKETS",
    }
}

/// Rate on the wire of the frames that arrived, Mbit/s.
fn mbit(counts: &Counts, class: usize) -> Option<f64> {
    Some(counts.rate(PORTS[class])? * FRAME / SIZE / 1e6)
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let seconds = if bench.quick { 5.0 } else { 30.0 };
    let mut figures = all_greedy(bench, seconds)?;
    figures.extend(one_alone(bench, seconds)?);
    figures.extend(at_the_ceil(bench, seconds)?);
    figures.extend(below_the_rate(bench, seconds)?);
    Ok(figures)
}

fn all_greedy(bench: &Bench<'_>, seconds: f64) -> Result<Vec<Figure>, ReproduceError> {
    let counts = run(
        bench,
        &Load {
            title: "all greedy",
            mbit: [10, 20, 110],
            set: &[],
            seconds,
        },
    )?;
    let figure = |class: usize, name: &str, rate: f64| {
        let figure = Figure::new(format!("all greedy: {name}"), MBIT).published(rate);
        let figure = figure.theory(rate * (1.0 - LOSS[class]));
        figure.measured(mbit(&counts, class), Some(counts.verdict))
    };
    Ok(vec![
        figure(0, "10.0.1.0/24", 1.0),
        figure(1, "10.0.2.0/24", 10.0),
        figure(2, "the rest", 89.0),
    ])
}

fn one_alone(bench: &Bench<'_>, seconds: f64) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = vec![];
    for (title, set, load, rate) in [
        ("10.0.1.0/24 alone", &[][..], 110, 100.0),
        (
            "10.0.1.0/24 alone, ceil = rate",
            &["bottleneck.tree.class.near.ceil=1Mbit"][..],
            10,
            1.0,
        ),
    ] {
        let mbits = [load, 0, 0];
        let counts = run(
            bench,
            &Load {
                title,
                mbit: mbits,
                set,
                seconds,
            },
        )?;
        let figure = Figure::new(title, MBIT)
            .published(rate)
            .theory(rate * (1.0 - LOSS[0]));
        figures.push(figure.measured(mbit(&counts, 0), Some(counts.verdict)));
    }
    Ok(figures)
}

fn at_the_ceil(bench: &Bench<'_>, seconds: f64) -> Result<Vec<Figure>, ReproduceError> {
    let set = [
        "bottleneck.tree.rate=2Mbit",
        "bottleneck.tree.class.near.rate=1Mbit",
        "bottleneck.tree.class.near.ceil=1.1Mbit",
        "bottleneck.tree.class.far.rate=0.1Mbit",
        "bottleneck.tree.class.far.ceil=0.1Mbit",
        "bottleneck.tree.class.rest.rate=0.1Mbit",
        "bottleneck.tree.class.rest.ceil=0.1Mbit",
        "links.near.loss=none",
        "links.far.loss=none",
    ];
    let counts = run(
        bench,
        &Load {
            title: "a class at its ceil",
            mbit: [4, 1, 1],
            set: &set,
            // 0.1 Mbit/s are 8 packets per second.
            seconds: seconds.max(10.0),
        },
    )?;
    let near = Figure::new("ceil of 1.1 Mbit/s beside classes of 0.1", "MB/s").published(0.1375);
    let near = near.theory(1.1 / 8.0);
    let near = near.measured(
        mbit(&counts, 0).map(|mbit| mbit / 8.0),
        Some(counts.verdict),
    );
    let small = |class: usize, name: &str| {
        let figure = Figure::new(format!("{name} class of 0.1 Mbit/s beside it"), MBIT);
        let figure = figure.theory(0.1);
        figure.measured(mbit(&counts, class), Some(counts.verdict))
    };
    Ok(vec![near, small(1, "first"), small(2, "second")])
}

/// Loss and delay of the leaves, without a backlog.
fn below_the_rate(bench: &Bench<'_>, seconds: f64) -> Result<Vec<Figure>, ReproduceError> {
    let counts = run(
        bench,
        &Load {
            title: "below the rate",
            mbit: [20, 20, 0],
            set: &[],
            seconds,
        },
    )?;
    let mut figures = vec![];
    for (class, name) in [(0, "10.0.1.0/24"), (1, "10.0.2.0/24")] {
        let (port, loss) = (PORTS[class], LOSS[class]);
        let packets = counts.sent(port).map_or(0.0, |sent| sent.packets as f64);
        let sd = (loss * (1.0 - loss) / packets.max(1.0)).sqrt();
        let figure = Figure::new(format!("below the rate: {name}: loss"), "%");
        let figure = figure.published(100.0 * loss).theory(100.0 * loss);
        // A correct link is outside in 1 of 15,000 runs.
        let figure = figure.within(Tolerance::Absolute(100.0 * 4.0 * sd));
        let lost = counts.lost(port).map(|share| 100.0 * share);
        figures.push(figure.measured(lost, Some(counts.verdict)));
        let figure = Figure::new(format!("below the rate: {name}: mean delay"), "ms");
        let figure = figure.published(DELAY_MS[class]).theory(DELAY_MS[class]);
        let delay = counts
            .received(port)
            .and_then(|received| received.delay_ns)
            .map(|[_, mean, _]| mean as f64 / 1e6);
        figures.push(figure.measured(delay, Some(counts.verdict)));
    }
    Ok(figures)
}
