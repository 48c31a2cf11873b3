// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as a table.

use std::fmt::Write;

use super::check::{Check, CheckVerdict, Unit, What};
use super::outcome::{Method, Outcome};
use crate::profile::{Rate, Time};
use crate::text::columns;

/// Formats requested value, measured value, interval and verdict, one line per check.
pub fn table(o: &Outcome) -> String {
    let mut out = String::new();
    let against = if o.against { " (--against)" } else { "" };
    let method = match o.method {
        Method::OneWay => "each direction alone, one clock",
        Method::RoundTrip => "there and back by ICMP echo",
    };
    let _ = writeln!(
        out,
        "{}: {}{against}; {method}, peer {}, {} s",
        o.interface, o.profile, o.peer, o.duration_s
    );
    let head = [
        "",
        "requested",
        "measured",
        "interval",
        "notices from",
        "verdict",
    ];
    let head = head.map(str::to_owned);
    out += &columns([head].into_iter().chain(o.checks.iter().map(row)));
    let _ = writeln!(
        out,
        "interval: where the link's value lies, confidence {}; for a distance or share, the most allowed",
        percent(o.confidence)
    );
    let _ = writeln!(
        out,
        "notices from: the smallest deviation found in 99 of 100 runs; resolution {}; \
         at most {} of correct links disagree",
        time(o.resolution_ns as f64),
        percent(o.false_alarm)
    );
    for note in &o.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let verdict = match o.verdict {
        CheckVerdict::Agrees => "the link behaves as configured",
        CheckVerdict::Disagrees => "the link does NOT behave as configured",
        CheckVerdict::NotMeasured => "some checks could not be measured; the others agree",
        CheckVerdict::NotJudged => "some checks cannot be judged; the others agree",
    };
    let _ = writeln!(out, "{verdict}");
    out
}

fn row(c: &Check) -> [String; 6] {
    let what = match c.what {
        What::DelayMean => "delay mean",
        What::DelaySd => "delay sd",
        What::DelayDistribution => "delay distribution",
        What::Loss => "loss",
        What::Duplicates => "duplicates",
        What::Overtaken => "overtaken",
        What::Rate => "rate",
    };
    let verdict = match c.verdict {
        CheckVerdict::Agrees => "agrees".to_owned(),
        CheckVerdict::Disagrees => "DISAGREES".to_owned(),
        CheckVerdict::NotMeasured => {
            format!("not measured: {}", c.why.as_deref().unwrap_or("unknown"))
        }
        CheckVerdict::NotJudged => format!("not judged: {}", c.why.as_deref().unwrap_or("unknown")),
    };
    // Four digits of the measured value, all of the configured one.
    let asked = match c.unit {
        Unit::BitS => Rate(c.asked.round() as u64).to_string(),
        _ => value(c.unit, c.asked),
    };
    let measured = |v: Option<f64>| v.map_or("-".to_owned(), |v| value(c.unit, v));
    let interval = |(low, high)| format!("{} .. {}", value(c.unit, low), value(c.unit, high));
    [
        format!("{} {what}", c.direction),
        asked,
        measured(c.measured),
        c.interval.map_or("-".to_owned(), interval),
        measured(c.notices),
        verdict,
    ]
}

fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => time(value),
        Unit::BitS => rate(value),
        Unit::Share => percent(value),
    }
}

/// Up to four digits: a measurement has no more.
fn time(ns: f64) -> String {
    let unit = (ns.abs().max(1e5).log10().floor() - 3.0).max(4.0);
    let unit = 10f64.powf(unit);
    Time(((ns.max(0.0) / unit).round() * unit) as u64).to_string()
}

fn rate(bit_s: f64) -> String {
    let unit = 10f64.powf((bit_s.max(1.0).log10().floor() - 3.0).max(0.0));
    Rate(((bit_s / unit).round() * unit) as u64).to_string()
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e5).round() / 1e3)
}
