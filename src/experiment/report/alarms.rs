// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contention of the measured phase, and every alarm of the run: when, of what, by whom.

use std::fmt::Write;

use emud_monitor::log::SpanShare;

use super::escape::Escaped;
use super::{at, left_out};
use crate::experiment::results::{Alarm, Run, count, resource_name, share, time};

/// Of groups.
const SHARES: usize = 5;

pub fn write(out: &mut String, run: &Run) {
    let spans = run.contention();
    if spans.is_empty() && run.alarms.items.is_empty() {
        return;
    }
    out.push_str("<h2>Contention</h2>\n");
    if spans.is_empty() {
        out.push_str("<p>None in the measured phase.</p>\n");
    } else {
        out.push_str(
            "<div class=\"wide\"><table>\n<thead><tr><th>of</th><th>from, s</th><th>until, s</th>\
             <th>for</th><th>by</th></tr></thead>\n<tbody>\n",
        );
        for span in &spans {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"text\">{}</td></tr>",
                Escaped(resource_name(&span.resource, &span.what)),
                at(run, span.since_mono_ns),
                at(run, span.until_mono_ns),
                time(span.duration_ns as f64),
                Escaped(shares(&span.by)),
            );
        }
        out.push_str("</tbody></table></div>\n");
    }
    alarms(out, run);
}

fn alarms(out: &mut String, run: &Run) {
    let alarms = &run.alarms;
    if alarms.items.is_empty() {
        return;
    }
    let n = alarms.items.len() as u64 + alarms.left_out;
    let _ = write!(
        out,
        "<details><summary>{} of the whole run</summary>\n<div class=\"wide\"><table>\n\
         <thead><tr><th>noticed, s</th><th>of</th><th>measured</th><th>threshold</th><th>by</th>\
         </tr></thead>\n<tbody>\n",
        match n {
            1 => "The alarm".to_owned(),
            n => format!("All {} alarms", count(n)),
        }
    );
    for alarm in &alarms.items {
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"text\">{}</td></tr>",
            at(run, alarm.mono_ns),
            Escaped(resource_name(&alarm.resource, &alarm.what())),
            Escaped(quantity(alarm, alarm.value)),
            Escaped(quantity(alarm, alarm.threshold)),
            Escaped(shares(&alarm.shares)),
        );
    }
    out.push_str("</tbody></table></div>\n");
    left_out(out, alarms.left_out, "alarms");
    out.push_str("</details>\n");
}

fn quantity(alarm: &Alarm, value: u64) -> String {
    match alarm.unit.as_str() {
        "none" => String::new(),
        "ns" => time(value as f64),
        "number" => count(value),
        unit => format!("{} {unit}", count(value)),
    }
}

/// "93% stress-ng, 4% iperf3".
fn shares(by: &[SpanShare]) -> String {
    let shown = by.iter().take(SHARES);
    let mut parts: Vec<String> = shown
        .map(|by| format!("{} {}", share(rounded(by.share)), by.group))
        .collect();
    if by.len() > SHARES {
        parts.push(format!("{} more", by.len() - SHARES));
    }
    parts.join(", ")
}

/// To a tenth of a percent: more is not known.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
