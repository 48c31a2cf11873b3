// SPDX-License-Identifier: MIT OR Apache-2.0
//! The suggestions as a configuration of the monitor.

use std::fmt::Write;

use emud::text::{Rate, Time};
use emud_monitor::calibrate::Criterion;

use super::report::{Report, Row};

/// Section and key of each criterion, in the order of the file.
const KEYS: [(Criterion, &str, &str); 6] = [
    (Criterion::Cpu, "cpu", "theta"),
    (Criterion::External, "network", "external"),
    (Criterion::Internal, "network", "internal"),
    (Criterion::PageIn, "memory", "page-ins"),
    (Criterion::PageOut, "memory", "page-outs"),
    (Criterion::Disk, "disk", "theta"),
];

pub fn of(report: &Report) -> String {
    let files: Vec<&str> = report.recordings.iter().map(|r| r.file.as_str()).collect();
    let mut out = format!("# emud monitor calibrate {}\n", files.join(" "));
    let mut section = "";
    for (criterion, name, key) in KEYS {
        let Some(row) = report.rows.iter().find(|r| r.criterion == criterion) else {
            continue;
        };
        if section != name {
            let _ = writeln!(out, "\n[{name}]");
            section = name;
            window(&mut out, row);
        }
        let _ = match row.suggestion.theta {
            Some(theta) => writeln!(out, "{key} = {}", value(criterion, theta)),
            // The default holds then.
            None => writeln!(out, "# {key}: the recordings say nothing of it"),
        };
    }
    out
}

/// A threshold is of no meaning without its window.
fn window(out: &mut String, row: &Row) {
    if let Some(window_ns) = row.good.window_ns {
        let _ = writeln!(out, "window = \"{}\"", Time(window_ns));
    }
}

fn value(criterion: Criterion, theta: u64) -> String {
    match criterion {
        Criterion::Cpu | Criterion::Disk => format!("\"{}\"", Time(theta)),
        Criterion::External | Criterion::Internal => format!("\"{}\"", Rate(theta)),
        Criterion::PageIn | Criterion::PageOut => theta.to_string(),
    }
}
