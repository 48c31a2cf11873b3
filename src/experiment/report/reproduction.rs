// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of published experiments that were carried out again.

use askama::Template;

use super::{PageError, STYLE, Table, plain, rows};
use crate::experiment::reproduce::{
    EXPERIMENTS, Figure, FigureVerdict, Reproduced, Reproduction, counts, table,
};
use crate::text::{Word, to_the_second};

const OVERVIEW: &[[&str; 2]] = &[
    ["experiment", ""],
    ["figures", "text"],
    ["run, UTC", ""],
    ["Linux", ""],
    ["length", ""],
];

#[derive(Template)]
#[template(path = "reproduction.html", whitespace = "minimize")]
struct Page<'a> {
    emud: &'static str,
    style: &'static str,
    counted: String,
    class: &'static str,
    verdict: &'static str,
    counts: String,
    left_out: String,
    overview: Table,
    legend: String,
    experiments: Vec<Chapter<'a>>,
}

/// An experiment.
struct Chapter<'a> {
    about: &'a Reproduced,
    runs: String,
    conditions: String,
    counts: String,
    figures: Table,
    plot: String,
    missing: String,
}

/// Returns the page of published experiments.
pub fn reproduction(all: &Reproduction) -> Result<String, PageError> {
    let experiments = all.experiments.iter();
    let figures = experiments.clone().flat_map(|one| &one.figures);
    let page = Page {
        emud: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        counted: format!(
            "{} of {} experiments",
            EXPERIMENTS.len() - all.left_out().len(),
            EXPERIMENTS.len()
        ),
        class: class(all.verdict),
        verdict: all.verdict.word(),
        counts: counts(figures),
        left_out: all.left_out().join(", "),
        overview: Table::new(OVERVIEW, experiments.clone().map(overview)),
        legend: rows::legend().map_err(|source| cannot_plot("the marks", source))?,
        experiments: experiments.map(part).collect::<Result<_, _>>()?,
    };
    Ok(plain(&page.render()?))
}

fn part(one: &Reproduced) -> Result<Chapter<'_>, PageError> {
    let without_value = |figure: &&Figure| figure.measured.is_none();
    let missing = one.figures.iter().filter(without_value);
    let missing: Vec<&str> = missing.map(|figure| figure.figure.as_str()).collect();
    let (titles, cells) = table(&one.figures);
    Ok(Chapter {
        about: one,
        runs: one.runs(),
        conditions: one.conditions.text(),
        counts: counts(&one.figures),
        figures: Table::new(&titles, cells.into_iter()),
        plot: rows::draw(&one.figures).map_err(|source| cannot_plot(&one.name, source))?,
        missing: missing.join("; "),
    })
}

fn cannot_plot(what: &str, source: crate::plot::PlotError) -> PageError {
    let track = what.to_owned();
    PageError::Plot { track, source }
}

fn overview(one: &Reproduced) -> Vec<String> {
    vec![
        one.name.clone(),
        counts(&one.figures),
        to_the_second(&one.conditions.began),
        one.conditions.kernel.clone(),
        one.conditions.length().to_owned(),
    ]
}

/// Of style.css.
fn class(verdict: FigureVerdict) -> &'static str {
    match verdict {
        FigureVerdict::Within | FigureVerdict::Explained | FigureVerdict::Reported => "clean",
        FigureVerdict::Deviates | FigureVerdict::Invalid => "invalid",
        FigureVerdict::Contended => "contended",
        FigureVerdict::Missing => "unfinished",
    }
}
