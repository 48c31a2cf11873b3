// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as a table.

use std::fmt::Write;

use super::check::{Check, CheckVerdict, Unit, What};
use super::outcome::{Method, Outcome};
use crate::datapath::stage::fixed::decimal;
use crate::profile::{Percent, Rate, Time};
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
        Time(o.resolution_ns),
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
    let measured = |v: Option<f64>| v.map_or("-".to_owned(), |v| value(c.unit, v));
    let interval = |(low, high)| format!("{} .. {}", value(c.unit, low), value(c.unit, high));
    [
        format!("{} {what}", c.direction),
        requested(c),
        measured(c.measured),
        c.interval.map_or("-".to_owned(), interval),
        measured(c.notices),
        verdict,
    ]
}

/// Returns the configured value with all digits.
fn requested(c: &Check) -> String {
    let whole = c.asked.round() as u64;
    match (c.unit, c.what) {
        (Unit::Ns, _) => Time(whole).to_string(),
        (Unit::BitS, _) => Rate(whole).to_string(),
        // From a simulation.
        (Unit::Share, What::Overtaken) => percent(c.asked),
        // The last digits are those of the arithmetic.
        (Unit::Share, _) => Percent(decimal(c.asked, 9)).to_string(),
    }
}

fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => Time(four_digits(value)).to_string(),
        Unit::BitS => Rate(four_digits(value)).to_string(),
        Unit::Share => percent(value),
    }
}

/// A measurement has no more.
fn four_digits(value: f64) -> u64 {
    let unit = 10f64.powf((value.max(1.0).log10().floor() - 3.0).max(0.0));
    ((value / unit).round() * unit) as u64
}

/// Four digits, at least three and at most six of them behind the point.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let before = percent.max(1e-3).log10().floor();
    let decimals = (3.0 - before).clamp(3.0, 6.0) as usize;
    let text = format!("{percent:.decimals$}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_is_exact_and_what_is_measured_has_four_digits() {
        let cells = |what, unit, asked, measured| {
            let [_, requested, measured, ..] = row(&Check {
                direction: "up",
                what,
                unit,
                asked,
                measured: Some(measured),
                interval: None,
                notices: None,
                verdict: CheckVerdict::Agrees,
                why: None,
            });
            format!("{requested} {measured}")
        };
        let delay = |asked, measured| cells(What::DelayMean, Unit::Ns, asked, measured);
        assert_eq!(delay(454e3, 459_871.2), "454us 459.9us");
        assert_eq!(delay(199.375e6, 200.123_456e6), "199.375ms 200.1ms");
        assert_eq!(delay(0.0, 7.4), "0ms 7ns");
        let loss = |asked, measured| cells(What::Loss, Unit::Share, asked, measured);
        assert_eq!(loss(1.5812e-5, 2.0004e-4), "0.0015812% 0.02%");
        assert_eq!(loss(4e-6, 0.0), "0.0004% 0%");
        assert_eq!(loss(4e-6, 1.23456e-5), "0.0004% 0.001235%");
        let of_both = 1.0 - 0.995f64.powi(2);
        assert_eq!(loss(of_both, 0.01234), "0.9975% 1.234%");
        assert_eq!(loss(1.0, 1.0), "100% 100%");
        let order = cells(What::Overtaken, Unit::Share, 0.123456, 0.12);
        assert_eq!(order, "12.346% 12%");
        let rate = cells(What::Rate, Unit::BitS, 1_234_567.0, 1_234_567.0);
        assert_eq!(rate, "1.234567Mbit 1.235Mbit");
    }
}
