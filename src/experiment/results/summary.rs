// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats of an experiment together: each figure over the runs that count, and which were excluded.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::mixed;
use super::{CONFIDENCE, Estimate, FigureName, Losses, Run, figures, losses, verdict_word};
use crate::text::columns;
use emud_monitor::log::printable;

/// Writes a verdict: for a terminal in its colour, otherwise as it is (`str::to_owned`).
pub type VerdictMark = fn(&str) -> String;

/// A run, and whether it counts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunEntry {
    /// Path of the log.
    pub log: String,
    /// Number of the run, from 1.
    pub repeat: u32,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Verdict; "unfinished": the log has no end.
    #[schemars(extend("enum" = ["clean", "unwatched", "contended", "invalid", "unfinished"]))]
    pub verdict: &'static str,
    /// Why the run does not count; null: it counts.
    pub excluded: Option<String>,
    /// Whether the figures are of this run, among others: where none counts, of a run that does not.
    #[serde(skip)]
    pub in_figures: bool,
}

/// A figure over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Link, direction, quantity and unit.
    pub name: FigureName,
    /// Mean over the runs and its confidence interval.
    pub estimate: Estimate,
}

/// Summary of the repeats of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// All runs.
    pub runs: Vec<RunEntry>,
    /// Number of runs of which the figures are.
    pub counted: usize,
    /// Confidence level of each interval.
    pub confidence: f64,
    /// Figures over the runs that count; if none does, over all without a failed program, and
    /// then they are not valid.
    pub figures: Vec<Row>,
    /// Whether the network repeated in the runs that count.
    pub losses: Losses,
    /// Sentences on the figures.
    pub notes: Vec<String>,
}

/// Summarises the runs that count ([`Run::counts`]).
pub fn summarise(runs: &[Run]) -> Summary {
    let counted: Vec<&Run> = runs.iter().filter(|run| run.counts()).collect();
    let of: Vec<&Run> = match counted.is_empty() {
        // A program that failed at once did not send what a figure would be of.
        true => runs.iter().filter(|r| r.why_failed().is_none()).collect(),
        false => counted.clone(),
    };
    Summary {
        runs: RunEntry::of(runs, &of),
        counted: counted.len(),
        confidence: CONFIDENCE,
        figures: rows(&of),
        losses: losses(&counted),
        notes: mixed(None, runs).into_iter().chain(fewer(&of)).collect(),
    }
}

/// Returns sentences for each run that lacks samples, or figures of its programs.
pub(super) fn fewer(runs: &[&Run]) -> impl Iterator<Item = String> {
    let samples = runs.iter().filter_map(|run| run.why_fewer_samples());
    let figures = runs.iter().filter_map(|run| run.why_fewer_metrics());
    samples
        .map(|why| format!("{why}: the figures are of the others"))
        .chain(figures)
}

/// Returns each figure over the runs that have it, in the order in which it first appears.
pub(crate) fn rows(runs: &[&Run]) -> Vec<Row> {
    let mut collected: Vec<(FigureName, Vec<f64>)> = Vec::new();
    for figure in runs.iter().flat_map(|run| figures(run)) {
        match collected.iter_mut().find(|(name, _)| *name == figure.name) {
            Some((_, values)) => values.push(figure.value),
            None => collected.push((figure.name, vec![figure.value])),
        }
    }
    let row = |(name, values): (FigureName, Vec<f64>)| {
        let estimate = Estimate::of(&values)?;
        Some(Row { name, estimate })
    };
    collected.into_iter().filter_map(row).collect()
}

impl Summary {
    /// Returns the summary as text that ends with a line feed.
    pub fn text(&self, mark: VerdictMark) -> String {
        let mut out = String::new();
        let (all, counted) = (self.runs.len(), self.counted);
        let _ = writeln!(out, "{all} runs, {counted} counted");
        let marked = |run: &&RunEntry| run.excluded.is_some() || run.verdict == "unwatched";
        for run in self.runs.iter().filter(marked) {
            let _ = writeln!(out, "  {}", run.text(mark));
        }
        if self.figures.is_empty() {
            let of = match counted {
                0 => "without a failed program",
                _ => "that counts",
            };
            let _ = writeln!(out, "no figures: no run {of} has samples");
            return out;
        }
        if counted == 0 {
            out.push_str(
                "NOT VALID, because no run counts; the figures of runs without a failed program:\n",
            );
        }
        let row = |row: &Row| {
            let fewer = match row.estimate.n {
                n if n < counted || counted == 0 && n < all => format!("(of {n} runs)"),
                _ => String::new(),
            };
            let name = format!("  {}", printable(&row.name.text()));
            [name, row.estimate.text(row.name.quantity), fewer]
        };
        out += &columns(self.figures.iter().map(row));
        for note in &self.notes {
            let _ = writeln!(out, "note: {}", printable(note));
        }
        if counted > 1 {
            let percent = self.confidence * 100.0;
            let _ = writeln!(
                out,
                "±: {percent} % confidence interval of the mean (Student's t)"
            );
            let _ = writeln!(out, "losses: {}", printable(&self.losses.text()));
        }
        out
    }
}

impl RunEntry {
    /// Lists these runs; `figures`: the runs that the figures are from.
    pub(super) fn of(runs: &[Run], figures: &[&Run]) -> Vec<Self> {
        let entry = |run: &Run| Self {
            log: run.path.display().to_string(),
            repeat: run.about.repeat,
            seed: run.about.seed,
            verdict: verdict_word(run.verdict()),
            excluded: run.why_excluded(),
            in_figures: figures.iter().any(|of| std::ptr::eq(*of, run)),
        };
        runs.iter().map(entry).collect()
    }

    /// Returns log, verdict and reason of exclusion as one line.
    pub fn text(&self, mark: VerdictMark) -> String {
        let log = printable(&self.log);
        let verdict = mark(self.verdict);
        let excluded = if self.in_figures { "" } else { ", EXCLUDED" };
        match &self.excluded {
            None => format!("{log}: {verdict}"),
            Some(why) => format!("{log}: {verdict}{excluded}: {}", printable(why)),
        }
    }
}
