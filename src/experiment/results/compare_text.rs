// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for people.

use std::fmt::Write;

use emud_monitor::log::printable;

use super::{Compared, Comparison, Estimate, Side};
use crate::text::columns;

/// Below that a difference is called one.
const NOTABLE: f64 = 0.05;

impl Comparison {
    /// Verdicts, different settings, figures side by side; ends with a line feed.
    pub fn text(&self) -> String {
        let mut out = String::new();
        side(&mut out, "a", &self.a);
        side(&mut out, "b", &self.b);
        if self.differences.is_empty() {
            out.push_str("settings: the same\n");
        } else {
            out.push_str("different settings:\n");
        }
        for d in &self.differences {
            let (what, a, b) = (printable(&d.what), printable(&d.a), printable(&d.b));
            let _ = writeln!(out, "  {what}\n    a: {a}\n    b: {b}");
        }
        self.figures(&mut out);
        let _ = writeln!(out, "losses: {}", printable(&self.losses.text()));
        for note in &self.notes {
            let _ = writeln!(out, "note: {}", printable(note));
        }
        if !self.clean {
            out.push_str(
                "NOT all runs are clean: differences may be the host's, or a failed program's\n",
            );
        }
        out
    }

    fn figures(&self, out: &mut String) {
        if self.figures.is_empty() {
            out.push_str("no figures: no run has samples of a measured phase\n");
            return;
        }
        let head = ["", "a", "b", "b - a", "", ""].map(str::to_owned);
        let rows = self.figures.iter().map(Compared::cells);
        *out += &columns([head].into_iter().chain(rows));
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
        let paired = self.figures.iter().any(|f| f.paired.is_some());
        let test = match paired {
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

fn side(out: &mut String, name: &str, side: &Side) {
    for run in &side.runs {
        // Where nothing is clean nothing is excluded either.
        let all = side.counted == side.runs.len() && run.excluded.is_some();
        let text = match &run.excluded {
            Some(why) if all => format!("{}: {}: {why}", run.log, run.verdict),
            _ => run.text(),
        };
        let _ = writeln!(out, "{name}: {}", printable(&text));
    }
}

impl Compared {
    /// Returns name, both means, their difference, also as a share, and p.
    pub fn cells(&self) -> [String; 6] {
        let quantity = self.name.quantity;
        let estimate = |e: &Option<Estimate>| e.map_or("-".to_owned(), |e| e.text(quantity));
        let sign = |d: f64| if d > 0.0 { "+" } else { "" };
        let difference = self
            .difference
            .map(|d| format!("{}{}", sign(d), quantity.text(d)));
        let relative = self.relative.map(|r| format!("{:+.1} %", r * 100.0));
        let p = self.test().map(|test| match test.p {
            p if p < 0.0001 => "p < 0.0001, differs".to_owned(),
            p if p < NOTABLE => format!("p = {p:.4}, differs"),
            p => format!("p = {p:.2}"),
        });
        [
            printable(&self.name.text()).into_owned(),
            estimate(&self.a),
            estimate(&self.b),
            difference.unwrap_or_default(),
            relative.unwrap_or_default(),
            p.unwrap_or_default(),
        ]
    }
}
