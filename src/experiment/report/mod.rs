// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment as a page that a browser shows by itself: no script, nothing from a network,
//! light and dark, also on paper (docs/report.md).

mod alarms;
mod chart;
mod escape;
mod head;
mod links;
mod plot;
mod programs;

use std::fmt::Write;

use super::results::Run;
use escape::Escaped;
use plot::Plots;

const STYLE: &str = include_str!("style.css");
const PLOT_STYLE: &str = include_str!("plot.css");

/// A plot could not be drawn: a fault of emud's.
#[derive(Debug, thiserror::Error)]
#[error("cannot plot {track}: {source}")]
pub struct PageError {
    track: String,
    source: chart::Failed,
}

impl PageError {
    /// The exit code for it, after sysexits.h.
    pub fn exit_code(&self) -> u8 {
        70
    }
}

/// The plots of a direction of a link, as an SVG file of its own.
#[derive(Debug)]
pub struct Plot {
    /// "access-down.svg": letters, digits, '-', '.', '_' alone.
    pub file: String,
    pub svg: String,
}

/// The page.
///
/// # Errors
/// A plot cannot be drawn.
pub fn html(run: &Run) -> Result<String, PageError> {
    let name = Escaped(&run.about.name);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"emud {}\">\n<title>{name}: emud</title>\n\
         <style>\n{STYLE}{PLOT_STYLE}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION"),
    );
    head::write(&mut out, run);
    links::table(&mut out, run);
    alarms::write(&mut out, run);
    links::plots(&mut out, run)?;
    programs::write(&mut out, run);
    head::texts(&mut out, run);
    out.push_str("</body>\n</html>\n");
    Ok(out)
}

/// The plots alone, a file for each direction and class of a link that has samples.
///
/// # Errors
/// A plot cannot be drawn.
pub fn plots(run: &Run) -> Result<Vec<Plot>, PageError> {
    let plots = Plots::new(run);
    let mut files: Vec<Plot> = Vec::new();
    for track in &run.tracks {
        let failed = |source| PageError {
            track: track.name(),
            source,
        };
        let Some(svg) = plots.of(track).map_err(failed)? else {
            continue;
        };
        let class = track
            .class
            .as_ref()
            .map(|c| format!("-{c}"))
            .unwrap_or_default();
        let stem = file_name(&format!("{}-{}{class}", track.link, track.direction));
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

/// Seconds since the start of the measured phase, to the millisecond.
fn at(run: &Run, mono_ns: u64) -> String {
    format!("{:.3}", plot::second(run, mono_ns))
}

/// A line of a list of names and values.
fn entry(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", Escaped(value));
}

/// "and 12 more", where a log had more than a page has room for.
fn left_out(out: &mut String, n: u64, what: &str) {
    if n > 0 {
        let n = crate::experiment::results::count(n);
        let _ = writeln!(out, "<p class=\"soft\">{n} more {what} are in the log.</p>");
    }
}
