// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for people.

use std::fmt::Write;

use emud_monitor::log::printable;

use super::{Compared, Comparison, Estimate, Side};

/// Below that a difference is called one.
const NOTABLE: f64 = 0.05;

impl Comparison {
    /// Verdicts, what was asked differently, figures side by side; ends with a line feed.
    pub fn text(&self) -> String {
        let mut out = String::new();
        side(&mut out, "a", &self.a);
        side(&mut out, "b", &self.b);
        if self.differences.is_empty() {
            out.push_str("asked: the same\n");
        } else {
            out.push_str("asked differently:\n");
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
        let rows: Vec<[String; 6]> = [head]
            .into_iter()
            .chain(self.figures.iter().map(row))
            .collect();
        let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        for row in &rows {
            let cells = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if self.figures.iter().any(|f| f.welch.is_some()) {
            let percent = self.confidence * 100.0;
            let paired = self.figures.iter().any(|f| f.paired.is_some());
            let test = match paired {
                true => "paired t of runs with the same seed",
                false => "Welch's t",
            };
            let _ = writeln!(
                out,
                "±: {percent} % confidence interval of a mean (Student's t); p: {test}, each row alone"
            );
        }
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

fn row(c: &Compared) -> [String; 6] {
    let class = c.class.as_ref().map(|c| format!(" class {c}"));
    let class = class.unwrap_or_default();
    let name = format!("{} {}{class} {}", c.link, c.direction, c.quantity.name());
    let estimate = |e: &Option<Estimate>| match e {
        None => "-".to_owned(),
        Some(e) => match e.interval {
            Some([low, high]) => {
                let half = c.quantity.text((high - low) / 2.0);
                format!("{} ± {half}", c.quantity.text(e.mean))
            }
            None => c.quantity.text(e.mean),
        },
    };
    let difference = c.difference.map(|d| match d > 0.0 {
        true => format!("+{}", c.quantity.text(d)),
        false => c.quantity.text(d),
    });
    let relative = c.relative.map(|r| format!("{:+.1} %", r * 100.0));
    let p = c.paired.or(c.welch).map(|test| match test.p {
        p if p < 0.0001 => "p < 0.0001, differs".to_owned(),
        p if p < NOTABLE => format!("p = {p:.4}, differs"),
        p => format!("p = {p:.2}"),
    });
    [
        printable(&name).into_owned(),
        estimate(&c.a),
        estimate(&c.b),
        difference.unwrap_or_default(),
        relative.unwrap_or_default(),
        p.unwrap_or_default(),
    ]
}
