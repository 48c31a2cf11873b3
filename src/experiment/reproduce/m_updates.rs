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
    thresholds: None,
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

#[cfg(test)]
mod tests {
    use emud_monitor::log::RunVerdict;

    use super::super::FigureVerdict::{self, Contended, Deviates, Missing, Within};
    use super::super::counts::Logged;
    use super::*;

    fn counts(run: RunVerdict, metrics: &[(&str, f64)]) -> Counts {
        let line = |(name, value): &(&str, f64)| {
            let line = serde_json::json!({
                "type": "metric", "mono_ns": 1, "name": name, "value": value, "unit": null,
            });
            format!("{line}\n")
        };
        let log: String = metrics.iter().map(line).collect();
        Counts::of(run, vec![], Logged::parse(&log).unwrap()).unwrap()
    }

    fn verdicts(changed: f64, update: f64, calls: f64) -> [FigureVerdict; 3] {
        let first = counts(
            RunVerdict::Clean,
            &[("update", update), ("changed", changed)],
        );
        let second = counts(RunVerdict::Clean, &[("calls", calls), ("changed", changed)]);
        let figures = figures(&first, Some(&second));
        [0, 1, 2].map(|n| figures[n].verdict)
    }

    #[test]
    fn one_update_changes_all_pairs_within_a_period() {
        assert_eq!(verdicts(31_219.0, 316.0, 35.0), [Within; 3]);
        assert_eq!(verdicts(31_218.0, 1001.0, 313.0), [Deviates; 3]);
        // One call for each pair.
        assert_eq!(verdicts(31_219.0, 316.0, 31_218.0)[2], Deviates);
    }

    #[test]
    fn each_run_has_its_own_verdict() {
        let clean = counts(RunVerdict::Clean, &[("update", 9.0), ("changed", 31_219.0)]);
        let contended = counts(RunVerdict::Contended, &[("calls", 35.0)]);
        let of = |traced: Option<&Counts>| {
            let figures = figures(&clean, traced);
            [0, 1, 2].map(|n| (figures[n].verdict, figures[n].explanation.clone()))
        };
        let [changed, time, calls] = of(Some(&contended)).map(|(verdict, _)| verdict);
        assert_eq!([changed, time, calls], [Within, Within, Contended]);
        assert_eq!(of(None)[2], (Missing, Some(LACKS.to_owned())));
    }
}
