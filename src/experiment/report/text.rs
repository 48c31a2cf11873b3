// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as text: verdict, figures, contention, hosts.

use emud_monitor::log::printable;

use super::head::Head;
use super::{Table, alarms, host};
use crate::experiment::results::{Logged, Run, VerdictMark, figures};
use crate::text::columns;

const FIGURES: &[[&str; 2]] = &[["figure", ""], ["", "n"]];

/// Returns the report for people; it ends with a line feed.
pub fn text(log: &Logged, mark: VerdictMark) -> String {
    let (head, runs) = (Head::of(log), log.runs());
    let mut out = format!("{}: {}\n", printable(head.name), mark(head.verdict));
    for why in &head.reasons {
        out += &format!("  {}\n", printable(why));
    }
    let hosts = head.hosts.as_ref().map(Table::text);
    let figures = |run: &Run| {
        let figures = figures(run).into_iter();
        let row = figures.map(|one| vec![one.name.text(), one.name.quantity.text(one.value)]);
        row.collect()
    };
    let figures = Table::of_hosts(FIGURES, runs, figures).text();
    let (contention, of_hosts) = (alarms::spans(runs).text(), host::table(runs).text());
    let sections = [
        ("hosts", hosts.unwrap_or_default()),
        ("figures of the measured phase", figures),
        ("contention", contention),
        ("resources of the host in the measured phase", of_hosts),
    ];
    for (title, rows) in sections {
        if !rows.is_empty() {
            out += &format!("\n{title}\n{rows}");
        }
    }
    let fewer = runs.iter().filter_map(Run::why_fewer_metrics);
    let notes: String = (head.notes.iter().cloned().chain(fewer))
        .map(|note| format!("note: {}\n", printable(&note)))
        .collect();
    match notes.is_empty() {
        true => out,
        false => format!("{out}\n{notes}"),
    }
}

impl Table {
    /// Returns the table as text; empty: it has no rows.
    fn text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let titles = self.columns.iter().map(|[title, _]| (*title).to_owned());
        let cells = |row: &Vec<String>| {
            row.iter()
                .map(|cell| printable(cell).into_owned())
                .collect()
        };
        let rows = std::iter::once(titles.collect()).chain(self.rows.iter().map(cells));
        let indented = rows.map(|mut row: Vec<String>| {
            row[0].insert_str(0, "  ");
            row
        });
        columns(indented)
    }
}
