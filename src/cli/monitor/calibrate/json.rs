// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor calibrate --json`: values in the units of the thresholds.

use emud::monitor::calibration::{
    Alarms, CALIBRATE_SCHEMA, Calibration, Criterion, Distribution, Recording, Values,
};
use emud_monitor::calibrate::{Measure, RELATIVE_ERROR, Tally};
use emud_monitor::record::End;

use super::report::{self, CalibrationReport, Row};
use super::table::found_by;

/// Returns what is to be printed.
pub fn of(report: &CalibrationReport) -> Calibration<'_> {
    let rows = report.rows.iter();
    Calibration {
        schema: CALIBRATE_SCHEMA,
        relative_error: RELATIVE_ERROR,
        margin: report.margin,
        recordings: report
            .recordings
            .iter()
            .map(|r| recording(report, r))
            .collect(),
        criteria: rows
            .map(|row| (row.measured.name, criterion(report, row)))
            .collect(),
        warnings: &report.warnings,
    }
}

fn recording<'a>(report: &CalibrationReport, recording: &'a report::Recording) -> Recording<'a> {
    let findings = &recording.findings;
    Recording {
        file: &recording.file,
        contended: recording.contended,
        complete: matches!(findings.end, End::Complete(_)),
        duration_ns: findings.duration_ns,
        records: findings.records,
        lost: &findings.lost,
        late: findings.late,
        header: &findings.header,
        found_by: found_by(report, recording),
    }
}

fn criterion<'a>(report: &'a CalibrationReport, row: &'a Row) -> Criterion<'a> {
    let alarms = report.recordings.iter().filter_map(|r| {
        let total = &r.findings.measures.get(row.measured.name)?.total;
        Some(Alarms {
            file: &r.file,
            alarms: total.alarms,
            first_ns: total.first_ns,
        })
    });
    Criterion {
        unit: row.unit(),
        watched: row.watched,
        window_ns: row.good.window_ns,
        good: values(row, &row.good),
        contended: row.contended.as_ref().map(|m| values(row, m)),
        alarms: alarms.collect(),
        suggestion: &row.suggestion,
    }
}

fn values(row: &Row, measure: &Measure) -> Values {
    let members = measure.members.iter();
    Values {
        all: distribution(row, &measure.total),
        members: members
            .map(|(name, t)| (name.clone(), distribution(row, t)))
            .collect(),
    }
}

fn distribution(row: &Row, tally: &Tally) -> Distribution {
    let d = &tally.distribution;
    let quantile = |q| d.quantile(q).map(|v| row.value_of(tally, v));
    Distribution {
        count: d.count(),
        open: d.open(),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p99_9: quantile(0.999),
        max: d.max().map(|v| row.value_of(tally, v)),
        max_is_open: d.max_is_open(),
        threshold: tally.threshold.map(|v| row.value_of(tally, v)),
        alarms: tally.alarms,
    }
}
