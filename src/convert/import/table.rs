// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log as rows of cells: text with common separators, with or without names in its first line, or
//! JSON.

use serde_json::Value;

use super::netem_trace;
use crate::text::{At, Mistake, behind_blank, clipped, closest};

/// Separators of cells, the likeliest first; blanks if there is none of them.
const SEPARATORS: [u8; 4] = [b'\t', b';', b',', b'|'];
/// Number of lines at the start that determine the separator.
const SNIFFED: usize = 10;

pub(crate) struct Table {
    /// For JSON the paths to the figures, with dots between the keys.
    names: Vec<String>,
    json: bool,
    pub rows: Vec<Row>,
}

pub(crate) struct Row {
    pub at: At,
    /// Number from 1, if `at` does not imply it.
    number: Option<usize>,
    cells: Vec<String>,
}

impl Row {
    /// Returns the text of a cell; empty if the row is too short.
    pub fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }

    /// Returns the beginning of messages about the row.
    pub fn place(&self) -> String {
        self.number
            .map(|n| format!("row {n}: "))
            .unwrap_or_default()
    }
}

fn at(start: usize, len: usize) -> At {
    At {
        source: 0,
        span: start..start + len,
    }
}

impl Table {
    pub fn read(text: &str) -> Result<Self, Mistake> {
        match text.trim_start().starts_with(['[', '{']) {
            true => Self::json(text),
            false => Self::text(text),
        }
    }

    /// Returns the start of the log.
    pub fn start(&self) -> At {
        at(0, 0)
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns the index of a column given as a number from 1 or as a name.
    pub fn column(&self, name: &str) -> Result<usize, Mistake> {
        if let (false, Ok(number @ 1..)) = (self.json, name.parse::<usize>()) {
            let most = self
                .rows
                .iter()
                .map(|row| row.cells.len())
                .max()
                .unwrap_or(0);
            if number > most {
                let title = format!("there is no column {number}");
                let help = format!("the rows have {most} columns");
                return Err(Mistake::new(&self.start(), title, help));
            }
            return Ok(number - 1);
        }
        let last = |path: &str| path.rsplit('.').next().is_some_and(|key| key == name);
        let found = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let all = self.names.iter().enumerate();
            all.filter(|(_, known)| is(known)).map(|(i, _)| i).collect()
        };
        let mut columns = found(&|known| known == name);
        if columns.is_empty() && self.json {
            columns = found(&last);
        }
        if columns.len() > 1 {
            return Err(self.ambiguous(name, &columns));
        }
        columns.first().copied().ok_or_else(|| {
            let names = self.names.iter().map(String::as_str);
            let near = closest(name, names.clone())
                .map(|near| format!("did you mean `{near}`? "))
                .unwrap_or_default();
            let names = names.map(clipped).take(40).collect::<Vec<_>>().join(", ");
            let help = format!("{near}the first line has {names}; a number counts columns from 1");
            let title = format!("there is no column `{name}`");
            Mistake::new(&self.start(), title, help)
        })
    }

    fn ambiguous(&self, name: &str, columns: &[usize]) -> Mistake {
        let (title, which) = match self.json {
            true => ("keys end in", "the whole key"),
            false => ("columns are called", "the number of the column"),
        };
        let each = columns.iter().take(10).map(|i| match self.json {
            true => clipped(&self.names[*i]),
            false => (i + 1).to_string(),
        });
        let help = format!("write {which}: {}", each.collect::<Vec<_>>().join(", "));
        let title = format!("{} {title} `{name}`", columns.len());
        Mistake::new(&self.start(), title, help)
    }

    fn text(text: &str) -> Result<Self, Mistake> {
        let rows = match separator(text) {
            Some(separator) => separated(text, separator)?,
            None => blanks(text),
        };
        Ok(Self {
            // Whether these are names is decided when a column is requested by name.
            names: rows.first().map_or(Vec::new(), |row| row.cells.clone()),
            json: false,
            rows,
        })
    }

    /// Reads an array of objects or arrays at any depth, the longest one; or an object per line.
    fn json(text: &str) -> Result<Self, Mistake> {
        let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let documents = documents.collect::<Result<Vec<_>, _>>().map_err(|error| {
            let lines = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            let start: usize = lines.map(str::len).sum();
            let help = "the log begins like JSON";
            Mistake::new(&at(start, 0), format!("not valid JSON: {error}"), help)
        })?;
        let steps = match &documents[..] {
            [one] => netem_trace::rows(one)?,
            _ => None,
        };
        let items = match (&steps, &documents[..]) {
            (Some(steps), _) => steps,
            (None, [one]) => rows_of(one)?.unwrap_or(&documents[..]),
            (None, all) => all,
        };
        let mut names = Vec::new();
        let leaves: Vec<_> = items
            .iter()
            .map(|item| {
                let mut leaves = Vec::new();
                flat(item, String::new(), &mut leaves);
                leaves
            })
            .collect();
        for (path, _) in leaves.iter().flatten() {
            if !names.contains(path) && names.len() < 1000 {
                names.push(path.clone());
            }
        }
        let row = |(i, leaves): (usize, &Vec<(String, String)>)| {
            let cell = |name: &String| {
                let found = leaves.iter().find(|(path, _)| path == name);
                found.map_or(String::new(), |(_, cell)| cell.clone())
            };
            Row {
                at: at(0, 0),
                number: Some(i + 1),
                cells: names.iter().map(cell).collect(),
            }
        };
        Ok(Self {
            rows: leaves.iter().enumerate().map(row).collect(),
            names,
            json: true,
        })
    }
}

/// Returns the longest array of objects or arrays, if the document has one.
///
/// # Errors
/// There are several arrays with the same keys above them: the series of several sources.
fn rows_of(document: &Value) -> Result<Option<&[Value]>, Mistake> {
    let Some(rows) = longest(document) else {
        return Ok(None);
    };
    let mut arrays = Vec::new();
    arrays_below(document, String::new(), String::new(), &mut arrays);
    let kind = (arrays.iter())
        .find(|array| std::ptr::eq(array.items, rows))
        .map(|array| array.kind.clone());
    let alike: Vec<_> = (arrays.iter())
        .filter(|array| Some(&array.kind) == kind.as_ref())
        .collect();
    let [first, _, ..] = alike[..] else {
        return Ok(Some(rows));
    };
    let title = format!("{} arrays of rows", alike.len());
    let help = format!("select one, for example the first by jq '{}'", first.path);
    Err(Mistake::new(&at(0, 0), title, help))
}

struct Array<'a> {
    /// As jq writes it.
    path: String,
    /// The path without positions.
    kind: String,
    items: &'a [Value],
}

/// Collects the arrays of objects or arrays.
fn arrays_below<'a>(value: &'a Value, path: String, kind: String, out: &mut Vec<Array<'a>>) {
    // Most values are in rows, which have no arrays of rows: no path is made for them.
    if longest(value).is_none() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let (path, kind) = (format!("{path}.{key}"), format!("{kind}.{key}"));
                arrays_below(value, path, kind, out);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                if longest(item).is_some() {
                    arrays_below(item, format!("{path}[{n}]"), format!("{kind}[]"), out);
                }
            }
            out.push(Array { path, kind, items });
        }
        _ => {}
    }
}

/// Returns the longest array of objects or arrays; of equal ones the outer one.
fn longest(value: &Value) -> Option<&[Value]> {
    let of_rows = |items: &[Value]| items.iter().all(|item| item.is_object() || item.is_array());
    let longer = |a: &'_ [Value], b: &[Value]| a.len() > b.len();
    let (own, below): (_, Vec<_>) = match value {
        Value::Array(items) => {
            let own = (!items.is_empty() && of_rows(items)).then_some(&items[..]);
            (own, items.iter().filter_map(longest).collect())
        }
        Value::Object(map) => (None, map.values().filter_map(longest).collect()),
        _ => return None,
    };
    below.into_iter().fold(own, |best, items| match best {
        Some(best) if !longer(items, best) => Some(best),
        _ => Some(items),
    })
}

/// Collects figures with the keys that lead to them; the keys of an array are positions from 1.
fn flat(value: &Value, path: String, out: &mut Vec<(String, String)>) {
    let below = |key: &str| match path.as_str() {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    if let Some(figure) = composite(value).filter(|_| !path.is_empty()) {
        out.push((path, figure));
        return;
    }
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| flat(value, below(key), out)),
        Value::Array(items) => (1..)
            .zip(items)
            .for_each(|(n, item)| flat(item, below(&n.to_string()), out)),
        Value::String(text) => out.push((path, text.trim().to_owned())),
        other => out.push((path, other.to_string())),
    }
}

/// Returns a duration or a rate of two whole numbers as one figure.
fn composite(value: &Value) -> Option<String> {
    let map = value.as_object().filter(|map| map.len() == 2)?;
    let whole = |key: &str| map.get(key).and_then(Value::as_u64);
    let (large, small, unit) = match (whole("secs"), whole("nanos")) {
        (Some(secs), Some(nanos)) => (secs, nanos, "ns"),
        _ => (whole("gbps")?, whole("bps")?, "bps"),
    };
    let sum = u128::from(large) * 1_000_000_000 + u128::from(small);
    (small < 1_000_000_000).then(|| format!("{sum}{unit}"))
}

fn says_something(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Returns the separator with the same count in each of the first lines.
fn separator(text: &str) -> Option<u8> {
    let lines: Vec<_> = text
        .lines()
        .filter(|line| says_something(line))
        .take(SNIFFED)
        .collect();
    let count = |line: &str, c: u8| line.bytes().filter(|b| *b == c).count();
    let most = |c: &u8| lines.iter().map(|line| count(line, *c)).max().unwrap_or(0);
    let even = |c: &&u8| lines.iter().all(|line| count(line, **c) == most(c));
    let there = || SEPARATORS.iter().filter(|c| most(c) > 0);
    there()
        .find(even)
        .or_else(|| there().max_by_key(|c| most(c)))
        .copied()
}

fn separated(text: &str, separator: u8) -> Result<Vec<Row>, Mistake> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        // The text is UTF-8 and rows may differ in length: there is no other error.
        let record = record.map_err(|error| Mistake::new(&at(0, 0), error.to_string(), ""))?;
        let start = record.position().map_or(0, |p| p.byte() as usize);
        let start = behind_blank(text, start);
        let line = text
            .get(start..)
            .and_then(|rest| rest.lines().next())
            .unwrap_or("");
        rows.push(Row {
            at: at(start, line.trim_end().len()),
            number: None,
            cells: record.iter().map(str::to_owned).collect(),
        });
    }
    Ok(rows)
}

fn blanks(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| says_something(line));
    let row = |line: &str| Row {
        at: at(
            line.as_ptr() as usize - text.as_ptr() as usize,
            line.trim_end().len(),
        ),
        number: None,
        cells: line.split_whitespace().map(str::to_owned).collect(),
    };
    lines.map(row).collect()
}
