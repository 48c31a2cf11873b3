// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contention of the measured phase, and every alarm of the run: when, of what, by whom.

use emud_monitor::log::{Span, SpanShare};

use super::{Table, at, left_out};
use crate::experiment::results::{Alarm, Run, count, resource_name, share, time};

/// Groups that are shown.
const SHARES: usize = 5;

const SPANS: &[[&str; 2]] = &[
    ["of", ""],
    ["from, s", "n"],
    ["until, s", "n"],
    ["for", "n"],
    ["by", "text"],
];

const ALARMS: &[[&str; 2]] = &[
    ["noticed, s", "n"],
    ["of", ""],
    ["measured", "n"],
    ["threshold", "n"],
    ["by", "text"],
];

pub struct Contention {
    pub spans: Table,
    pub title: String,
    pub alarms: Table,
    pub left_out: String,
}

impl Contention {
    /// Collects the contention of runs; `None`: there was none.
    pub fn of(runs: &[Run]) -> Option<Self> {
        let (spans, alarms) = (spans(runs), Table::of_hosts(ALARMS, runs, alarms));
        if spans.rows.is_empty() && alarms.rows.is_empty() {
            return None;
        }
        let more = runs.iter().map(|run| run.alarms.left_out).sum();
        Some(Self {
            spans,
            title: match alarms.rows.len() as u64 + more {
                1 => "The alarm".to_owned(),
                n => format!("All {} alarms", count(n)),
            },
            alarms,
            left_out: left_out(more, "alarms"),
        })
    }
}

/// Returns a table of the contention in the measured phase.
pub fn spans(runs: &[Run]) -> Table {
    let row = |run: &Run, span: &Span| {
        vec![
            resource_name(&span.resource, &span.what),
            at(run, span.since_mono_ns),
            at(run, span.until_mono_ns),
            time(span.duration_ns as f64),
            shares(&span.by),
        ]
    };
    Table::of_hosts(SPANS, runs, |run| {
        run.contention().iter().map(|span| row(run, span)).collect()
    })
}

fn alarms(run: &Run) -> Vec<Vec<String>> {
    let row = |alarm: &Alarm| {
        vec![
            at(run, alarm.mono_ns),
            resource_name(&alarm.resource, &alarm.what()),
            quantity(alarm, alarm.value),
            quantity(alarm, alarm.threshold),
            shares(&alarm.shares),
        ]
    };
    run.alarms.items.iter().map(row).collect()
}

fn quantity(alarm: &Alarm, value: u64) -> String {
    match alarm.unit.as_str() {
        "none" => String::new(),
        "ns" => time(value as f64),
        "number" => count(value),
        unit => format!("{} {unit}", count(value)),
    }
}

/// Returns shares, such as "93% stress-ng, 4% iperf3".
fn shares(by: &[SpanShare]) -> String {
    // More than a tenth of a percent is not known.
    let rounded = |share: f64| (share * 1000.0).round() / 1000.0;
    let shown = by.iter().take(SHARES);
    let mut parts: Vec<String> = shown
        .map(|by| format!("{} {}", share(rounded(by.share)), by.group))
        .collect();
    if by.len() > SHARES {
        parts.push(format!("{} more", by.len() - SHARES));
    }
    parts.join(", ")
}
