// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as a table.

use std::fmt::Write;

use super::judge::{Check, Unit, Verdict, What};
use super::outcome::{Method, Outcome};
use crate::profile::{Rate, Time};

const WIDTHS: [usize; 6] = [26, 13, 13, 27, 13, 0];

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
    line(&mut out, head.map(str::to_owned));
    for check in &o.checks {
        line(&mut out, row(check));
    }
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
        Verdict::Agrees => "the link behaves as configured",
        Verdict::Disagrees => "the link does NOT behave as configured",
        Verdict::NotMeasured => "some checks could not be measured; the others agree",
        Verdict::NotJudged => "some checks cannot be judged; the others agree",
    };
    let _ = writeln!(out, "{verdict}");
    out
}

fn line(out: &mut String, cells: [String; 6]) {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let _ = write!(text, "{cell:width$} ");
    }
    let _ = writeln!(out, "{}", text.trim_end());
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
        Verdict::Agrees => "agrees".to_owned(),
        Verdict::Disagrees => "DISAGREES".to_owned(),
        Verdict::NotMeasured => {
            format!("not measured: {}", c.why.as_deref().unwrap_or("unknown"))
        }
        Verdict::NotJudged => format!("not judged: {}", c.why.as_deref().unwrap_or("unknown")),
    };
    let value = |v: f64| match c.unit {
        Unit::Ns => time(v),
        Unit::BitS => Rate(v.round() as u64).to_string(),
        Unit::Share => percent(v),
    };
    let none = || "-".to_owned();
    let interval = |(low, high): (f64, f64)| match c.unit {
        Unit::BitS => format!("{} .. {}", rate(low), rate(high)),
        _ => format!("{} .. {}", value(low), value(high)),
    };
    [
        format!("{} {what}", c.direction),
        value(c.asked),
        c.measured.map_or_else(none, |v| match c.unit {
            Unit::BitS => rate(v),
            _ => value(v),
        }),
        c.interval.map_or_else(none, interval),
        c.notices.map_or_else(none, |v| match c.unit {
            Unit::BitS => rate(v),
            _ => value(v),
        }),
        verdict,
    ]
}

/// Three digits, the precision of a measurement.
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
