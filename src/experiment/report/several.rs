// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of several runs: repeats of an experiment, or two experiments side by side.

use std::fmt::Write;

use askama::Template;

use super::{PageError, STYLE, Table, plain};
use crate::experiment::results::{
    Difference, FigureName, Row, Run, RunEntry, compare, figures, summarise,
};

const RUNS: &[[&str; 2]] = &[
    ["side", ""],
    ["log", "text"],
    ["run", "n"],
    ["seed", "n"],
    ["verdict", ""],
    ["does not count because", "text"],
];

const REPEATS: &[[&str; 2]] = &[["figure", "text"], ["mean", "n"], ["runs", "n"]];

const BOTH: &[[&str; 2]] = &[
    ["figure", "text"],
    ["a", "n"],
    ["b", "n"],
    ["b - a", "n"],
    ["", "n"],
    ["", ""],
];

/// Size of a strip, in px.
const WIDTH: f64 = 360.0;
const LANE: f64 = 14.0;
const RADIUS: f64 = 4.0;

#[derive(Template)]
#[template(path = "several.html", whitespace = "minimize")]
struct Page {
    emud: &'static str,
    style: &'static str,
    title: String,
    counted: String,
    runs: Table,
    /// Of the configurations of two experiments; `None`: repeats.
    differences: Option<Vec<Difference>>,
    figures: Table,
    /// What intervals and p are.
    about: Vec<String>,
    notes: Vec<String>,
    /// Figure, and its runs as dots.
    strips: Vec<(String, String)>,
}

/// Returns the page of repeats.
pub fn repeats(runs: &[Run]) -> Result<String, PageError> {
    let summary = summarise(runs);
    let (all, counted) = (runs.len(), summary.counted);
    let mut notes = summary.notes.clone();
    if counted == 0 {
        notes.push(
            "Not valid, because no run counts: the figures are of the runs without a failed program."
                .to_owned(),
        );
    }
    let mut about = vec![];
    if counted > 1 {
        let percent = summary.confidence * 100.0;
        about.push(format!(
            "±: {percent} % confidence interval of the mean (Student's t)."
        ));
        about.push(format!("Losses: {}.", summary.losses.text()));
    }
    let row = |row: &Row| {
        let estimate = row.estimate.text(row.name.quantity);
        vec![row.name.text(), estimate, row.estimate.n.to_string()]
    };
    let names = summary.figures.iter().map(|row| &row.name);
    page(Page {
        emud: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        title: title(runs),
        counted: format!("{all} runs, {counted} counted"),
        runs: Table::new(RUNS, summary.runs.iter().map(|run| entry("", run))),
        differences: None,
        figures: Table::new(REPEATS, summary.figures.iter().map(row)),
        about,
        notes,
        strips: strips(names, &[(runs, &summary.runs)]),
    })
}

/// Returns the page of two experiments, or of repeats of two; neither is empty.
pub fn compared(a: &[Run], b: &[Run]) -> Result<String, PageError> {
    let comparison = compare(a, b);
    let mut notes = comparison.notes.clone();
    if !comparison.clean {
        notes.push(
            "Not all runs are clean: differences may be the host's, or a failed program's."
                .to_owned(),
        );
    }
    let of = |side: &str, runs: &[RunEntry]| -> Vec<_> {
        runs.iter().map(|run| entry(side, run)).collect()
    };
    let runs = [of("a", &comparison.a.runs), of("b", &comparison.b.runs)].concat();
    let mut about: Vec<String> = comparison.test().into_iter().collect();
    about.push(format!("Losses: {}.", comparison.losses.text()));
    let names = comparison.figures.iter().map(|row| &row.name);
    page(Page {
        emud: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        title: format!("{} (a) and {} (b)", title(a), title(b)),
        counted: format!(
            "a: {} runs, {} in the figures; b: {} runs, {} in the figures",
            a.len(),
            comparison.a.counted,
            b.len(),
            comparison.b.counted
        ),
        runs: Table::new(RUNS, runs.into_iter()),
        figures: Table::new(BOTH, comparison.cells().map(Vec::from)),
        about,
        notes,
        strips: strips(names, &[(a, &comparison.a.runs), (b, &comparison.b.runs)]),
        differences: Some(comparison.differences),
    })
}

fn page(page: Page) -> Result<String, PageError> {
    Ok(plain(&page.render()?))
}

fn title(runs: &[Run]) -> String {
    runs.first()
        .map_or(String::new(), |run| run.about.name.clone())
}

fn entry(side: &str, run: &RunEntry) -> Vec<String> {
    vec![
        side.to_owned(),
        run.log.clone(),
        run.repeat.to_string(),
        run.seed.to_string(),
        run.verdict.to_owned(),
        run.excluded.clone().unwrap_or_default(),
    ]
}

/// Draws every run of each side as a dot, hollow if no figure is of it, from the lowest value to the highest.
fn strips<'a>(
    names: impl Iterator<Item = &'a FigureName>,
    sides: &[(&[Run], &[RunEntry])],
) -> Vec<(String, String)> {
    let of_run = |(run, entry): (&Run, &RunEntry)| (figures(run), entry.in_figures);
    let of_side =
        |(runs, entries): &(&[Run], &[RunEntry])| runs.iter().zip(*entries).map(of_run).collect();
    let sides: Vec<Vec<_>> = sides.iter().map(of_side).collect();
    let strip = |name: &FigureName| {
        let dots: Vec<(usize, f64, bool)> = (sides.iter().enumerate())
            .flat_map(|(side, runs)| {
                runs.iter()
                    .map(move |(figures, counts)| (side, figures, *counts))
            })
            .filter_map(|(side, figures, counts)| {
                let figure = figures.iter().find(|figure| figure.name == *name)?;
                Some((side, figure.value, counts))
            })
            .collect();
        let values = dots.iter().map(|(_, value, _)| *value);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if dots.len() < 2 {
            return None;
        }
        let height = LANE * sides.len() as f64;
        let mut svg =
            format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">");
        for (side, value, counts) in dots {
            let share = if high > low {
                (value - low) / (high - low)
            } else {
                0.5
            };
            let x = RADIUS + 1.0 + share * (WIDTH - 2.0 * RADIUS - 2.0);
            let y = LANE * (side as f64 + 0.5);
            let class = if counts { ["a", "b"][side] } else { "out" };
            let _ = write!(
                svg,
                "<circle class=\"run {class}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"{RADIUS}\"/>"
            );
        }
        svg += "</svg>";
        let range = format!(
            "{}: {} to {}",
            name.text(),
            name.quantity.text(low),
            name.quantity.text(high)
        );
        Some((range, svg))
    };
    names.filter_map(strip).collect()
}
