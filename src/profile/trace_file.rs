// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a trace from CSV, from JSON, and the opportunities of Mahimahi's format.

use super::trace::{MAX_ROWS, TraceRow};
use crate::text::{
    At, Mistake, Nanoseconds, Percent, Rate, Span, Time, UnitError, behind_blank, clipped,
};

/// A mistake in a trace, with its position and its correction.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub place: TraceLocation,
    pub problem: String,
    pub help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceLocation {
    All,
    /// From 1, as everywhere.
    Line(usize),
    Row(usize),
}

impl Wrong {
    pub fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            place: TraceLocation::All,
            problem: problem.into(),
            help: help.into(),
        }
    }

    fn at(self, place: TraceLocation) -> Self {
        Self { place, ..self }
    }

    /// As a mistake in the file's own text.
    pub(crate) fn in_text(self, text: &str) -> Mistake {
        let line = match self.place {
            TraceLocation::Line(line) => text.lines().nth(line - 1).unwrap_or_default(),
            TraceLocation::All | TraceLocation::Row(_) => "",
        };
        let start = match line {
            "" => 0,
            line => line.as_ptr() as usize - text.as_ptr() as usize,
        };
        let at = At {
            source: 0,
            span: start..start + line.len(),
        };
        Mistake::new(&at, self.problem, self.help)
    }
}

impl From<UnitError> for Wrong {
    fn from(error: UnitError) -> Self {
        Self::new(error.problem, error.help)
    }
}

/// So that a time below zero is a number, too; only their differences count.
const LONG_AGO_NS: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Time,
    Rate,
    Delay,
    Jitter,
    Loss,
}

/// A column: what it says, and in which unit if its numbers are bare.
#[derive(Debug, Clone, Copy)]
struct Column {
    what: Holds,
    unit: Option<&'static str>,
}

const COLUMNS: &str = "columns are time (required), rate, delay, jitter, loss, with units in the \
                       cells (1.5s, 3Mbit, 2%), or bare numbers and the unit in the name: time_s, \
                       rate_Mbit, delay_ms, loss_%";

/// Returns whether a rate is 0, bare or in a unit of rates.
fn outage(text: &str) -> Result<bool, Wrong> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if number.trim().parse::<f64>() != Ok(0.0) {
        return Ok(false);
    }
    let unit = &text[number.len()..];
    if unit.is_empty() || format!("1{unit}").parse::<Rate>().is_ok() {
        return Ok(true);
    }
    let help = "an outage is a bare 0, or 0 in a unit of rates: 0Mbit";
    Err(Wrong::new(format!("`{text}` is not a rate"), help))
}

impl Column {
    fn read(name: &str) -> Result<Self, Wrong> {
        let (what, unit) = match name.split_once('_') {
            Some((what, unit)) => (what, Some(unit)),
            None => (name, None),
        };
        let what = match what {
            "time" => Holds::Time,
            "rate" => Holds::Rate,
            "delay" => Holds::Delay,
            "jitter" => Holds::Jitter,
            "loss" => Holds::Loss,
            _ => return Err(Wrong::new(format!("there is no column `{name}`"), COLUMNS)),
        };
        let known: &[&str] = match what {
            Holds::Rate => &["bit", "kbit", "Mbit", "Gbit"],
            Holds::Loss => &["%"],
            _ => &["ns", "us", "ms", "s"],
        };
        let unit = match unit {
            None => None,
            Some(unit) => match known.iter().find(|k| k.eq_ignore_ascii_case(unit)) {
                Some(unit) => Some(*unit),
                None => {
                    let help = format!("units of this column are {}", known.join(", "));
                    return Err(Wrong::new(format!("`{unit}` is not a unit here"), help));
                }
            },
        };
        Ok(Self { what, unit })
    }

    /// Reads a whole number in the usual range; most of a million rows have one, and this takes a tenth of the
    /// time. False: the general reader is needed.
    fn put_whole(self, row: &mut TraceRow, cell: &str) -> bool {
        let scale = match self.unit {
            Some("ns" | "bit") => 1,
            Some("us" | "kbit") => 1_000,
            Some("ms" | "Mbit") => 1_000_000,
            Some("s" | "Gbit") => 1_000_000_000,
            _ => return false,
        };
        let digits = cell.len() < 10 && cell.bytes().all(|b| b.is_ascii_digit());
        let Some(value) = digits.then(|| cell.parse::<u64>().ok()).flatten() else {
            return false;
        };
        let (value, usual) = (value * scale, 1_000_000_000_000);
        match self.what {
            Holds::Time => row.at_ns = LONG_AGO_NS + value,
            _ if value > usual => return false,
            Holds::Rate => row.rate = Some(value),
            Holds::Delay => row.delay_ns = Some(value),
            Holds::Jitter => row.jitter_ns = Some(value),
            Holds::Loss => return false,
        }
        true
    }

    /// Puts a cell into its row, a time as ns after [`LONG_AGO_NS`].
    fn put(self, row: &mut TraceRow, cell: &str) -> Result<(), Wrong> {
        let cell = cell.trim();
        if let (Holds::Time, Some(before)) = (self.what, cell.strip_prefix('-'))
            && !before.starts_with('-')
        {
            self.put(row, before)?;
            row.at_ns = 2 * LONG_AGO_NS - row.at_ns;
            return Ok(());
        }
        if self.put_whole(row, cell) {
            return Ok(());
        }
        let text = match self.unit {
            Some(unit) if cell.parse::<f64>().is_ok() => format!("{cell}{unit}"),
            Some(_) => {
                let help = "the unit is in the column's name, so its cells are bare numbers";
                return Err(Wrong::new(format!("`{cell}` is not a number"), help));
            }
            None => cell.to_owned(),
        };
        match self.what {
            Holds::Time => {
                let Span(ns) = text.parse()?;
                row.at_ns = LONG_AGO_NS + ns;
            }
            Holds::Rate => {
                let outage = outage(&text)?;
                row.rate = Some(if outage { 0 } else { text.parse::<Rate>()?.0 });
            }
            Holds::Delay => row.delay_ns = Some(text.parse::<Time>()?.0),
            Holds::Jitter => row.jitter_ns = Some(text.parse::<Nanoseconds>()?.0.round() as u64),
            Holds::Loss => row.loss = Some(text.parse::<Percent>()?.0),
        }
        Ok(())
    }
}

/// Rows with a header of columns.
pub(super) fn csv(text: &str) -> Result<Vec<TraceRow>, Wrong> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let line = |position: Option<&csv::Position>| {
        let start = position.map_or(0, |p| p.byte() as usize);
        let before = &text[..behind_blank(text, start)];
        TraceLocation::Line(before.matches('\n').count() + 1)
    };
    let broken = |error: csv::Error| {
        let line = error.position().map(|position| line(Some(position)));
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => {
                format!("{len} cells under {expected_len} columns")
            }
            _ => format!("not CSV: {error}"),
        };
        Wrong::new(problem, COLUMNS).at(line.unwrap_or(TraceLocation::All))
    };
    let columns = reader.headers().map_err(broken)?.iter();
    let columns: Vec<_> = columns
        .map(Column::read)
        .collect::<Result<_, _>>()
        .map_err(|wrong| wrong.at(line(None)))?;
    distinct(&columns).map_err(|wrong| wrong.at(line(None)))?;
    let mut rows = Rows::default();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(broken)? {
        let at = |wrong: Wrong| wrong.at(line(record.position()));
        let mut row = TraceRow::default();
        for (column, cell) in columns.iter().zip(&record) {
            let put = column.put(&mut row, cell);
            put.map_err(at)?;
        }
        rows.push(row).map_err(at)?;
    }
    rows.finish()
}

fn distinct(columns: &[Column]) -> Result<(), Wrong> {
    for (i, column) in columns.iter().enumerate() {
        if columns[..i].iter().any(|other| other.what == column.what) {
            return Err(Wrong::new("two columns give the same figure", COLUMNS));
        }
    }
    if columns.iter().any(|column| column.what == Holds::Time) {
        return Ok(());
    }
    Err(Wrong::new("there is no column `time`", COLUMNS))
}

/// Reads an array of objects whose keys are the columns.
pub(super) fn json(text: &str) -> Result<Vec<TraceRow>, Wrong> {
    const HELP: &str =
        "write [{\"time\": \"0s\", \"rate\": \"1Mbit\"}, ...]; the keys are those of the CSV";
    let objects: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(text)
        .map_err(|e| {
            Wrong::new(format!("not such JSON: {e}"), HELP).at(TraceLocation::Line(e.line().max(1)))
        })?;
    let mut rows = Rows::default();
    for (number, object) in (1..).zip(&objects) {
        let here = |wrong: Wrong| wrong.at(TraceLocation::Row(number));
        let mut row = TraceRow::default();
        let mut columns = Vec::new();
        for (name, value) in object {
            let cell = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(number) => number.to_string(),
                _ => return Err(here(Wrong::new(format!("`{name}` is not a figure"), HELP))),
            };
            let column = Column::read(name).map_err(here)?;
            column.put(&mut row, &cell).map_err(here)?;
            columns.push(column);
        }
        distinct(&columns).map_err(here)?;
        rows.push(row).map_err(here)?;
    }
    rows.finish()
}

/// Rows so far.
#[derive(Default)]
struct Rows {
    rows: Vec<TraceRow>,
    /// The first one's time, from which all others count.
    start_ns: u64,
}

impl Rows {
    fn push(&mut self, mut row: TraceRow) -> Result<(), Wrong> {
        let Some(last) = self.rows.last() else {
            self.start_ns = row.at_ns;
            row.at_ns = 0;
            self.rows.push(row);
            return Ok(());
        };
        let after = row.at_ns.checked_sub(self.start_ns);
        let Some(at_ns) = after.filter(|at| *at > last.at_ns) else {
            let help = "each row is later than the one before";
            return Err(Wrong::new("time does not go on", help));
        };
        row.at_ns = at_ns;
        let columns = |r: &TraceRow| {
            [
                r.rate.is_some(),
                r.delay_ns.is_some(),
                r.jitter_ns.is_some(),
                r.loss.is_some(),
            ]
        };
        if columns(&row) != columns(last) {
            let help = "every row has the columns of the first";
            return Err(Wrong::new("a figure is missing, or one too many", help));
        }
        if self.rows.len() == MAX_ROWS {
            return Err(too_many());
        }
        self.rows.push(row);
        Ok(())
    }

    fn finish(self) -> Result<Vec<TraceRow>, Wrong> {
        let Some(first) = self.rows.first() else {
            return Err(Wrong::new("a trace without rows", COLUMNS));
        };
        let none = TraceRow::default();
        if *first == none {
            return Err(Wrong::new("a trace of times alone", COLUMNS));
        }
        Ok(self.rows)
    }
}

fn too_many() -> Wrong {
    Wrong::new(
        format!("more than {MAX_ROWS} rows"),
        "take a part of it, and loop = true",
    )
}

const MAHIMAHI: &str = "a Mahimahi trace has a line for each delivery opportunity, its time in whole \
                        milliseconds, none below the one before and the last not 0";

/// Reads a file of Mahimahi: one time in ms per line.
pub(crate) fn mahimahi(text: &str) -> Result<Vec<u32>, Wrong> {
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    in_order(lines.map(|(number, line)| (number, line.trim(), 1)))
}

/// Returns the same as emud writes it: times with blanks between, with `x3` after a time for three of it.
pub(super) fn opportunities(text: &str) -> Result<Vec<u32>, Wrong> {
    in_order(text.split_whitespace().map(|word| {
        let (ms, times) = word.split_once('x').unwrap_or((word, "1"));
        match times.parse() {
            Ok(times) => (1, ms, times),
            Err(_) => (1, word, 1),
        }
    }))
}

/// Returns the times in ms, repeated as often as each line says, in order.
fn in_order<'a>(words: impl Iterator<Item = (usize, &'a str, usize)>) -> Result<Vec<u32>, Wrong> {
    let mut all = Vec::new();
    for (line, word, times) in words {
        let here = |wrong: Wrong| wrong.at(TraceLocation::Line(line));
        let Ok(ms) = word.parse::<u32>() else {
            let problem = format!("`{}` is not a time", clipped(word));
            return Err(here(Wrong::new(problem, MAHIMAHI)));
        };
        if all.last().is_some_and(|last| ms < *last) {
            let problem = format!("{ms} is before the line above");
            return Err(here(Wrong::new(problem, MAHIMAHI)));
        }
        if times > MAX_ROWS - all.len() {
            return Err(here(too_many()));
        }
        all.extend(std::iter::repeat_n(ms, times));
    }
    match all.last() {
        None => Err(Wrong::new("there is no delivery opportunity", MAHIMAHI)),
        Some(0) => Err(Wrong::new("all opportunities are at 0", MAHIMAHI)),
        Some(_) => Ok(all),
    }
}
