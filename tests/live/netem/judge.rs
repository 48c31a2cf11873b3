// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table, and its evaluation.

use super::measure::{Figure, What};

/// In standard errors.
const WITHIN: f64 = 3.0;

/// What is the same for netem and for emud, the first of two being netem's.
pub struct Judge {
    /// Times may be off by the time that the machine adds to some packets and not to others.
    pub spread_ms: [f64; 2],
    /// Packets sent, and simulated.
    pub measured: f64,
    pub simulated: f64,
    pub wrong: Vec<String>,
}

impl Judge {
    /// `differs`: netem differs, which its recurrence must show, too.
    pub fn figure(&mut self, what: What, got: [Figure; 2], theory: [Figure; 2], differs: bool) {
        let machine = self.spread_ms.map(|ms| match what {
            _ if what.is_time() => ms,
            What::Correlation => 0.0,
            // A pattern may be cut at its beginning and at its end.
            _ => 2.0 / self.measured,
        });
        let error = theory.map(|t| t.error_of(self.measured, self.simulated));
        let near = |a: f64, b: f64, errors: [f64; 2], machine: f64| {
            (a - b).abs() <= WITHIN * errors[0].hypot(errors[1]) + machine
        };
        let own = usize::from(!differs);
        let mut faults = vec![];
        if differs
            && near(
                theory[0].value,
                theory[1].value,
                theory.map(|t| t.error),
                0.0,
            )
        {
            faults.push("by theory they do not differ");
        }
        if !differs && !near(got[0].value, got[1].value, error, machine[0] + machine[1]) {
            faults.push("netem and emud differ");
        }
        if !near(
            got[0].value,
            theory[own].value,
            [error[own], theory[own].error],
            machine[0],
        ) {
            faults.push("netem is not as its recurrence");
        }
        if !near(
            got[1].value,
            theory[1].value,
            [error[1], theory[1].error],
            machine[1],
        ) {
            faults.push("emud is not as configured");
        }
        let verdict = match (faults.is_empty(), differs) {
            (true, true) => format!("netem is off, by theory at {:.4}", theory[0].value),
            (true, false) => "same".to_owned(),
            (false, _) => format!("WRONG: {}", faults.join(", ")),
        };
        let line = format!(
            "    {:<18} netem {:>9.4} +-{:<7.4} emud {:>9.4} +-{:<7.4} configured {:>9.4}  {verdict}",
            what.name(),
            got[0].value,
            error[own],
            got[1].value,
            error[1],
            theory[1].value,
        );
        println!("{line}");
        if !faults.is_empty() {
            self.wrong.push(line);
        }
    }

    pub fn end(self, command: &str) {
        assert!(
            self.wrong.is_empty(),
            "{command}\n{}",
            self.wrong.join("\n")
        );
    }
}
