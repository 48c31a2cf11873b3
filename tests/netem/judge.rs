// SPDX-License-Identifier: GPL-2.0-only
//! The table, and what it means.

use super::measure::{Figure, What};

/// In standard errors.
const WITHIN: f64 = 3.0;

/// Netem's figures against emud's, and both against theory.
pub struct Judge {
    command: String,
    /// Times may be off by what the machine adds to some packets and not to others.
    spread_ms: f64,
    wrong: Vec<String>,
    /// Figures in which netem's own recurrence does not give what is asked for.
    differences: usize,
}

impl Judge {
    pub fn new(command: &str, spread_ms: f64) -> Self {
        println!("    {command}");
        Self {
            command: command.to_owned(),
            spread_ms,
            wrong: vec![],
            differences: 0,
        }
    }

    /// Netem's figure first, then emud's; of `n` packets each.
    pub fn figure(&mut self, what: What, measured: [Figure; 2], theory: [Figure; 2], n: f64) {
        let machine = if what.is_time() { self.spread_ms } else { 0.0 };
        let [netem, emud] = [0, 1].map(|i| {
            if what.is_share() {
                measured[i].known(theory[i].value, n)
            } else {
                measured[i]
            }
        });
        let near = |a: Figure, b: Figure| {
            (a.value - b.value).abs() <= WITHIN * a.error.hypot(b.error) + machine
        };
        let same = near(theory[0], theory[1]);
        let mut faults = vec![];
        if same && !near(netem, emud) {
            faults.push("netem and emud differ");
        }
        if !near(netem, theory[0]) {
            faults.push("netem is not as its recurrence");
        }
        if !near(emud, theory[1]) {
            faults.push("emud is not as asked");
        }
        self.differences += usize::from(!same);
        let verdict = match (faults.is_empty(), same) {
            (true, true) => "same".to_owned(),
            (true, false) => "netem is off".to_owned(),
            (false, _) => format!("WRONG: {}", faults.join(", ")),
        };
        let line = format!(
            "    {:<18} netem {:>9.4} +-{:<7.4} emud {:>9.4} +-{:<7.4} theory {:>9.4}{:<11} {verdict}",
            what.name(),
            netem.value,
            netem.error,
            emud.value,
            emud.error,
            theory[1].value,
            if same {
                String::new()
            } else {
                format!(" ({:.4})", theory[0].value)
            },
        );
        println!("{line}");
        if !faults.is_empty() {
            self.wrong.push(line);
        }
    }

    /// A difference that is known must be there, one that is there must be known.
    pub fn end(self, known: Option<&str>) {
        if let Some(reason) = known {
            println!("    because {reason}");
        }
        assert!(
            self.wrong.is_empty(),
            "{}\n{}",
            self.command,
            self.wrong.join("\n")
        );
        assert_eq!(
            self.differences > 0,
            known.is_some(),
            "{}: figures that differ in theory: {}",
            self.command,
            self.differences
        );
    }
}
