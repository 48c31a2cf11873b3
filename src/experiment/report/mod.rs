// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment as a page that a browser shows by itself: no script, nothing from a network,
//! light and dark, also on paper (docs/report.md). templates/ has its template. Also as text.

mod alarms;
mod chart;
mod head;
mod host;
mod links;
mod map;
mod plot;
mod programs;
mod reproduction;
mod rows;
mod several;
mod stations;
mod text;

use askama::Template;

use super::results::{Logged, Run, count};
use crate::plot::PlotError;
use plot::Plots;

pub use reproduction::reproduction;
pub use several::{compared, repeats};
pub use text::text;

const STYLE: &str = concat!(include_str!("style.css"), include_str!("plot.css"));
const PLOT_STYLE: &str = include_str!("plot.css");

/// A page cannot be made: a fault of emud's.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A plot cannot be drawn.
    #[error("cannot plot {track}: {source}")]
    Plot {
        /// Name of the track.
        track: String,
        /// Error of the drawing library.
        source: PlotError,
    },
    /// The template cannot be filled in.
    #[error("cannot make the page: {0}")]
    Template(#[from] askama::Error),
}

impl PageError {
    /// Returns the exit code, after sysexits.h.
    pub fn exit_code(&self) -> u8 {
        70
    }
}

/// The plots of a direction of a link as an SVG file.
#[derive(Debug)]
pub struct Plot {
    /// Name such as "access-down.svg": only letters, digits, '-', '.', '_'.
    pub file: String,
    /// The plot as SVG.
    pub svg: String,
}

#[derive(Template)]
#[template(path = "report.html", whitespace = "minimize")]
struct Page<'a> {
    emud: &'static str,
    style: &'static str,
    head: head::Head<'a>,
    links: links::Links,
    stations: Table,
    maps: Vec<map::Map<'a>>,
    map_style: String,
    contention: Option<alarms::Contention>,
    over_time: links::OverTime<'a>,
    hosts: Vec<host::Host>,
    programs: programs::Programs<'a>,
}

/// A table: the title and the class of each column, and the text of each cell.
#[derive(Template)]
#[template(path = "table.html", whitespace = "minimize")]
struct Table {
    columns: Vec<[&'static str; 2]>,
    rows: Vec<Vec<String>>,
    /// What is above the titles: a text, and how many columns it is for; one of a single column
    /// replaces its title. None: nothing.
    groups: Vec<(&'static str, usize)>,
}

impl Table {
    fn new(columns: &[[&'static str; 2]], rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: rows.collect(),
            groups: vec![],
        }
    }

    /// Creates a table of the parts of all hosts; of several, the first column is the host.
    fn of_hosts(
        columns: &[[&'static str; 2]],
        runs: &[Run],
        rows: impl Fn(&Run) -> Vec<Vec<String>>,
    ) -> Self {
        let rows = runs.iter().flat_map(|run| {
            let host = run.in_fleet.as_ref().map(|of| of.host.clone());
            let row = move |row: Vec<String>| host.iter().cloned().chain(row).collect();
            rows(run).into_iter().map(row)
        });
        let mut table = Self::new(columns, rows);
        if runs.iter().any(|run| run.in_fleet.is_some()) {
            table.columns.insert(0, ["host", ""]);
        }
        table
    }

    /// Adds groups of the columns after that of the host.
    fn grouped(mut self, groups: &[(&'static str, usize)]) -> Self {
        let columns: usize = groups.iter().map(|(_, columns)| columns).sum();
        let host = self.columns.len() > columns;
        self.groups.extend(host.then_some(("host", 1)));
        self.groups.extend(groups);
        self
    }

    /// Titles of the columns that share a group.
    fn below_groups(&self) -> Vec<&'static str> {
        let spans = self.groups.iter().map(|(_, columns)| *columns);
        let alone = spans.flat_map(|columns| vec![columns == 1; columns]);
        let titles = self.columns.iter().map(|[title, _]| *title).zip(alone);
        titles
            .filter(|(_, alone)| !alone)
            .map(|(title, _)| title)
            .collect()
    }
}

/// Returns the page.
pub fn html(log: &Logged) -> Result<String, PageError> {
    let runs = log.runs();
    let (maps, map_style) = map::maps(runs);
    let page = Page {
        emud: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        head: head::Head::of(log),
        links: links::Links::of(runs),
        stations: stations::table(runs),
        maps,
        map_style,
        contention: alarms::Contention::of(runs),
        over_time: links::OverTime::of(runs)?,
        hosts: host::of(runs)?,
        programs: programs::Programs::of(runs),
    };
    Ok(plain(&page.render()?))
}

/// Returns the plots, a file for each direction and class of a link that has samples, and one of each host.
pub fn plots(log: &Logged) -> Result<Vec<Plot>, PageError> {
    let mut drawn = Vec::new();
    for run in log.runs() {
        let plots = Plots::new(run, log.runs());
        let host = run.in_fleet.iter().map(|of| format!("{}-", of.host));
        let host: String = host.collect();
        for track in &run.tracks {
            let class = track.class.iter().map(|class| format!("-{class}"));
            let class: String = class.collect();
            let name = format!("{host}{}-{}{class}", track.link, track.direction);
            drawn.extend(plots.of(track)?.map(|svg| (name, svg)));
        }
        drawn.extend(plots.host()?.map(|svg| (format!("{host}host"), svg)));
    }
    let mut files: Vec<Plot> = Vec::new();
    for (name, svg) in drawn {
        let stem = file_name(&name);
        // Names that differ only in what a file's name cannot have.
        let same = |file: &str| files.iter().any(|f| f.file == file);
        let mut file = format!("{stem}.svg");
        let mut number = 2;
        while same(&file) {
            file = format!("{stem}-{number}.svg");
            number += 1;
        }
        let style = format!("><style>\n{PLOT_STYLE}</style>");
        files.push(Plot {
            file,
            svg: svg.replacen('>', &style, 1),
        });
    }
    Ok(files)
}

fn file_name(text: &str) -> String {
    let allowed = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-._".contains(c) => c,
        _ => '_',
    };
    text.trim_start_matches('.').chars().map(allowed).collect()
}

/// Replaces what neither HTML nor XML can have: control characters, and those that turn the
/// direction of writing, which would reach beyond the text. A log's text comes from any program.
fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Seconds since the start of the measured phase, to the millisecond.
fn at(run: &Run, mono_ns: u64) -> String {
    format!("{:.3}", plot::second(run, mono_ns))
}

/// Returns a note on the samples of a plot's step; empty: one. A long run has more samples than a plot has pixels.
fn joined(samples_each: u64) -> String {
    match samples_each {
        0 | 1 => String::new(),
        each => format!("Each step is {each} samples together."),
    }
}

/// Returns a note on what a page has no room for; empty: nothing.
fn left_out(n: u64, what: &str) -> String {
    match n {
        0 => String::new(),
        n => format!("{} more {what} are in the log.", count(n)),
    }
}
