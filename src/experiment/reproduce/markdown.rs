// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of experiments as tables in Markdown, between two markers of a document.

use std::fmt::Write;

use super::report::{counts, table};
use super::{Reproduced, Reproduction};

const BEGIN: &str = "<!-- emud reproduce: begin -->";
const END: &str = "<!-- emud reproduce: end -->";

impl Reproduction {
    /// Returns the document with these tables between its markers; `None`: a new one.
    ///
    /// # Errors
    /// It does not have each marker once. The message says what to do.
    pub fn markdown(&self, document: Option<&str>) -> Result<String, String> {
        let document = document.filter(|text| !text.trim().is_empty());
        let (before, after) = match document {
            None => ("# Published experiments, carried out again\n\n", "\n"),
            Some(text) => around(text)?,
        };
        Ok(format!("{before}{BEGIN}\n{}{END}{after}", self.tables()))
    }

    fn tables(&self) -> String {
        let mut text = String::new();
        let left_out = self.left_out();
        if !left_out.is_empty() {
            let _ = writeln!(text, "Without a result here: {}.\n", left_out.join(", "));
        }
        text.extend(self.experiments.iter().map(section));
        text
    }
}

fn around(text: &str) -> Result<(&str, &str), String> {
    let halves = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let again = |part: &str| part.contains(BEGIN) || part.contains(END);
    halves
        .filter(|(before, after)| !again(before) && !again(after))
        .ok_or_else(|| {
            format!(
                "it does not have the lines `{BEGIN}` and `{END}` once each: add them where the \
                 tables belong, or give a new file"
            )
        })
}

fn section(one: &Reproduced) -> String {
    let mut text = format!("### {}\n\n{}\n\n", cell(&one.name), cell(&one.description));
    for (title, value) in [
        ("source", &one.source),
        ("method", &one.method),
        ("runs", &one.runs()),
        ("carried out", &one.conditions.text()),
        ("figures", &counts(&one.figures)),
    ] {
        let _ = writeln!(text, "- {title}: {}", cell(value));
    }
    text += "\n";
    if !one.figures.is_empty() {
        let (titles, rows) = table(&one.figures);
        let titles: Vec<_> = titles.iter().map(|[title, _]| *title).collect();
        let _ = writeln!(text, "| {} |", titles.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(titles.len()));
        for row in rows {
            let cells: Vec<_> = row.iter().map(|text| cell(text)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text += "\n";
    }
    text
}

/// Text on one line, of which nothing is markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
