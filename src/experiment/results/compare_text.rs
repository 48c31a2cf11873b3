// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for people.

use std::fmt::Write;

use emud_monitor::log::printable;

use super::{
    Compared, Comparison, Difference, Estimate, Losses, Quantity, RunEntry, Side, VerdictMark,
};
use crate::text::columns;

/// Below that a difference is called one.
pub(super) const NOTABLE: f64 = 0.05;

impl Comparison {
    /// Verdicts, different settings, figures side by side; ends with a line feed.
    pub fn text(&self, mark: VerdictMark) -> String {
        let mut out = String::new();
        runs(&mut out, "a", &self.a.runs, mark);
        runs(&mut out, "b", &self.b.runs, mark);
        configuration(&mut out, ["a", "b"], "", &self.differences);
        self.figures(&mut out);
        ending(&mut out, &self.losses, &self.notes, self.clean);
        out
    }

    fn figures(&self, out: &mut String) {
        if self.figures.is_empty() {
            out.push_str("no figures: no run has samples of a measured phase\n");
            return;
        }
        let head = ["", "a", "b", "b - a", "", ""].map(str::to_owned);
        *out += &columns([head].into_iter().chain(self.cells()));
        if let Some(test) = self.test() {
            let _ = writeln!(out, "{test}");
        }
    }

    /// Returns what intervals and p mean; `None`: there are none.
    pub fn test(&self) -> Option<String> {
        if !self.figures.iter().any(|f| f.welch.is_some()) {
            return None;
        }
        let percent = self.confidence * 100.0;
        let test = match self.is_paired() {
            true => "paired t of runs with the same seed",
            false => "Welch's t",
        };
        let tested = self.figures.iter().filter_map(|f| f.bonferroni);
        let (all, differ) = tested.fold((0, 0), |(all, differ), p| {
            (all + 1, differ + usize::from(p < NOTABLE))
        });
        Some(format!(
            "±: {percent} % confidence interval of a mean (Student's t); p: {test}, each row alone; with \
             Bonferroni's correction for {all} rows {differ} differ"
        ))
    }
}

/// Adds a line for each run of a side.
pub(super) fn runs(out: &mut String, name: &str, runs: &[RunEntry], mark: VerdictMark) {
    for run in runs {
        let _ = writeln!(out, "{name}: {}", run.text(mark));
    }
}

/// Adds the settings in which side b differs from side a; `of`: what the heading calls b, if there are others.
pub(super) fn configuration(
    out: &mut String,
    [a, b]: [&str; 2],
    of: &str,
    differences: &[Difference],
) {
    if differences.is_empty() {
        let _ = writeln!(out, "settings{of}: the same");
        return;
    }
    let _ = writeln!(out, "different settings{of}:");
    for d in differences {
        let (what, of_a, of_b) = (printable(&d.what), printable(&d.a), printable(&d.b));
        let _ = writeln!(out, "  {what}\n    {a}: {of_a}\n    {b}: {of_b}");
    }
}

/// Adds what is below the figures.
pub(super) fn ending(out: &mut String, losses: &Losses, notes: &[String], clean: bool) {
    let _ = writeln!(out, "losses: {}", printable(&losses.text()));
    for note in notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    if !clean {
        out.push_str(
            "NOT all runs are clean: differences may be the host's, or a failed program's\n",
        );
    }
}

/// Returns a difference with its sign.
pub(super) fn change(quantity: Quantity, difference: f64) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    format!("{sign}{}", quantity.text(difference))
}

/// Returns p, and whether it is a difference.
pub(super) fn p_text(p: f64) -> String {
    match p {
        p if p < 0.0001 => "p < 0.0001, differs".to_owned(),
        p if p < NOTABLE => format!("p = {p:.4}, differs"),
        p => format!("p = {p:.2}"),
    }
}

impl Comparison {
    /// Returns of each figure name, both means, their difference, also as a share, and p; what is of fewer runs or
    /// of another test than the others says so.
    pub fn cells(&self) -> impl Iterator<Item = [String; 6]> {
        self.figures.iter().map(|figure| self.row(figure))
    }

    fn row(&self, figure: &Compared) -> [String; 6] {
        let quantity = figure.name.quantity;
        let estimate = |e: &Option<Estimate>, side: &Side| {
            e.map_or("-".to_owned(), |e| e.text_of(quantity, side.counted))
        };
        let difference = figure.difference.map(|d| change(quantity, d));
        let relative = figure.relative.map(|r| format!("{:+.1} %", r * 100.0));
        let other_test = match figure.paired {
            None if self.is_paired() => " (Welch)".to_owned(),
            Some(_) if figure.pairs < self.pairs => format!(" (of {} pairs)", figure.pairs),
            _ => String::new(),
        };
        let p = figure.test().map(|test| p_text(test.p) + &other_test);
        [
            printable(&figure.name.text()).into_owned(),
            estimate(&figure.a, &self.a),
            estimate(&figure.b, &self.b),
            difference.unwrap_or_default(),
            relative.unwrap_or_default(),
            p.unwrap_or_default(),
        ]
    }

    fn is_paired(&self) -> bool {
        self.figures.iter().any(|figure| figure.paired.is_some())
    }
}
