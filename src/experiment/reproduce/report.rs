// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of experiments as a table and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Experiment, Figure, FigureVerdict, Tolerance};
use crate::text::{Word, columns};

/// `"schema"` of the JSON.
pub const REPRODUCE_SCHEMA: &str = "emud-reproduce/1";

/// Several experiments.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduction {
    /// `emud-reproduce/1`.
    pub schema: &'static str,
    /// Version of emud.
    pub version: &'static str,
    /// Whether the runs were shortened.
    pub quick: bool,
    /// In the order in which they were carried out.
    pub experiments: Vec<Reproduced>,
    /// The least favourable verdict of all.
    pub verdict: FigureVerdict,
}

/// One experiment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduced {
    /// Name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub description: &'static str,
    /// Publication.
    pub source: &'static str,
    /// How the figures were measured.
    pub method: &'static str,
    /// Shipped scenarios that it ran; empty: computed in virtual time.
    pub scenarios: &'static [&'static str],
    /// The figures.
    pub figures: Vec<Figure>,
    /// The least favourable verdict of its figures.
    pub verdict: FigureVerdict,
}

impl Reproduction {
    /// Returns the report of these experiments.
    pub fn new(quick: bool, experiments: Vec<Reproduced>) -> Self {
        Self {
            schema: REPRODUCE_SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            quick,
            verdict: worst(experiments.iter().map(|experiment| experiment.verdict)),
            experiments,
        }
    }

    /// Returns 0 if each figure is within its tolerance or explained, 1 if one deviates, 2 if one
    /// is missing, 4 if the emulation failed, 3 if the host was contended; the first that applies.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            FigureVerdict::Within | FigureVerdict::Explained => 0,
            FigureVerdict::Deviates => 1,
            FigureVerdict::Missing => 2,
            FigureVerdict::Contended => 3,
            FigureVerdict::Invalid => 4,
        }
    }
}

impl Reproduced {
    pub(super) fn new(experiment: &Experiment, figures: Vec<Figure>) -> Self {
        Self {
            name: experiment.name,
            description: experiment.description,
            source: experiment.source,
            method: experiment.method,
            scenarios: experiment.scenarios,
            verdict: worst(figures.iter().map(|figure| figure.verdict)),
            figures,
        }
    }

    /// Returns the table of its figures.
    pub fn text(&self) -> String {
        let head = [
            "",
            "unit",
            "published",
            "theory",
            "tolerance",
            "measured",
            "verdict",
        ];
        let rows = self.figures.iter().map(row);
        let rows = std::iter::once(head.map(str::to_owned)).chain(rows);
        format!(
            "{}: {}\n  source: {}\n  method: {}\n\n{}\n{}: {}\n",
            self.name,
            self.description,
            self.source,
            self.method,
            columns(rows),
            self.name,
            self.counts()
        )
    }

    /// "12 within, 1 explained".
    fn counts(&self) -> String {
        let count = |verdict: FigureVerdict| {
            let of = self.figures.iter().filter(|f| f.verdict == verdict);
            Some((of.count(), verdict.word())).filter(|(count, _)| *count > 0)
        };
        let all = FigureVerdict::WORDS.iter();
        let all = all.filter_map(|(_, verdict)| count(*verdict));
        let all: Vec<_> = all.map(|(n, word)| format!("{n} {word}")).collect();
        all.join(", ")
    }
}

/// Without any figure nothing is known.
fn worst(verdicts: impl Iterator<Item = FigureVerdict>) -> FigureVerdict {
    const WORST_FIRST: [FigureVerdict; 6] = [
        FigureVerdict::Deviates,
        FigureVerdict::Missing,
        FigureVerdict::Invalid,
        FigureVerdict::Contended,
        FigureVerdict::Explained,
        FigureVerdict::Within,
    ];
    let all: Vec<_> = verdicts.collect();
    let worst = WORST_FIRST
        .into_iter()
        .find(|verdict| all.contains(verdict));
    worst.unwrap_or(FigureVerdict::Missing)
}

fn row(figure: &Figure) -> [String; 7] {
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let verdict = figure.verdict.word();
    [
        figure.figure.clone(),
        figure.unit.to_owned(),
        value(figure.published),
        value(figure.theory),
        match figure.tolerance {
            Tolerance::Share(share) => format!("{} %", number(100.0 * share)),
            Tolerance::Absolute(most) => number(most),
            Tolerance::AtLeast(least) => format!("from {}", number(least)),
            Tolerance::Range(from, to) => format!("{} .. {}", number(from), number(to)),
        },
        value(figure.measured),
        match figure.explanation {
            Some(why) => format!("{verdict}: {why}"),
            None => verdict.to_owned(),
        },
    ]
}

/// Four significant digits.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emud_monitor::log::RunVerdict;

    #[test]
    fn numbers_are_short() {
        let of = [0.0, 7.0, 4.6364, 12.345, 119.54, 9586.4, 0.1375].map(number);
        assert_eq!(of, ["0", "7", "4.636", "12.35", "119.5", "9586", "0.1375"]);
    }

    #[test]
    fn the_least_favourable_verdict_has_the_exit_code() {
        let figure = |value, run| {
            let figure = Figure::new("x", "s").published(10.0).known(5.0, 7.0, "why");
            figure.measured(value, run)
        };
        let clean = figure(Some(10.0), Some(RunVerdict::Clean));
        let explained = figure(Some(6.0), None);
        let contended = figure(Some(10.0), Some(RunVerdict::Contended));
        let invalid = figure(Some(10.0), Some(RunVerdict::Invalid));
        let missing = figure(None, None);
        let deviates = figure(Some(1.0), None);
        let mut figures = vec![];
        for (one, code) in [
            (clean, 0),
            (explained, 0),
            (contended, 3),
            (invalid, 4),
            (missing, 2),
            (deviates, 1),
        ] {
            figures.push(one);
            let one = Reproduced::new(&super::super::EXPERIMENTS[0], figures.clone());
            assert_eq!(Reproduction::new(true, vec![one]).exit_code(), code);
        }
        // Nothing is not everything.
        assert_eq!(Reproduction::new(true, vec![]).exit_code(), 2);
        let all = Reproduced::new(&super::super::EXPERIMENTS[0], figures);
        let text = all.text();
        assert!(text.contains("1 within, 1 explained, 1 deviates"), "{text}");
        assert!(text.contains("explained: why"), "{text}");
    }
}
