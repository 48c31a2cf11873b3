// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports logs of rates in the formats of public data sets: a table of text or JSON, one row per
//! moment.
//!
//! Longer than 400 lines: the columns of each public format, in one table of them.

use super::table::{Row, Table};
use super::writer::{Writer, string};
use super::{Header, Imported, Layout, Moment};
use crate::profile::{MAX_ROWS, Trace, TraceRow, TraceSource};
use crate::text::units::{QuantityKind, Unit};
use crate::text::{Mistake, Rate, Span, Time, UnitError, clipped, date_ns};

const NS_PER_S: f64 = 1e9;
/// How logs write a missing figure.
const MISSING: [&str; 7] = ["", "-", "nan", "na", "n/a", "null", "none"];

/// Bits in the usual meaning; `MB` counts bytes.
const RATE: QuantityKind = QuantityKind {
    name: "a rate",
    plural: "units",
    units: &[
        Unit::decimal("bit", 0),
        Unit::decimal("kbit", 3),
        Unit::decimal("Mbit", 6),
        Unit::decimal("Gbit", 9),
        Unit::decimal("bps", 0),
        Unit::decimal("kbps", 3),
        Unit::decimal("Kbps", 3),
        Unit::decimal("Mbps", 6),
        Unit::decimal("Gbps", 9),
        Unit::decimal("bit/s", 0),
        Unit::decimal("kbit/s", 3),
        Unit::decimal("Mbit/s", 6),
        Unit::decimal("Gbit/s", 9),
        Unit::decimal("kb/s", 3),
        Unit::decimal("Mb/s", 6),
        Unit::decimal("Gb/s", 9),
        Unit::times("B/s", 8.0),
        Unit::times("kB/s", 8e3),
        Unit::times("KB/s", 8e3),
        Unit::times("MB/s", 8e6),
        Unit::times("GB/s", 8e9),
        Unit::times("KiB/s", 8192.0),
        Unit::times("MiB/s", 8.0 * 1_048_576.0),
    ],
    ignore_case: false,
    examples: "bit, kbit, Mbit, Gbit, kbps, Mbps, B/s, kB/s, MB/s, or B, kB, MB: bytes in the time \
               of the row",
    usual: "Mbit",
};

/// Bytes that arrived in the time of a row.
const AMOUNT: QuantityKind = QuantityKind {
    name: "an amount",
    plural: "units",
    units: &[
        Unit::times("B", 8.0),
        Unit::times("bytes", 8.0),
        Unit::times("kB", 8e3),
        Unit::times("MB", 8e6),
        Unit::times("KiB", 8192.0),
        Unit::times("MiB", 8.0 * 1_048_576.0),
    ],
    ignore_case: false,
    examples: "B, kB, MB, KiB, MiB",
    usual: "B",
};

/// A row with its figures.
struct RatedRow<'a> {
    row: &'a Row,
    /// Time or duration of the row.
    time_ns: i128,
    /// Time of the row before, also of one without a figure.
    since_ns: i128,
    /// bit/s, or the bits since the previous row.
    bits: f64,
    delay_ns: Option<u64>,
}

/// Returns the kind that reads numbers of this unit, and whether they are amounts.
fn kind(unit: &str) -> Result<(&'static QuantityKind, bool), UnitError> {
    let one = format!("1{unit}");
    match AMOUNT.read(&one) {
        Ok(_) => Ok((&AMOUNT, true)),
        Err(_) => RATE.read(&one).map(|_| (&RATE, false)),
    }
}

/// Checks the value of `--unit`.
pub fn is_rate_unit(unit: &str) -> Result<(), UnitError> {
    kind(unit).map(|_| ())
}

pub(crate) fn profile(
    text: &str,
    origin: &str,
    layout: &Layout,
    header: Header,
    beside: Option<&str>,
) -> Result<Imported, Mistake> {
    let table = Table::read(text)?;
    let mut out = Writer::default();
    let (rows, period_ns) = rows(&table, layout, &mut out)?;
    let trace = Trace {
        source: TraceSource::Rows {
            rows: rows.into(),
            period_ns,
        },
        repeat: true,
        offset_ns: 0,
    };
    let mut profile = Writer::default();
    let rates = format!(
        "rates of {origin}: column {} in {}",
        layout.rate, layout.unit
    );
    profile.key("source", string(&format!("imported: {rates}")));
    profile.header(header.word());
    profile.note(&format!(
        "{} rows, {}; repeated.",
        trace.len(),
        Time(period_ns)
    ));
    profile.append(out);
    let beside = profile.trace(&trace, beside, &table.start())?;
    Ok(Imported {
        beside,
        ..profile.finish()
    })
}

/// Returns the rows from time 0 on, and their total duration.
fn rows(table: &Table, layout: &Layout, out: &mut Writer) -> Result<(Vec<TraceRow>, u64), Mistake> {
    let (kind, amounts) =
        kind(&layout.unit).map_err(|error| Mistake::unit(&table.start(), error))?;
    let (all, end) = figures(table, layout, (kind, amounts), out)?;
    let mut rows = Vec::new();
    let mut push = |row: &Row, at_ns: i128, bits_s: f64, delay_ns| {
        if !(0.0..=Rate::MAX.0 as f64).contains(&bits_s) {
            let title = format!("{}a rate of {bits_s:.0} bit/s", row.place());
            let help = "rates are from 0 to 1 Tbit/s: check --unit";
            return Err(Mistake::new(&row.at, title, help));
        }
        if rows.len() == MAX_ROWS {
            let title = format!("more than {MAX_ROWS} rows");
            return Err(Mistake::new(&row.at, title, "use a part of the log"));
        }
        rows.push(TraceRow {
            at_ns: u64::try_from(at_ns).unwrap_or(u64::MAX),
            rate: Some(bits_s.round() as u64),
            delay_ns,
            ..TraceRow::default()
        });
        Ok(())
    };
    let none = || {
        let title = "no row has a figure in these columns";
        let help = "columns are numbers from 1, or names in the first line";
        Mistake::new(&table.start(), title, help)
    };
    let last = all.last().ok_or_else(none)?;
    let mut end_ns = 0i128;
    match &layout.time {
        Moment::Lasts(_) | Moment::Every(_) => {
            for one in &all {
                push(one.row, end_ns, one.bits, one.delay_ns)?;
                end_ns += one.time_ns;
            }
        }
        // The amount since the previous row.
        Moment::At(_) if amounts => {
            let start_ns = all.get(1).map_or(end.last_ns, |one| one.since_ns);
            for one in &all[1..] {
                let ns = one.time_ns - one.since_ns;
                let rate = one.bits / (ns as f64 / NS_PER_S);
                push(one.row, one.since_ns - start_ns, rate, one.delay_ns)?;
            }
            end_ns = end.last_ns - start_ns;
        }
        Moment::At(_) => {
            for one in &all {
                push(
                    one.row,
                    one.time_ns - all[0].time_ns,
                    one.bits,
                    one.delay_ns,
                )?;
            }
            // The last row lasts as long as the previous one.
            let before = all.iter().rev().nth(1).map(|one| one.time_ns);
            let before_ns = before.filter(|_| last.time_ns == end.last_ns);
            let before_ns = before_ns.unwrap_or(end.before_ns);
            end_ns = end.last_ns - all[0].time_ns + (end.last_ns - before_ns);
        }
    }
    if end_ns == 0 {
        let title = "a single row of unknown duration";
        let help = "with --durations the time column has the duration of each row";
        return Err(Mistake::new(&last.row.at, title, help));
    }
    if rows.iter().all(|row| row.rate == Some(0)) {
        let title = "every rate is 0";
        return Err(Mistake::new(
            &table.start(),
            title,
            "check the column of --rate",
        ));
    }
    match u64::try_from(end_ns)
        .ok()
        .filter(|ns| format!("{}", Time(*ns)).parse::<Span>().is_ok())
    {
        Some(ns) => Ok((rows, ns)),
        None => {
            let help = "check --time-unit; with --durations times are added up";
            Err(Mistake::new(
                &last.row.at,
                "a log of more than 100 years",
                help,
            ))
        }
    }
}

/// Times of the last rows, with or without figures.
#[derive(Default)]
struct LastTimes {
    last_ns: i128,
    before_ns: i128,
}

/// Returns the rows that count, with their figures.
fn figures<'a>(
    table: &'a Table,
    layout: &Layout,
    (kind, amounts): (&QuantityKind, bool),
    out: &mut Writer,
) -> Result<(Vec<RatedRow<'a>>, LastTimes), Mistake> {
    let time = match &layout.time {
        Moment::At(column) | Moment::Lasts(column) => Some(table.column(column)?),
        Moment::Every(_) => None,
    };
    let rate = table.column(&layout.rate)?;
    let delay = layout
        .delay
        .as_ref()
        .map(|column| table.column(column))
        .transpose()?;
    let only = match &layout.only {
        Some((column, value)) => Some((table.column(column)?, value)),
        None => None,
    };
    let named = [Some(rate), time, delay].into_iter().flatten();
    let mut all: Vec<RatedRow> = Vec::new();
    let (mut missing, mut undelayed, mut same, mut empty) = (0u64, 0u64, 0u64, 0u64);
    let mut end = LastTimes::default();
    let lasting = matches!(layout.time, Moment::Lasts(_) | Moment::Every(_));
    for (i, row) in table.rows.iter().enumerate() {
        if only.is_some_and(|(column, value)| row.cell(column) != *value) {
            continue;
        }
        // A first line with names, while the columns are given as numbers.
        if i == 0 && !table.is_json() && !is_missing(row.cell(rate)) {
            let is_word = |column: usize| !is_figure(row.cell(column), kind);
            if named.clone().all(is_word) {
                continue;
            }
        }
        let time_ns = match (&layout.time, time) {
            (Moment::Every(ns), _) => i128::from(*ns),
            (_, Some(column)) => time_ns(row, column, &layout.time_unit)?,
            (_, None) => 0,
        };
        if lasting && time_ns <= 0 {
            empty += 1;
            continue;
        }
        let gone = is_missing(row.cell(rate));
        if all.is_empty() && !gone {
            (end.before_ns, end.last_ns) = (time_ns, time_ns);
        } else if time_ns > end.last_ns {
            (end.before_ns, end.last_ns) = (end.last_ns, time_ns);
        }
        if gone {
            missing += 1;
            // The previous row continues.
            if let (true, Some(last)) = (lasting, all.last_mut()) {
                last.time_ns += time_ns;
            }
            continue;
        }
        let mut figures = RatedRow {
            row,
            time_ns,
            since_ns: end.before_ns,
            bits: 0.0,
            delay_ns: all.last().and_then(|last| last.delay_ns),
        };
        figures.bits = bits(row, rate, kind, &layout.unit)?;
        if lasting && amounts {
            figures.bits /= time_ns as f64 / NS_PER_S;
        }
        if delay.is_some_and(|column| is_missing(row.cell(column))) {
            undelayed += 1;
        } else if let Some(column) = delay {
            let ns = self::time_ns(row, column, &layout.delay_unit)?;
            let ns = u64::try_from(ns).ok().filter(|ns| *ns <= Time::MAX.0);
            figures.delay_ns = Some(ns.ok_or_else(|| {
                let title = format!(
                    "{}`{}` is not a delay",
                    row.place(),
                    clipped(row.cell(column))
                );
                let help = "a delay is from 0 to one hour: check --delay-unit";
                Mistake::new(&row.at, title, help)
            })?);
        }
        match all
            .last_mut()
            .filter(|last| !lasting && (last.time_ns == time_ns || time_ns < end.last_ns))
        {
            None => all.push(figures),
            Some(last) if time_ns == end.last_ns => {
                same += 1;
                *last = figures;
            }
            Some(_) => {
                let title = format!("{}time goes back", row.place());
                let help = "if these are rows of several runs, select one with --where COLUMN=VALUE; if the \
                            column has the duration of a row, add --durations";
                return Err(Mistake::new(&row.at, title, help));
            }
        }
    }
    if delay.is_some() {
        let first = all.iter().find_map(|one| one.delay_ns);
        let none = all.iter_mut().take_while(|one| one.delay_ns.is_none());
        none.for_each(|one| one.delay_ns = first);
        if first.is_none() {
            all.clear();
        }
    }
    if missing > 0 {
        out.warning(format!(
            "{missing} rows without a figure: the previous row continues"
        ));
    }
    if undelayed > 0 {
        out.warning(format!(
            "{undelayed} rows without a delay: it is that of the previous row"
        ));
    }
    if empty > 0 {
        out.warning(format!("{empty} rows without a duration: left out"));
    }
    if same > 0 {
        out.warning(format!("{same} rows have the time of the next one"));
    }
    Ok((all, end))
}

fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell.to_ascii_lowercase().as_str())
}

/// Returns whether a cell is a number, also an infinite one, a quantity or a date.
fn is_figure(cell: &str, kind: &QuantityKind) -> bool {
    cell.replacen(',', ".", 1).parse::<f64>().is_ok()
        || kind.read(cell).is_ok()
        || cell.parse::<Span>().is_ok()
        || date_ns(cell).is_some()
}

/// Rejects `inf` and `nan`, which a program writes after a division by 0.
fn finite(row: &Row, column: usize) -> Result<(), Mistake> {
    let cell = row.cell(column);
    if cell.parse::<f64>().is_ok_and(|value| !value.is_finite()) {
        let title = format!("{}`{cell}` is not a finite number", row.place());
        let help = "remove the row, or write - for a rate or delay that is missing: the row before \
                    continues";
        return Err(Mistake::new(&row.at, title, help));
    }
    Ok(())
}

/// Reads a plain number; the decimal point may be a comma.
fn number(cell: &str) -> Option<String> {
    let text = match cell.split_once(',') {
        Some((whole, part)) if !part.contains(',') => format!("{whole}.{part}"),
        _ => cell.to_owned(),
    };
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(text)
}

/// Returns bits, or bits per second.
fn bits(row: &Row, column: usize, kind: &QuantityKind, unit: &str) -> Result<f64, Mistake> {
    finite(row, column)?;
    let cell = row.cell(column);
    let text = match number(cell) {
        Some(text) => format!("{text}{unit}"),
        None => cell.to_owned(),
    };
    kind.read(&text).map_err(|error| {
        let title = format!("{}{}", row.place(), error.problem);
        Mistake::new(
            &row.at,
            title,
            format!("check the column of --rate: {}", error.help),
        )
    })
}

/// Reads a bare number in `unit`, a quantity with a unit, or a date.
fn time_ns(row: &Row, column: usize, unit: &str) -> Result<i128, Mistake> {
    finite(row, column)?;
    let cell = row.cell(column);
    let wrong = |problem: String| {
        let help = "a time is a number (of --time-unit), has a unit (20ms), or is a \
                    date (2019-12-16 13:40:04)";
        Mistake::new(&row.at, format!("{}{problem}", row.place()), help)
    };
    if let Some(ns) = date_ns(cell) {
        return Ok(ns);
    }
    let (sign, text) = match number(cell) {
        Some(text) => match text.strip_prefix('-') {
            Some(rest) => (-1, format!("{rest}{unit}")),
            None => (1, format!("{text}{unit}")),
        },
        None => (1, cell.to_owned()),
    };
    // Exact; a float of the time since 1970 is not.
    if let (Ok(whole), "ns") = (cell.parse::<i64>(), unit) {
        return Ok(whole.into());
    }
    match text.parse() {
        Ok(Span(ns)) => Ok(sign * i128::from(ns)),
        Err(error) => Err(wrong(error.problem)),
    }
}
