// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment, or its repeats, beside another.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::{differences, mixed};
use super::estimate::mean_difference;
use super::summary::{Row, fewer, rows};
use super::{
    CONFIDENCE, Difference, Estimate, Figure, FigureName, Losses, Run, RunEntry, TTest, bonferroni,
    figures, losses, paired, welch, z,
};

/// The number increases when a key is removed or changes its meaning.
pub const COMPARE_SCHEMA: &str = "emud-compare/1";

/// Two experiments, or repeats of two.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Version of the format.
    #[schemars(extend("const" = COMPARE_SCHEMA))]
    pub schema: &'static str,
    /// Runs of the first experiment.
    pub a: Side,
    /// Runs of the second experiment.
    pub b: Side,
    /// Differences of the configuration, from the first run of each side.
    pub differences: Vec<Difference>,
    /// Confidence level of each interval.
    pub confidence: f64,
    /// Number of pairs of runs with the same seed; 0: there are fewer than two, or a side uses a seed twice.
    pub pairs: usize,
    /// Figures of the measured phase.
    pub figures: Vec<Compared>,
    /// Whether the network repeated in all runs that count, of both sides.
    pub losses: Losses,
    /// All runs of both sides are clean, and no program failed.
    pub clean: bool,
    /// Sentences on the comparison.
    pub notes: Vec<String>,
}

/// Runs of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Runs of this side, in the order of the logs.
    #[schemars(length(min = 1))]
    pub runs: Vec<RunEntry>,
    /// Number of runs of which the figures are: those that count, or all if none does.
    #[schemars(range(min = 1))]
    pub counted: usize,
}

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Link, direction, quantity and unit.
    #[serde(flatten)]
    pub name: FigureName,
    /// First side; null: it has no such figure.
    pub a: Option<Estimate>,
    /// Second side; null: it has no such figure.
    pub b: Option<Estimate>,
    /// Mean of b minus mean of a; null: a side has no such figure.
    pub difference: Option<f64>,
    /// The difference as a share of a; null: a is 0, or a side has no such figure.
    pub relative: Option<f64>,
    /// Welch's t-test; null: a side is a single run.
    pub welch: Option<TTest>,
    /// Number of pairs of runs with the same seed that both have the figure.
    pub pairs: usize,
    /// Paired t-test of them; null: there are fewer than two.
    pub paired: Option<TTest>,
    /// Z test; null: a side has fewer than 30 runs.
    pub z: Option<TTest>,
    /// p of the paired test, or without pairs of Welch's, corrected by Bonferroni for all figures that
    /// have one; null: neither.
    #[schemars(range(min = 0, max = 1))]
    pub bonferroni: Option<f64>,
}

/// Runs `a` against runs `b`; neither is empty.
pub fn compare(a: &[Run], b: &[Run]) -> Comparison {
    let (of_a, of_b) = (counted(a), counted(b));
    let mut notes = Vec::new();
    for (side, runs) in [("a", a), ("b", b)] {
        if !runs.iter().any(Run::counts) {
            notes.push(format!(
                "{side} has no run that counts: its figures are of all its runs"
            ));
        }
        notes.extend(mixed(Some(side), runs));
    }
    let both: Vec<&Run> = of_a.iter().chain(&of_b).copied().collect();
    notes.extend(fewer(&both));
    let pairs = pairs(&of_a, &of_b);
    let without = of_a.len() + of_b.len() - 2 * pairs.len();
    if !pairs.is_empty() && without > 0 {
        notes.push(format!(
            "p is of the {} pairs of runs with the same seed; runs without a partner: {without}",
            pairs.len()
        ));
    }
    let figures = compared(&of_a, &of_b, &pairs);
    if figures
        .iter()
        .any(|f| f.paired.is_none() && f.welch.is_some())
    {
        notes.extend(repeated_seeds(&[("a", &of_a), ("b", &of_b)]));
    }
    let pair = a.first().zip(b.first());
    Comparison {
        schema: COMPARE_SCHEMA,
        differences: pair.map(|(a, b)| differences(a, b)).unwrap_or_default(),
        confidence: CONFIDENCE,
        pairs: pairs.len(),
        figures,
        losses: losses(&both),
        clean: (a.iter().chain(b)).all(|run| run.is_clean() && run.counts()),
        a: side(a, &of_a),
        b: side(b, &of_b),
        notes,
    }
}

fn side(runs: &[Run], counted: &[&Run]) -> Side {
    Side {
        runs: RunEntry::of(runs, counted),
        counted: counted.len(),
    }
}

pub(super) fn counted(runs: &[Run]) -> Vec<&Run> {
    let counted: Vec<&Run> = runs.iter().filter(|run| run.counts()).collect();
    match counted.is_empty() {
        true => runs.iter().collect(),
        false => counted,
    }
}

/// Returns a note if runs of an experiment met the same network, and not all experiments met the same: a test of
/// independent runs takes the difference of two networks for one of the experiments.
pub(super) fn repeated_seeds(experiments: &[(&str, &[&Run])]) -> Option<String> {
    let seeds =
        |runs: &[&Run]| -> BTreeSet<u64> { runs.iter().map(|run| run.about.seed).collect() };
    if experiments
        .windows(2)
        .all(|two| seeds(two[0].1) == seeds(two[1].1))
    {
        return None;
    }
    let repeats = experiments
        .iter()
        .filter(|(_, runs)| seeds(runs).len() < runs.len());
    let names: Vec<&str> = repeats.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "runs of {} with the same seed met the same network: p does not cover differences of networks \
             between seeds; repeat with `emud run --repeat N --new-seeds`",
            names.join(", ")
        )
    })
}

/// Runs that met the same network: of the same seed, which is no other run's of its side.
fn pairs<'a>(a: &[&'a Run], b: &[&'a Run]) -> Vec<(&'a Run, &'a Run)> {
    let of = |runs: &[&'a Run], seed: u64| {
        let mut same = runs.iter().filter(|run| run.about.seed == seed);
        same.next().filter(|_| same.next().is_none()).copied()
    };
    let seeds = a.iter().map(|run| run.about.seed);
    let pairs: Vec<_> = seeds
        .filter_map(|seed| of(a, seed).zip(of(b, seed)))
        .collect();
    match pairs.len() {
        0 | 1 => Vec::new(),
        _ => pairs,
    }
}

fn compared(a: &[&Run], b: &[&Run], pairs: &[(&Run, &Run)]) -> Vec<Compared> {
    let mut found: Vec<Compared> = rows(a).into_iter().map(Compared::of).collect();
    for row in &mut found {
        (row.a, row.b) = (row.b, None);
    }
    for row in rows(b).into_iter().map(Compared::of) {
        match found.iter_mut().find(|other| other.name == row.name) {
            Some(other) => other.b = row.b,
            None => found.push(row),
        }
    }
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(a, b)| (figures(a), figures(b)))
        .collect();
    for row in &mut found {
        row.relate();
        let value = |of: &[Figure]| Some(of.iter().find(|f| f.name == row.name)?.value);
        let values = pairs.iter().filter_map(|(a, b)| value(a).zip(value(b)));
        let values: Vec<_> = values.collect();
        row.pairs = values.len();
        row.paired = paired(&values);
    }
    let tests = found.iter().filter(|row| row.test().is_some()).count();
    for row in &mut found {
        row.bonferroni = row.test().map(|test| bonferroni(test.p, tests));
    }
    found
}

impl Compared {
    /// Of b alone.
    fn of(row: Row) -> Self {
        Self {
            name: row.name,
            a: None,
            b: Some(row.estimate),
            difference: None,
            relative: None,
            welch: None,
            pairs: 0,
            paired: None,
            z: None,
            bonferroni: None,
        }
    }

    /// Returns the test whose p is shown.
    pub(super) fn test(&self) -> Option<TTest> {
        self.paired.or(self.welch)
    }

    fn relate(&mut self) {
        let Some((a, b)) = self.a.zip(self.b) else {
            return;
        };
        let difference = mean_difference(&a, &b);
        self.difference = Some(difference);
        self.relative = (a.mean != 0.0).then(|| difference / a.mean);
        self.welch = welch(&a, &b);
        self.z = z(&a, &b);
    }
}
