// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for people.

use std::fmt::Write;

use emud::text::quantity::time;
use emud::text::{columns, count};
use emud_monitor::calibrate::{Outcome, RELATIVE_ERROR, Tally};
use emud_monitor::event::Watched;
use emud_monitor::record::End;

use super::report::{CalibrationReport, Recording, Row};

/// Maximum number of members shown per criterion: those with the largest values.
const MEMBERS: usize = 8;

const HEAD: [&str; 10] = [
    "", "count", "p50", "p90", "p99", "p99.9", "max", "theta", "alarms", "first",
];

pub fn of(report: &CalibrationReport) -> String {
    let mut out = columns(report.recordings.iter().map(recording));
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for row in &report.rows {
        criterion(&mut rows, report, row);
    }
    let _ = write!(out, "\n{}", columns(rows));
    suggestions(&mut out, report);
    let _ = writeln!(
        out,
        "\nQuantiles are up to {} % too large; the largest values are exact.\n\
         A value with `+` is cut by the start or end of its recording.",
        RELATIVE_ERROR * 100.0
    );
    for warning in &report.warnings {
        let _ = writeln!(out, "! {warning}");
    }
    out
}

fn recording(recording: &Recording) -> [String; 6] {
    let Recording {
        file,
        contended,
        findings,
    } = recording;
    let load = if *contended { "contended" } else { "good" };
    let end = match findings.end {
        End::Complete(_) => "complete",
        End::Cut { .. } => "cut short",
    };
    [
        file.clone(),
        load.to_owned(),
        time(findings.duration_ns),
        format!("{} records", count(findings.records)),
        end.to_owned(),
        format!("Linux {}", findings.header.host.kernel),
    ]
}

fn criterion(rows: &mut Vec<Vec<String>>, report: &CalibrationReport, row: &Row) {
    let title = row.title();
    if row.watched != Watched::Yes {
        let mut cells = vec![String::new(); HEAD.len()];
        cells[0] = title;
        cells[1] = "unknown".to_owned();
        cells[HEAD.len() - 1] = "no hook of that kernel recorded it".to_owned();
        rows.push(cells);
        return;
    }
    let first = first_alarm(report, row, false);
    rows.push(line(row, title, &row.good.total, first));
    let mut members: Vec<_> = row.good.members.iter().collect();
    members.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.distribution.max()));
    // A single member equals the total.
    let shown = if members.len() > 1 { MEMBERS } else { 0 };
    for (name, tally) in members.iter().take(shown) {
        let window = tally
            .window_ns
            .map_or(String::new(), |ns| format!(", {}", time(ns)));
        rows.push(line(row, format!("  {name}{window}"), tally, String::new()));
    }
    if members.len() > MEMBERS {
        let more = members.len() - MEMBERS;
        rows.push(vec![format!("  and {more} more (--json has all)")]);
    }
    if let Some(contended) = &row.contended {
        let first = first_alarm(report, row, true);
        rows.push(line(row, "  contended".to_owned(), &contended.total, first));
    }
}

fn line(row: &Row, name: String, tally: &Tally, first: String) -> Vec<String> {
    let d = &tally.distribution;
    let quantile = |q| match d.quantile(q) {
        Some(value) => row.text(tally, value),
        None => "-".into(),
    };
    let cut = if d.max_is_open() { "+" } else { "" };
    let max = match d.max() {
        Some(value) => row.text(tally, value) + cut,
        None => "-".into(),
    };
    let theta = tally
        .threshold
        .map_or(String::new(), |t| row.text(tally, t));
    vec![
        name,
        count(d.count()),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999),
        max,
        theta,
        alarms(row, tally),
        first,
    ]
}

/// Returns the number of alarms. A single network device is judged only if it has a threshold.
fn alarms(row: &Row, tally: &Tally) -> String {
    let judged = tally.threshold.is_some() || row.good.window_ns.is_none();
    if judged {
        count(tally.alarms)
    } else {
        String::new()
    }
}

/// Returns the time of the first alarm in the first recording with one.
fn first_alarm(report: &CalibrationReport, row: &Row, contended: bool) -> String {
    let with_alarm = |r: &Recording| {
        let measure = r.findings.measures.get(row.measured.name)?;
        let first = measure
            .total
            .first_ns
            .filter(|_| r.contended == contended)?;
        Some(format!("{} after {}", r.file, time(first)))
    };
    report
        .recordings
        .iter()
        .find_map(with_alarm)
        .unwrap_or_default()
}

fn suggestions(out: &mut String, report: &CalibrationReport) {
    let suggestion = |row: &Row| {
        let s = &row.suggestion;
        let theta = s.theta.map_or("-".into(), |t| row.quantity(t));
        let value = |v: Option<u64>| v.map_or("nothing".into(), |v| row.quantity(v));
        let good = value(s.largest_good);
        let margin = report.margin * 100.0;
        let why = match s.outcome {
            Outcome::Margin if s.largest_good.is_none() => "no value under good load".into(),
            Outcome::Margin | Outcome::Overlap => {
                format!("largest good value {good}, and {margin} %")
            }
            Outcome::Between | Outcome::PartlyBetween => format!(
                "between: largest good value {good}, smallest contended {}",
                value(s.smallest_bad)
            ),
            Outcome::NothingSeen => "no value in the good recordings".into(),
            Outcome::Unknown => "unknown".into(),
        };
        [format!("  {}", row.measured.name), theta, why]
    };
    let rows = columns(report.rows.iter().map(suggestion));
    let _ = write!(out, "\nsuggested theta\n{rows}");
    for r in report.recordings.iter().filter(|r| r.contended) {
        let names = found_by(report, r);
        let names = if names.is_empty() {
            "NOT detected by any of them".into()
        } else {
            format!("detected by {}", names.join(", "))
        };
        let _ = writeln!(out, "  {}: {names}", r.file);
    }
}

/// Returns the criteria whose suggested threshold a recording reaches.
pub fn found_by(report: &CalibrationReport, recording: &Recording) -> Vec<&'static str> {
    let reaches = |row: &&Row| {
        let measure = recording.findings.measures.get(row.measured.name);
        let max = measure.and_then(|m| m.total.distribution.max());
        let theta = row.suggestion.theta;
        max.zip(theta)
            .is_some_and(|(max, theta)| row.value(max) >= theta)
    };
    let rows = report.rows.iter().filter(reaches);
    rows.map(|row| row.measured.name).collect()
}
