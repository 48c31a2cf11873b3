// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: the parameters of 1,000 nodes, updated as one set in each period.

use super::counts::Counts;
use super::live::{Variant, lacks};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, m_contention};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-updates",
    description: "New parameters for 1,000 nodes with two interfaces as one set: time and system calls",
    source: m_contention::EXPERIMENT.source,
    method: "`emud apply` of 31,219 pairs of 2,000 addresses in the scenario m-updates, without the nodes themselves; \
             system calls by strace, less those for one pair",
    scenarios: &["m-updates"],
    measure,
};

/// Calls of the source, if each parameter has one.
const PAIRS: f64 = 31_219.0;
/// The kernel takes entries of a map in batches, and memory and the file are read in pieces.
const BATCHED: f64 = PAIRS / 100.0;
/// A set in each second.
const PERIOD_MS: f64 = 1000.0;
const LACKS: &str =
    "counting system calls needs the program strace: install the Debian package strace";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let variant = Variant {
        title: "time",
        scenario: "m-updates",
        ..Variant::default()
    };
    let counts = bench.run(&variant)?;
    let calls = match lacks("strace") {
        true => None,
        false => Some(bench.run(&Variant {
            title: "system calls",
            env: &[("TRACE", "1".to_owned())],
            ..variant
        })?),
    };
    Ok(figures(&counts, calls.as_ref()))
}

/// Without strace there is no second run.
fn figures(counts: &Counts, traced: Option<&Counts>) -> Vec<Figure> {
    let run = Some(counts.verdict);
    let changed = Figure::new("pairs that one update changes", "1").theory(PAIRS);
    let time = Figure::new("time of the update", "ms").within(Tolerance::Range(0.0, PERIOD_MS));
    let calls = Figure::new("its system calls, less those for one pair", "1").published(1.0);
    let calls = calls.within(Tolerance::Range(0.0, BATCHED));
    vec![
        changed
            .within(Tolerance::Absolute(0.0))
            .measured(counts.metric("changed"), run),
        time.measured(counts.metric("update"), run),
        match traced {
            Some(traced) => calls.measured(traced.metric("calls"), Some(traced.verdict)),
            None => calls.lacking(LACKS),
        },
    ]
}
