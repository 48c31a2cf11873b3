// SPDX-License-Identifier: MIT OR Apache-2.0
//! The suggestions as a configuration of the monitor.

use std::fmt::Write;

use emud::monitor::settings::toml;
use emud::text::Time;
use emud_monitor::criteria::table::Value;

use super::report::{CalibrationReport, Row};

pub fn of(report: &CalibrationReport) -> String {
    let files: Vec<&str> = report.recordings.iter().map(|r| r.file.as_str()).collect();
    let mut out = format!("# emud monitor calibrate {}\n", files.join(" "));
    let mut section = "";
    for row in &report.rows {
        let (name, key) = (row.criterion.section.name, row.measured.key);
        if section != name {
            let _ = writeln!(out, "\n[{name}]");
            section = name;
            window(&mut out, row);
        }
        let value = |theta| toml(key.kind, &Value::Number(theta));
        let _ = match row.suggestion.theta {
            Some(theta) => writeln!(out, "{} = {}", key.name, value(theta)),
            // The default applies.
            None => writeln!(out, "# {}: the recordings have no values", key.name),
        };
    }
    out
}

/// Writes the window that a threshold requires.
fn window(out: &mut String, row: &Row) {
    if let Some(window_ns) = row.good.window_ns {
        let _ = writeln!(out, "window = \"{}\"", Time(window_ns));
    }
}
