// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions from the files that a profile names.

use std::path::Path;
use std::sync::Arc;

use crate::profile::quantile::{Table, TableError, moments_of};
use crate::text::{Entry, Located, Mistake, Reader, Time, Value, Word, read_up_to, word};

/// A day of pings a millisecond apart, as text.
const FILE_BYTES: usize = 1 << 30;
/// With fewer, a tenth of all packets has a delay that was measured once.
const SAMPLES_MIN: usize = 10;
/// What messages call numbers that are in the profile itself; no file is called so.
const VALUES: &str = "`values`";
/// tc-netem's unit: jitter times 2^-13; its tables are of 16-bit numbers.
const NETEM_UNIT: f64 = 8192.0;
const NETEM_MAX: f64 = 32767.0;

/// A distribution that was measured, with its own mean and standard deviation.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// None: all samples are the same.
    pub table: Option<Arc<Table>>,
    pub mean_ns: f64,
    pub sd_ns: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct NsPerUnit(f64);

impl Word for NsPerUnit {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ms", Self(1e6)),
        ("us", Self(1e3)),
        ("s", Self(1e9)),
        ("ns", Self(1.0)),
    ];
}

/// Which column of a file the values are in.
#[derive(Debug, Clone, PartialEq)]
enum Column {
    /// From 1.
    Number(usize),
    /// As in the first line.
    Name(String),
}

/// The keys of `samples`.
struct SamplesKeys {
    /// What messages call the numbers.
    file: Located<String>,
    /// The numbers themselves, if they are in the profile.
    values: Option<String>,
    column: Column,
    ns_per_unit: f64,
    half: bool,
}

/// Reads a `distribution` that is a table: a file of tc-netem, or the text that emud made from one.
pub(super) fn distribution(
    reader: &Reader,
    at: &Located<Value>,
    entries: &[Entry],
) -> Result<Table, Mistake> {
    const HELP: &str = "write distribution = { file = \"my.dist\" }, a table of tc-netem; measured \
                        delays are samples = { file = \"rtt.csv\", unit = \"ms\" }";
    let [entry] = entries else {
        return Err(Mistake::new(&at.at, "a distribution is one file", HELP));
    };
    match entry.key.value.as_str() {
        "file" => {
            let file = path(&entry.value)?;
            netem(&file, &contents(reader, &file)?)
        }
        "table" => {
            let text = string(&entry.value, "table")?;
            Table::from_text(&text).map_err(|error| {
                let help = "it is what emud prints for a distribution from a file: give that file";
                Mistake::new(
                    &entry.value.at,
                    format!("this is not a table: {error}"),
                    help,
                )
            })
        }
        key => {
            let title = format!("there is no key `{key}` of a distribution");
            Err(Mistake::new(&entry.key.at, title, HELP))
        }
    }
}

/// Reads tc-netem's format: whole numbers, blanks and line ends between them, `#` lines.
fn netem(file: &Located<String>, text: &str) -> Result<Table, Mistake> {
    let mut values = Vec::new();
    for (line, text) in lines(text) {
        for word in text.split_whitespace() {
            let value = number(file, line, word)?;
            if value.abs() > NETEM_MAX {
                let help = "a table of tc-netem is of numbers from -32767 to 32767, 8192 standing \
                            for one jitter; measured delays are `samples`, not a `distribution`";
                return Err(wrong(file, line, format!("{word} is out of range"), help));
            }
            values.push(value / NETEM_UNIT);
        }
    }
    enough(file, &values)?;
    Table::new(&values).map_err(|error| not_a_table(file, error))
}

/// Delays that were measured.
pub(super) fn samples(
    reader: &Reader,
    at: &Located<Value>,
    entries: &[Entry],
) -> Result<Measured, Mistake> {
    let keys = SamplesKeys::read(at, entries)?;
    let read = match &keys.values {
        Some(text) => numbers(&keys.file, text)?,
        None => column(&keys.file, &keys.column, &contents(reader, &keys.file)?)?,
    };
    let scale = keys.ns_per_unit * if keys.half { 0.5 } else { 1.0 };
    let mut values = Vec::new();
    for (line, value) in read {
        let ns = value * scale;
        if !(0.0..=Time::MAX.0 as f64).contains(&ns) {
            let help = "a delay is from 0 to one hour: is `unit` right?";
            return Err(wrong(
                &keys.file,
                line,
                format!("{value} is not a delay"),
                help,
            ));
        }
        values.push(ns);
    }
    enough(&keys.file, &values)?;
    let (mean_ns, sd_ns) = moments_of(&values);
    let standard: Vec<f64> = values.iter().map(|v| (v - mean_ns) / sd_ns).collect();
    let table = match sd_ns > 0.0 {
        true => Some(
            Table::new(&standard)
                .map_err(|error| not_a_table(&keys.file, error))?
                .into(),
        ),
        false => None,
    };
    Ok(Measured {
        table,
        mean_ns,
        sd_ns,
    })
}

impl SamplesKeys {
    fn read(at: &Located<Value>, entries: &[Entry]) -> Result<Self, Mistake> {
        const LOOKS: &str = "samples = { file = \"rtt.csv\", column = 2, unit = \"ms\" }";
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        let required = |key: &str| {
            let help = format!("write {LOOKS}");
            find(key).ok_or_else(|| Mistake::new(&at.at, format!("samples without `{key}`"), help))
        };
        let known = ["file", "values", "column", "unit", "half"];
        if let Some(entry) = entries
            .iter()
            .find(|e| !known.contains(&e.key.value.as_str()))
        {
            let title = format!("there is no key `{}` of samples", entry.key.value);
            let help = format!("the keys are {}: {LOOKS}", known.join(", "));
            return Err(Mistake::new(&entry.key.at, title, help));
        }
        let NsPerUnit(ns_per_unit) = word(&required("unit")?.value, "unit")?;
        let (file, values) = match find("values") {
            None => (path(&required("file")?.value)?, None),
            Some(entry) => {
                if let Some(other) = find("file").or_else(|| find("column")) {
                    let title = format!("both `values` and `{}` are given", other.key.value);
                    let help = "keep one: `values` are the numbers themselves, with blanks between";
                    return Err(Mistake::new(&other.key.at, title, help));
                }
                let text = string(&entry.value, "values")?;
                let file = Located {
                    value: VALUES.to_owned(),
                    at: entry.value.at.clone(),
                };
                (file, Some(text))
            }
        };
        Ok(Self {
            file,
            values,
            column: find("column")
                .map_or(Ok(Column::Number(1)), |entry| column_key(&entry.value))?,
            ns_per_unit,
            half: find("half").map_or(Ok(false), |entry| flag(&entry.value))?,
        })
    }
}

fn column_key(value: &Located<Value>) -> Result<Column, Mistake> {
    let column = match &value.value {
        Value::Text(name) if !name.is_empty() => Some(Column::Name(name.clone())),
        Value::Number(number) => number.parse().ok().filter(|n| *n > 0).map(Column::Number),
        _ => None,
    };
    column.ok_or_else(|| {
        let help = "write its number, from 1, or its name in the first line: column = 2";
        Mistake::new(&value.at, "this is not a column", help)
    })
}

fn flag(value: &Located<Value>) -> Result<bool, Mistake> {
    match value.value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(Mistake::new(
            &value.at,
            "`half` is true or false",
            "half = true takes half of every value: one way of a round trip",
        )),
    }
}

/// Numbers with blanks between, each with its index.
fn numbers(name: &Located<String>, text: &str) -> Result<Vec<(usize, f64)>, Mistake> {
    let words = (1..).zip(text.split_whitespace());
    words
        .map(|(place, word)| Ok((place, number(name, place, word)?)))
        .collect()
}

/// Returns the numbers of one column, each with its line. A first line of text is a header.
fn column(
    file: &Located<String>,
    column: &Column,
    text: &str,
) -> Result<Vec<(usize, f64)>, Mistake> {
    let mut lines = lines(text).peekable();
    let Some(&(first, header)) = lines.peek() else {
        return Ok(Vec::new());
    };
    let separator = [',', ';', '\t'].into_iter().find(|c| header.contains(*c));
    let field = |line: &'_ str, k: usize| -> Option<String> {
        let mut fields = line.split(|c: char| Some(c) == separator);
        fields
            .nth(k)
            .map(|field| field.trim().trim_matches('"').to_owned())
    };
    let index = match column {
        Column::Number(number) => number - 1,
        Column::Name(name) => (0..)
            .map_while(|k| field(header, k))
            .position(|field| field == *name)
            .ok_or_else(|| {
                let help = "columns are between commas, semicolons or tabs";
                wrong(file, first, format!("there is no column `{name}`"), help)
            })?,
    };
    let named = matches!(column, Column::Name(_));
    let mut values = Vec::new();
    for (line, text) in lines {
        let open = |f: &str| f.trim().starts_with('"') != f.trim().ends_with('"');
        if text.split(|c: char| Some(c) == separator).any(open) {
            let title = "a separator between quotes".to_owned();
            return Err(wrong(file, line, title, "take the quoted columns out"));
        }
        let Some(word) = field(text, index) else {
            let title = format!("there is no column {}", index + 1);
            let help = "columns are between commas, semicolons or tabs";
            return Err(wrong(file, line, title, help));
        };
        match word.parse::<f64>() {
            _ if line == first && named => {}
            Err(_) if line == first => {}
            _ => values.push((line, number(file, line, &word)?)),
        }
    }
    Ok(values)
}

/// Returns the lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn number(file: &Located<String>, line: usize, word: &str) -> Result<f64, Mistake> {
    word.parse::<f64>()
        .ok()
        .filter(|v| v.is_finite())
        .ok_or_else(|| {
            let help = "mend or remove that line; lines that begin with # are skipped";
            wrong(file, line, format!("`{word}` is not a number"), help)
        })
}

fn enough(file: &Located<String>, values: &[f64]) -> Result<(), Mistake> {
    if values.len() >= SAMPLES_MIN {
        return Ok(());
    }
    let title = match values.len() {
        1 => format!("{} has only one value", file.value),
        n => format!("{} has only {n} values", file.value),
    };
    let help = format!("a distribution takes {SAMPLES_MIN} at least");
    Err(Mistake::new(&file.at, title, help))
}

fn not_a_table(file: &Located<String>, error: TableError) -> Mistake {
    let help = "for a constant delay write delay = \"50ms\"";
    Mistake::new(&file.at, format!("{}: {error}", file.value), help)
}

fn wrong(file: &Located<String>, line: usize, what: String, help: &str) -> Mistake {
    // Numbers in the profile itself are counted, not their lines.
    let unit = if file.value == VALUES {
        "number"
    } else {
        "line"
    };
    Mistake::new(
        &file.at,
        format!("{}, {unit} {line}: {what}", file.value),
        help,
    )
}

fn string(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    match &value.value {
        Value::Text(text) => Ok(text.clone()),
        _ => Err(Mistake::wrong_kind(
            value,
            key,
            format!("write text: {key} = \"...\""),
        )),
    }
}

fn path(value: &Located<Value>) -> Result<Located<String>, Mistake> {
    Ok(Located {
        value: string(value, "file")?,
        at: value.at.clone(),
    })
}

/// Returns the text of a file; a relative path starts at the profile's folder.
pub(super) fn contents(reader: &Reader, file: &Located<String>) -> Result<String, Mistake> {
    let path = reader.folder.join(Path::new(&file.value));
    let shown = path.display();
    let bytes = read_up_to(&path, FILE_BYTES).map_err(|error| {
        let help = match file.value.starts_with('/') {
            true => "give the path of a file that can be read",
            false => "a relative path starts at the profile's folder (with `emud set`, here)",
        };
        Mistake::new(&file.at, format!("cannot read {shown}: {error}"), help)
    })?;
    if bytes.len() > FILE_BYTES {
        let title = format!("{shown} has more than {FILE_BYTES} bytes");
        return Err(Mistake::new(&file.at, title, "take a part of it"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        wrong(
            file,
            line,
            "not UTF-8 text".into(),
            "save the file as UTF-8",
        )
    })?;
    Ok(unmarked(&text).to_owned())
}

/// Removes the byte order mark that some editors begin UTF-8 with.
pub(super) fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
