// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor calibrate --json`: values in the units of the thresholds.

use emud_monitor::calibrate::{Measure, Outcome, RELATIVE_ERROR, Suggestion, Tally};
use emud_monitor::record::End;
use serde_json::{Map, Value, json};

use super::report::{Recording, Report, Row};
use super::table::found_by;

pub fn of(report: &Report) -> String {
    let recordings: Vec<Value> = report
        .recordings
        .iter()
        .map(|r| recording(report, r))
        .collect();
    let rows = report.rows.iter();
    let criteria: Map<String, Value> = rows
        .map(|row| (row.measured.name.into(), criterion(report, row)))
        .collect();
    let json = json!({
        "schema": "emud-calibrate/1",
        "relative_error": RELATIVE_ERROR,
        "margin": report.margin,
        "recordings": recordings,
        "criteria": criteria,
        "warnings": report.warnings,
    });
    format!("{json:#}\n")
}

fn recording(report: &Report, recording: &Recording) -> Value {
    let Recording {
        file,
        contended,
        findings,
    } = recording;
    json!({
        "file": file,
        "contended": contended,
        "complete": matches!(findings.end, End::Complete(_)),
        "duration_ns": findings.duration_ns,
        "records": findings.records,
        "lost": findings.lost,
        "late": findings.late,
        "header": findings.header,
        "found_by": found_by(report, recording),
    })
}

fn criterion(report: &Report, row: &Row) -> Value {
    let alarms: Vec<Value> = report
        .recordings
        .iter()
        .filter_map(|r| {
            let total = &r.findings.measures.get(row.measured.name)?.total;
            Some(json!({
                "file": r.file,
                "alarms": total.alarms,
                "first_ns": total.first_ns,
            }))
        })
        .collect();
    json!({
        "unit": row.unit(),
        "watched": row.watched,
        "window_ns": row.good.window_ns,
        "good": measure(row, &row.good),
        "contended": row.contended.as_ref().map(|m| measure(row, m)),
        "alarms": alarms,
        "suggestion": suggestion(&row.suggestion),
    })
}

fn measure(row: &Row, measure: &Measure) -> Value {
    let members = measure.members.iter();
    let members: Map<String, Value> = members
        .map(|(name, t)| (name.clone(), tally(row, t)))
        .collect();
    let mut all = tally(row, &measure.total);
    all["members"] = members.into();
    all
}

fn tally(row: &Row, tally: &Tally) -> Value {
    let d = &tally.distribution;
    let quantile = |q| d.quantile(q).map(|v| row.value(v));
    json!({
        "count": d.count(),
        "open": d.open(),
        "p50": quantile(0.5),
        "p90": quantile(0.9),
        "p99": quantile(0.99),
        "p99.9": quantile(0.999),
        "max": d.max().map(|v| row.value(v)),
        "max_is_open": d.max_is_open(),
        "threshold": tally.threshold.map(|v| row.value(v)),
        "alarms": tally.alarms,
    })
}

fn suggestion(s: &Suggestion) -> Value {
    let rule = match s.outcome {
        Outcome::Margin => "margin",
        Outcome::Between => "between",
        Outcome::PartlyBetween => "partly-between",
        Outcome::Overlap => "overlap",
        Outcome::NothingSeen => "nothing-seen",
        Outcome::Unknown => "unknown",
    };
    json!({
        "theta": s.theta,
        "rule": rule,
        "largest_good": s.largest_good,
        "largest_good_is_open": s.largest_good_is_open,
        "smallest_contended": s.smallest_bad,
        "contended": s.contended,
        "contended_above": s.contended_above,
    })
}
