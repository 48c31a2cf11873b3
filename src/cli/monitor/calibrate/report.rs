// SPDX-License-Identifier: MIT OR Apache-2.0
//! The combined results of all recordings, for every output format.

use emud::text::{count, quantity};
use emud_monitor::Config;
use emud_monitor::calibrate::{
    Findings, Measure, Outcome, Suggestion, Tally, in_threshold_unit, suggest,
};
use emud_monitor::criteria::table::Kind;
use emud_monitor::criteria::{Criterion, Measured};
use emud_monitor::event::Watched;
use emud_monitor::record::{self, End};

pub struct CalibrationReport {
    pub margin: f64,
    pub recordings: Vec<Recording>,
    pub rows: Vec<Row>,
    /// Sentences about limits of the figures.
    pub warnings: Vec<String>,
}

pub struct Recording {
    pub file: String,
    pub contended: bool,
    pub findings: Findings,
}

/// One criterion.
pub struct Row {
    /// The criterion of the threshold.
    pub criterion: &'static Criterion,
    pub measured: &'static Measured,
    pub watched: Watched,
    /// The combined good recordings.
    pub good: Measure,
    /// The combined contended recordings, if any.
    pub contended: Option<Measure>,
    pub suggestion: Suggestion,
}

impl CalibrationReport {
    pub fn new(config: &Config, recordings: Vec<Recording>, margin: f64) -> Self {
        let row = |(criterion, measured)| row(criterion, measured, &recordings, margin);
        let rows: Vec<Row> = Measured::all().filter_map(row).collect();
        let mut warnings: Vec<String> = recordings.iter().flat_map(|r| doubts(r, config)).collect();
        warnings.extend(rows.iter().flat_map(remarks));
        Self {
            warnings,
            rows,
            margin,
            recordings,
        }
    }
}

impl Row {
    /// Converts a value of this criterion to the unit of its threshold: ns, bit/s, pages.
    pub fn value(&self, value: u64) -> u64 {
        in_threshold_unit(self.measured, value, self.good.window_ns)
    }

    /// The same, of a member, which may have a separate window.
    pub fn value_of(&self, tally: &Tally, value: u64) -> u64 {
        let window_ns = tally.window_ns.or(self.good.window_ns);
        in_threshold_unit(self.measured, value, window_ns)
    }

    /// Formats a value of this criterion.
    pub fn text(&self, tally: &Tally, value: u64) -> String {
        self.quantity(self.value_of(tally, value))
    }

    /// Formats a value in the unit of the threshold.
    pub fn quantity(&self, value: u64) -> String {
        match self.measured.key.kind {
            Kind::Time(..) => quantity::time(value),
            Kind::Rate => quantity::rate(value),
            _ => count(value),
        }
    }

    pub fn unit(&self) -> &'static str {
        match self.measured.key.kind {
            Kind::Time(..) => "ns",
            Kind::Rate => "bit/s",
            Kind::Count(of, _) => of,
            _ => "",
        }
    }

    pub fn title(&self) -> String {
        let title = self.measured.title;
        match self.good.window_ns {
            Some(window_ns) => format!("{title} {}", quantity::time(window_ns)),
            None => title.into(),
        }
    }
}

fn row(
    criterion: &'static Criterion,
    measured: &'static Measured,
    recordings: &[Recording],
    margin: f64,
) -> Option<Row> {
    let of = |contended: bool| -> Vec<&Measure> {
        let wanted = recordings.iter().filter(|r| r.contended == contended);
        wanted
            .filter_map(|r| r.findings.measures.get(measured.name))
            .collect()
    };
    let (good, bad) = (of(false), of(true));
    let suggestion = suggest(measured, &good, &bad, margin);
    let good = together(&good)?;
    Some(Row {
        criterion,
        measured,
        watched: good.watched,
        good,
        contended: together(&bad),
        suggestion,
    })
}

fn together(measures: &[&Measure]) -> Option<Measure> {
    let (first, rest) = measures.split_first()?;
    let mut all = (*first).clone();
    for measure in rest {
        all.merge(measure);
    }
    Some(all)
}

/// Returns the reasons for which a recording's figures are too small.
fn doubts(recording: &Recording, config: &Config) -> Vec<String> {
    let Recording { file, findings, .. } = recording;
    let mut doubts = vec![];
    if let End::Cut { stray_bytes } = findings.end {
        doubts.push(format!(
            "{file}: cut short after {} records ({stray_bytes} bytes of the next): intervals that \
             were open then are missing",
            count(findings.records)
        ));
    }
    for (kind, lost) in findings
        .lost
        .iter()
        .filter(|(k, _)| **k != record::Kind::Lost)
    {
        let lost = count(*lost);
        doubts.push(format!(
            "{file}: {lost} records of kind {} are lost: their figures are too small",
            kind.name()
        ));
    }
    if let End::Complete(trailer) = &findings.end
        && trailer.disks_unknown > 0
    {
        doubts.push(format!("{file}: some block devices were not recorded"));
    }
    if findings.late > 0 {
        let late = count(findings.late);
        doubts.push(format!("{file}: {late} events were out of order"));
    }
    if let Some(cpu) = config.cpu
        && cpu.basis != findings.header.cpu_basis
    {
        doubts.push(format!(
            "{file}: recorded with a --cpu-basis that differs from that of the thresholds"
        ));
    }
    doubts
}

/// Returns notes about a suggestion.
fn remarks(row: &Row) -> Vec<String> {
    let name = row.measured.name;
    let s = &row.suggestion;
    let (above, contended) = (s.contended_above, s.contended);
    let mut remarks = vec![];
    match s.outcome {
        Outcome::Unknown => remarks.push(format!(
            "{name}: unknown: not all recordings could watch it"
        )),
        Outcome::Overlap => remarks.push(format!(
            "{name}: good and contended overlap: no contended recording exceeds the good ones"
        )),
        Outcome::PartlyBetween => remarks.push(format!(
            "{name}: good and contended overlap: {above} of {contended} contended recordings exceed \
             the good ones"
        )),
        _ => {}
    }
    if s.largest_good_is_open && s.theta.is_some() {
        remarks.push(format!(
            "{name}: the largest good value was cut by the start or end of its recording, so it \
             may have been larger"
        ));
    }
    remarks
}
