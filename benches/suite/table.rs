// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as Markdown.

use std::fmt::Write;

use crate::case::{Case, cases};
use crate::figure::Results;

/// One row for what was measured in one boot.
pub fn machines(all: &[Results]) -> String {
    let mut text = String::from(
        "| section | kernel | where | emud | tc | date (UTC) | run | turns |\n\
         |---|---|---|---|---|---|---|---:|\n",
    );
    for results in all {
        let machine = &results.machine;
        let turns = results.figures.iter().map(|f| f.values.len()).max();
        let cells = [
            results.section.clone(),
            machine.kernel.clone(),
            machine.place.clone(),
            machine.emud.clone(),
            machine.iproute2.clone(),
            machine.date.clone(),
            if results.full { "full" } else { "quick" }.to_owned(),
            turns.unwrap_or(0).to_string(),
        ];
        row(&mut text, &cells);
    }
    text
}

/// The tables of one boot, one a metric; a heading of `level` above each.
pub fn figures(results: &Results, level: usize) -> String {
    let mut text = String::new();
    for of_metric in cases(results).chunk_by(|a, b| (a.metric, a.unit) == (b.metric, b.unit)) {
        let (metric, unit) = (of_metric[0].metric, of_metric[0].unit);
        // A number of something.
        let unit = if unit == "1" {
            String::new()
        } else {
            format!(", {unit}")
        };
        let _ = writeln!(text, "{} {metric}{unit}\n", "#".repeat(level));
        table(&mut text, of_metric);
        text.push('\n');
    }
    if !results.missing.is_empty() {
        text.push_str("Not measured:\n\n");
        for missing in &results.missing {
            let _ = writeln!(text, "- {missing}");
        }
        text.push('\n');
    }
    text
}

/// Empty columns are removed.
fn table(text: &mut String, cases: &[Case]) {
    let bare = cases.iter().any(|case| case.base().is_some());
    let ratio = cases
        .iter()
        .any(|case| case.sides.iter().any(|f| case.ratio(f).is_some()));
    let shown = [true, true, true, true, bare, ratio];
    let columns = [
        ("case", "---"),
        ("side", "---"),
        ("median", "---:"),
        ("least..most", "---:"),
        ("added", "---:"),
        ("to netem", "---:"),
    ];
    let kept = |cells: [String; 6]| -> Vec<String> {
        let cells = cells.into_iter().zip(shown);
        cells
            .filter_map(|(cell, kept)| kept.then_some(cell))
            .collect()
    };
    row(text, &kept(columns.map(|(name, _)| name.to_owned())));
    let rule = kept(columns.map(|(_, rule)| rule.to_owned()));
    let _ = writeln!(text, "|{}|", rule.join("|"));
    for case in cases {
        for figure in &case.sides {
            let (least, most) = figure.spread();
            let told = |value: Option<f64>| value.map(number).unwrap_or_default();
            let cells = [
                case.name.to_owned(),
                figure.side.clone(),
                number(figure.median()),
                format!("{}..{}", number(least), number(most)),
                told(case.added(figure)),
                told(case.ratio(figure)),
            ];
            row(text, &kept(cells));
        }
    }
}

/// A bar in a cell would end it.
pub fn row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Three digits or more, thousands apart.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.01 => 3,
        _ => 5,
    };
    with_decimals(value, decimals)
}

/// What is labelled on an axis: no more decimals than it takes.
pub fn tick(value: f64) -> String {
    let wanted = (0..6).find(|n| (value * 10f64.powi(*n)).fract().abs() < 1e-9);
    with_decimals(value, wanted.unwrap_or(6) as usize)
}

fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut apart = String::new();
    for (i, digit) in whole.char_indices() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{apart}{rest}")
}
