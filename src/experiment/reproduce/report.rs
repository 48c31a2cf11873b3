// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of experiments as a table and as JSON.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Conditions, EXPERIMENTS, Experiment, Figure, FigureVerdict, ReproduceError, Tolerance,
};
use crate::text::{Word, columns};

/// `"schema"` of the JSON.
pub const REPRODUCE_SCHEMA: &str = "emud-reproduce/2";

/// Results of several published experiments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reproduction {
    /// `emud-reproduce/2`.
    pub schema: String,
    /// Version of the emud that wrote this.
    pub version: String,
    /// Each once: in the order in which they were carried out, or read from files in that of
    /// `emud reproduce --list`.
    pub experiments: Vec<Reproduced>,
    /// The least favourable verdict of all.
    pub verdict: FigureVerdict,
}

/// Results of one published experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reproduced {
    /// Name on the command line.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// The publication that has the expected values.
    pub source: String,
    /// How the figures were measured.
    pub method: String,
    /// Shipped scenarios that it ran; empty: computed in virtual time.
    pub scenarios: Vec<String>,
    /// When, where and how it was carried out.
    pub conditions: Conditions,
    /// Measured figures beside the published ones.
    pub figures: Vec<Figure>,
    /// The least favourable verdict of its figures.
    pub verdict: FigureVerdict,
}

/// Schema of a saved result, which determines whether the rest can be read.
#[derive(Deserialize)]
struct Format {
    schema: String,
}

/// Title of a column of a table of figures, its class on a page, and what a figure has there.
type Column = ([&'static str; 2], fn(&Figure) -> String);

const COLUMNS: [Column; 8] = [
    (["figure", "text"], |figure| figure.figure.clone()),
    (["unit", ""], |figure| figure.unit.clone()),
    (["published", "n"], |figure| value(figure.published)),
    (["theory", "n"], |figure| value(figure.theory)),
    (["tolerance", "n"], tolerance),
    (NETEM, |figure| value(figure.netem)),
    (["measured", "n"], |figure| value(figure.measured)),
    (["verdict", "text"], verdict),
];
/// Only in a table of which a figure has a value.
const NETEM: [&str; 2] = ["netem", "n"];

impl Reproduction {
    /// Returns the report of these experiments.
    pub fn new(experiments: Vec<Reproduced>) -> Self {
        Self {
            schema: REPRODUCE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            verdict: worst(experiments.iter().map(|experiment| experiment.verdict)),
            experiments,
        }
    }

    /// Reads what `emud reproduce --json` wrote.
    ///
    /// # Errors
    /// A file cannot be read, or is something else.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Self, ReproduceError> {
        let read = |path: &Path| {
            let text = fs::read_to_string(path).map_err(|source| ReproduceError::Read {
                path: path.to_owned(),
                source,
            })?;
            Self::parse(&text).map_err(|problem| ReproduceError::Saved {
                path: path.to_owned(),
                problem,
            })
        };
        let all = paths.iter().map(|path| read(path.as_ref()));
        Ok(Self::merged(all.collect::<Result<_, _>>()?))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let format: Format = serde_json::from_str(text).map_err(|e| {
            format!("not a result of `emud reproduce --json`: {e}; give a file that it wrote")
        })?;
        if format.schema != REPRODUCE_SCHEMA {
            return Err(format!(
                "its \"schema\" is `{}`, and this emud reads `{REPRODUCE_SCHEMA}`: read it with the \
                 emud that wrote it, or carry its experiments out again",
                format.schema
            ));
        }
        serde_json::from_str(text)
            .map_err(|e| format!("{e}; the file was changed or damaged after emud wrote it"))
    }

    /// Of an experiment that occurs several times the last one counts.
    fn merged(all: Vec<Self>) -> Self {
        let mut experiments: Vec<Reproduced> = vec![];
        for one in all.into_iter().flat_map(|one| one.experiments) {
            experiments.retain(|earlier| earlier.name != one.name);
            experiments.push(one.judged());
        }
        // One that this emud does not know comes last.
        let position = |one: &Reproduced| EXPERIMENTS.iter().position(|e| e.name == one.name);
        experiments.sort_by_key(|one| position(one).unwrap_or(usize::MAX));
        Self::new(experiments)
    }

    /// Returns the names of all experiments that are not in it.
    pub fn left_out(&self) -> Vec<&'static str> {
        let names = EXPERIMENTS.iter().map(|experiment| experiment.name);
        names
            .filter(|name| self.experiments.iter().all(|one| one.name != *name))
            .collect()
    }

    /// Returns 0 if each figure is within its tolerance, explained or only reported, 1 if one deviates, 2 if
    /// one is missing, 4 if the emulation failed, 3 if the host was contended; the first that applies.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            FigureVerdict::Within | FigureVerdict::Explained | FigureVerdict::Reported => 0,
            FigureVerdict::Deviates => 1,
            FigureVerdict::Missing => 2,
            FigureVerdict::Contended => 3,
            FigureVerdict::Invalid => 4,
        }
    }
}

impl Reproduced {
    pub(super) fn new(
        experiment: &Experiment,
        conditions: Conditions,
        figures: Vec<Figure>,
    ) -> Self {
        let one = Self {
            name: experiment.name.to_owned(),
            description: experiment.description.to_owned(),
            source: experiment.source.to_owned(),
            method: experiment.method.to_owned(),
            scenarios: experiment.scenarios.iter().map(|&s| s.to_owned()).collect(),
            conditions,
            verdict: FigureVerdict::Missing,
            figures,
        };
        one.judged()
    }

    fn judged(self) -> Self {
        let verdict = worst(self.figures.iter().map(|figure| figure.verdict));
        Self { verdict, ..self }
    }

    /// Returns the table of its figures.
    pub fn text(&self) -> String {
        let (titles, rows) = table(&self.figures);
        let head = titles.iter().map(|[title, _]| (*title).to_owned());
        let rows = std::iter::once(head.collect()).chain(rows);
        format!(
            "{}: {}\n  source: {}\n  method: {}\n  run: {}\n\n{}\n{}: {}\n",
            self.name,
            self.description,
            self.source,
            self.method,
            self.conditions.text(),
            columns(rows),
            self.name,
            counts(&self.figures)
        )
    }

    pub(crate) fn runs(&self) -> String {
        match &self.scenarios[..] {
            [] => "in virtual time".to_owned(),
            all => format!("scenarios {}", all.join(", ")),
        }
    }
}

/// Returns "12 within, 1 explained".
pub(crate) fn counts<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> String {
    let figures: Vec<_> = figures.into_iter().collect();
    let count = |verdict: FigureVerdict| {
        let of = figures.iter().filter(|f| f.verdict == verdict);
        Some((of.count(), verdict.word())).filter(|(count, _)| *count > 0)
    };
    let all = FigureVerdict::WORDS.iter();
    let all = all.filter_map(|(_, verdict)| count(*verdict));
    let all: Vec<_> = all.map(|(n, word)| format!("{n} {word}")).collect();
    match &all[..] {
        [] => "no figures".to_owned(),
        all => all.join(", "),
    }
}

/// Without any figure nothing is known.
fn worst(verdicts: impl Iterator<Item = FigureVerdict>) -> FigureVerdict {
    const WORST_FIRST: [FigureVerdict; 7] = [
        FigureVerdict::Deviates,
        FigureVerdict::Missing,
        FigureVerdict::Invalid,
        FigureVerdict::Contended,
        FigureVerdict::Explained,
        FigureVerdict::Within,
        FigureVerdict::Reported,
    ];
    let all: Vec<_> = verdicts.collect();
    let worst = WORST_FIRST
        .into_iter()
        .find(|verdict| all.contains(verdict));
    worst.unwrap_or(FigureVerdict::Missing)
}

/// Returns titles and classes of the columns, and the cells of each figure.
pub(crate) fn table(figures: &[Figure]) -> (Vec<[&'static str; 2]>, Vec<Vec<String>>) {
    let beside_netem = figures.iter().any(|figure| figure.netem.is_some());
    let columns = COLUMNS.iter();
    let columns = columns.filter(|(title, _)| beside_netem || *title != NETEM);
    let (titles, cells): (Vec<_>, Vec<_>) = columns.copied().unzip();
    let row = |figure: &Figure| cells.iter().map(|cell| cell(figure)).collect();
    (titles, figures.iter().map(row).collect())
}

fn value(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

fn tolerance(figure: &Figure) -> String {
    match figure.tolerance {
        Tolerance::Share(share) => format!("{} %", number(100.0 * share)),
        Tolerance::Absolute(most) => number(most),
        Tolerance::AtLeast(least) => format!("from {}", number(least)),
        Tolerance::Range(from, to) => format!("{} .. {}", number(from), number(to)),
        Tolerance::Any => "-".to_owned(),
    }
}

fn verdict(figure: &Figure) -> String {
    let verdict = figure.verdict.word();
    match &figure.explanation {
        Some(why) => format!("{verdict}: {why}"),
        None => verdict.to_owned(),
    }
}

/// Returns a number with four significant digits.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size > 0.0 && size < 0.001 => return format!("{value:.2e}"),
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        size if size >= 0.1 || size == 0.0 => 4,
        size if size >= 0.01 => 5,
        _ => 6,
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
    use emud_monitor::Config;
    use emud_monitor::log::RunVerdict;

    use crate::experiment::reproduce::Bench;
    use crate::experiment::run::Settings;

    #[test]
    fn numbers_are_short() {
        let of = [0.0, 7.0, 4.6364, 12.345, 119.54, 9586.4, 0.1375].map(number);
        assert_eq!(of, ["0", "7", "4.636", "12.35", "119.5", "9586", "0.1375"]);
        let small = [0.012344, -0.0012344, 0.5, 0.01, 3.3e-5].map(number);
        assert_eq!(small, ["0.01234", "-0.001234", "0.5", "0.01", "3.30e-5"]);
    }

    #[test]
    fn the_least_favourable_verdict_has_the_exit_code() {
        let figure = |value, run| {
            let figure = Figure::new("x", "s").published(10.0).known(5.0, 7.0, "why");
            figure.measured(value, run)
        };
        let clean = figure(Some(10.0), Some(RunVerdict::Clean));
        let explained = figure(Some(6.0), None);
        let reported = Figure::new("x", "s").within(Tolerance::Any);
        let reported = reported.measured(Some(1.0), Some(RunVerdict::Clean));
        let contended = figure(Some(10.0), Some(RunVerdict::Contended));
        let invalid = figure(Some(10.0), Some(RunVerdict::Invalid));
        let missing = figure(None, None);
        let deviates = figure(Some(1.0), None);
        let settings = Settings::quiet(1, Config::default());
        let conditions = Conditions::now(&EXPERIMENTS[0], &Bench::tests(&settings, true));
        assert!(conditions.text().ends_with(", packets late from 1ms on"));
        let mut figures = vec![];
        for (one, code) in [
            (reported, 0),
            (clean, 0),
            (explained, 0),
            (contended, 3),
            (invalid, 4),
            (missing, 2),
            (deviates, 1),
        ] {
            figures.push(one);
            let one = Reproduced::new(&EXPERIMENTS[0], conditions.clone(), figures.clone());
            assert_eq!(Reproduction::new(vec![one]).exit_code(), code);
        }
        // Nothing is not everything.
        assert_eq!(Reproduction::new(vec![]).exit_code(), 2);
        let all = Reproduced::new(&EXPERIMENTS[0], conditions, figures);
        let text = all.text();
        let counted = "1 within, 1 explained, 1 reported, 1 deviates";
        assert!(text.contains(counted), "{text}");
        assert!(text.contains("explained: why"), "{text}");
    }
}
