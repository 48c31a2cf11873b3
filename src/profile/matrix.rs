// SPDX-License-Identifier: GPL-2.0-only
//! `[matrix]`: figures for pairs of addresses, from a CSV file.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use super::rules::OWN;
use super::{Link, NamedLink, Percent, Profile, ProfileError, Rate, Time, keys, links};
use crate::abi;
use crate::text::{At, Entry, Located, Mistake, Mistakes, Reader, TextError, Value};
use crate::text::{read_up_to, utf8_up_to};

pub const MAX_PAIRS: u32 = abi::EMUD_PAIRS_MAX;
/// A file of as many pairs as there may be, IPv6, every figure in full.
const FILE_BYTES: usize = 16 << 20;
const COLUMNS: [&str; 5] = ["source", "destination", "rate", "delay", "loss"];
/// The longest queue of a pair in packets, and all of those together.
const RING_MAX: u32 = 256;
const RINGS_MAX_BYTES: u64 = 64 << 20;

/// Pairs and what they are based on.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// A named link; `None`: the profile's own.
    pub link: Option<String>,
    /// How many pairs there may be, 1..=65536.
    pub capacity: u32,
    /// To begin with. They are not in the canonical text, where they would not fit.
    pub pairs: Arc<Vec<Pair>>,
}

/// A row: packets from one address to another. What is `None` is the base link's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// bit/s
    pub rate: Option<u64>,
    pub delay_ns: Option<u64>,
    /// 0.0..=1.0
    pub loss: Option<f64>,
}

#[derive(Debug, Clone)]
pub(super) struct MatrixDraft {
    at: At,
    link: Option<Located<String>>,
    capacity: Option<Located<u32>>,
    file: Option<Located<Vec<Pair>>>,
    /// Neither file nor capacity is written.
    empty: bool,
}

impl Profile {
    /// The number of the link that pairs are based on.
    pub fn matrix_link(&self, matrix: &Matrix) -> u32 {
        let named = matrix.link.as_ref();
        named.and_then(|name| self.number_of(name)).unwrap_or(0)
    }

    /// That link, by `EMUD_UP`, `EMUD_DOWN`.
    pub fn matrix_links(&self, matrix: &Matrix) -> [&Link; 2] {
        let number = self.matrix_link(matrix) as usize;
        [abi::EMUD_UP, abi::EMUD_DOWN].map(|direction| {
            let named = number.checked_sub(1).and_then(|n| self.links.get(n));
            named.map_or(self.direction(direction), |named| {
                named.direction(direction)
            })
        })
    }
}

impl Matrix {
    pub(super) fn to_toml(&self) -> String {
        let link = self.link.as_ref();
        let link = link.map_or(String::new(), |name| format!("link = \"{name}\"\n"));
        format!("\n[matrix]\n{link}capacity = {}\n", self.capacity)
    }
}

/// Reads the table `matrix`.
pub(super) fn read(reader: &mut Reader, key: &At, entries: &[Entry]) -> MatrixDraft {
    let mut draft = MatrixDraft {
        at: key.clone(),
        link: None,
        capacity: None,
        file: None,
        empty: !entries
            .iter()
            .any(|e| matches!(e.key.value.as_str(), "file" | "capacity")),
    };
    for entry in entries {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "link" => reader.put(&mut draft.link, value, |v| text(v, "link", "\"lte\"")),
            "capacity" => reader.put(&mut draft.capacity, value, |v| {
                count(v, "capacity", MAX_PAIRS)
            }),
            "file" => {
                let folder = reader.folder.clone();
                reader.put(&mut draft.file, value, |v| {
                    let name = text(v, "file", "\"pairs.csv\"")?;
                    Pair::load(&folder.join(name)).map_err(|error| in_file(v, &error))
                });
            }
            _ => reader
                .mistakes
                .push(keys::unknown(&entry.key, &keys::MATRIX)),
        }
    }
    draft
}

/// What is wrong with the file of pairs, said where it is named.
fn in_file(value: &Located<Value>, error: &ProfileError) -> Mistake {
    if let ProfileError::Text(TextError::Mistakes(found)) = error
        && let Some(first) = found.iter().next()
    {
        let (file, line) = (found.origin(first), found.line(first));
        let title = format!("{file}:{line}: {}", first.title);
        return Mistake::new(&value.at, title, first.help.clone());
    }
    let help = "a relative path starts at the folder of the profile";
    Mistake::new(&value.at, error.to_string(), help)
}

/// A whole number from 1 to `most`.
pub(super) fn count(value: &Located<Value>, key: &str, most: u32) -> Result<u32, Mistake> {
    let read = match &value.value {
        Value::Number(text) | Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    read.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
        let help = format!("write a whole number from 1 to {most}, such as {key} = 4096");
        Mistake::new(&value.at, format!("this is not a {key}"), help)
    })
}

fn text(value: &Located<Value>, key: &str, example: &str) -> Result<String, Mistake> {
    match &value.value {
        Value::Text(text) => Ok(text.clone()),
        other => {
            let title = format!("`{key}` cannot be {}", other.kind());
            let help = format!("write {key} = {example}");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

impl Reader {
    /// The finished matrix; meaningless if that adds a mistake.
    pub(super) fn finish_matrix(&mut self, draft: &MatrixDraft, named: &[NamedLink]) -> Matrix {
        let link = draft.link.as_ref().filter(|link| link.value != OWN);
        if let Some(link) = link
            && !named.iter().any(|known| known.name == link.value)
        {
            let names = named.iter().map(|n| n.name.as_str());
            self.mistakes.push(links::unknown(link, names));
        }
        let pairs = draft.file.as_ref().map(|file| file.value.clone());
        let pairs = pairs.unwrap_or_default();
        if draft.empty {
            let help = "name the pairs, file = \"pairs.csv\", or say how many `emud apply` may \
                        bring, capacity = 1000";
            let title = "a matrix without pairs";
            self.mistakes.push(Mistake::new(&draft.at, title, help));
        }
        let capacity = draft.capacity.as_ref();
        if let Some(capacity) = capacity
            && pairs.len() > capacity.value as usize
        {
            let title = format!("the file has {} pairs", pairs.len());
            let help = format!("write capacity = {}, or leave it out", pairs.len());
            self.mistakes.push(Mistake::new(&capacity.at, title, help));
        }
        Matrix {
            link: link.map(|link| link.value.clone()),
            capacity: capacity.map_or(pairs.len().max(1) as u32, |c| c.value),
            pairs: pairs.into(),
        }
    }

    /// Whether the queues of all pairs have room for what the base link says.
    pub(super) fn pairs_have_room(&mut self, draft: &MatrixDraft, profile: &Profile) {
        let Some(matrix) = &profile.matrix else {
            return;
        };
        let limits = profile.matrix_links(matrix).map(|link| link.queue.packets);
        let Some(packets) = limits.into_iter().flatten().max() else {
            return;
        };
        let ring = packets.next_power_of_two().max(abi::EMUD_RING_STEP);
        let bytes = u64::from(ring) * 8 * u64::from(matrix.capacity);
        if packets <= RING_MAX && bytes <= RINGS_MAX_BYTES {
            return;
        }
        let title = format!(
            "{} pairs on a link with a queue of {packets} packets",
            matrix.capacity
        );
        let most = (RINGS_MAX_BYTES / 8 / u64::from(matrix.capacity)).min(RING_MAX.into());
        let most = match most.checked_ilog2() {
            Some(log) if most >= abi::EMUD_RING_STEP.into() => {
                format!("at most \"{}p\", or", 1u64 << log)
            }
            _ => "not in packets but".to_owned(),
        };
        let help = format!(
            "each pair's queue remembers its packets: limit that link's queue, {most} in bytes or \
             time, such as queue = \"256KiB\" or \"200ms\""
        );
        let at = draft.link.as_ref().map_or(&draft.at, |link| &link.at);
        self.mistakes.push(Mistake::new(at, title, help));
    }
}

impl Pair {
    /// Reads a file of pairs.
    ///
    /// # Errors
    /// It cannot be read, or all that is wrong with it.
    pub fn load(path: &Path) -> Result<Vec<Self>, ProfileError> {
        let name = path.display().to_string();
        let bytes = read_up_to(path, FILE_BYTES).map_err(|error| TextError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&bytes, &name)
    }

    /// Reads pairs from CSV.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Vec<Self>, ProfileError> {
        let source = utf8_up_to(bytes, origin, FILE_BYTES)?;
        let mut rows = Rows {
            text: &source.text,
            mistakes: Vec::new(),
        };
        let pairs = rows.read();
        let mistakes = rows.mistakes;
        if mistakes.is_empty() {
            return Ok(pairs);
        }
        Err(TextError::Mistakes(Mistakes::new(vec![source], mistakes)).into())
    }

    /// As a line that [`Pair::parse`] reads.
    pub fn to_csv(&self) -> String {
        let rate = self.rate.map_or(String::new(), |r| Rate(r).to_string());
        let delay = self.delay_ns.map_or(String::new(), |d| Time(d).to_string());
        let loss = self.loss.map_or(String::new(), |l| Percent(l).to_string());
        format!(
            "{},{},{rate},{delay},{loss}\n",
            self.source, self.destination
        )
    }

    /// The line that says what the columns are.
    pub fn csv_header() -> String {
        COLUMNS.join(",") + "\n"
    }
}

/// The lines of a file and what is wrong with them.
struct Rows<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

/// Which column is where.
type Columns = [Option<usize>; 5];

impl Rows<'_> {
    fn read(&mut self) -> Vec<Pair> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(self.text.as_bytes());
        let mut columns: Columns = [Some(0), Some(1), Some(2), Some(3), Some(4)];
        let mut seen = HashMap::new();
        let mut pairs = Vec::new();
        let mut record = csv::StringRecord::new();
        let mut first = true;
        loop {
            let before = reader.position().byte() as usize;
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => return pairs,
                Err(error) => {
                    self.wrong(
                        before,
                        error.to_string(),
                        "a row is fields with commas between",
                    );
                    return pairs;
                }
            }
            let start = record.position().map_or(before, |p| p.byte() as usize);
            let start = self.behind_blank(start);
            if std::mem::take(&mut first)
                && let Some(named) = self.header(&record, start)
            {
                columns = named;
                continue;
            }
            let Some(pair) = self.pair(&record, start, &columns) else {
                continue;
            };
            if seen.insert((pair.source, pair.destination), ()).is_some() {
                let title = format!("{} to {} is given twice", pair.source, pair.destination);
                self.wrong(start, title, "keep one row for each pair");
            }
            if pairs.len() == MAX_PAIRS as usize {
                self.wrong(start, format!("more than {MAX_PAIRS} pairs"), "take fewer");
                return pairs;
            }
            pairs.push(pair);
        }
    }

    /// Behind empty lines and comments, which the reader counts as the record's.
    fn behind_blank(&self, start: usize) -> usize {
        let mut at = start;
        for line in self
            .text
            .get(start..)
            .unwrap_or_default()
            .split_inclusive('\n')
        {
            if !line.trim().is_empty() && !line.starts_with('#') {
                break;
            }
            at += line.len();
        }
        at
    }

    /// The columns, if this is a line of names.
    fn header(&mut self, record: &csv::StringRecord, start: usize) -> Option<Columns> {
        let known = |field: &str| COLUMNS.iter().position(|name| *name == field);
        if !record.iter().any(|field| known(field).is_some()) {
            return None;
        }
        let mut columns = [None; 5];
        for (at, field) in record.iter().enumerate() {
            match known(field) {
                Some(column) if columns[column].is_none() => columns[column] = Some(at),
                Some(_) => self.wrong(start, format!("two columns `{field}`"), "keep one"),
                None => {
                    let help = format!("the columns are {}", COLUMNS.join(", "));
                    self.wrong(start, format!("there is no column `{field}`"), &help);
                }
            }
        }
        if columns[0].is_none() || columns[1].is_none() {
            let help = "name the columns of both addresses: source,destination,rate,delay,loss";
            self.wrong(start, "no column `source` or `destination`", help);
        }
        Some(columns)
    }

    fn pair(
        &mut self,
        record: &csv::StringRecord,
        start: usize,
        columns: &Columns,
    ) -> Option<Pair> {
        let before = self.mistakes.len();
        let field = |column: usize| columns[column].and_then(|at| record.get(at));
        let text = |column: usize| field(column).filter(|text| !text.is_empty());
        if record.len() > columns.iter().flatten().count() {
            let title = format!("{} fields", record.len());
            let help = format!("a row is {}", COLUMNS.join(","));
            self.wrong(start, title, &help);
        }
        let source = self.address(text(0), start, COLUMNS[0]);
        let destination = self.address(text(1), start, COLUMNS[1]);
        let rate = self.value(text(2), start).map(|Rate(rate)| rate);
        let delay_ns = self.value(text(3), start).map(|Time(ns)| ns);
        let loss = self.value(text(4), start).map(|Percent(loss)| loss);
        if let (Some(source), Some(destination)) = (source, destination)
            && source.is_ipv4() != destination.is_ipv4()
        {
            let title = "an IPv4 and an IPv6 address";
            self.wrong(start, title, "no packet has both");
        }
        if self.mistakes.len() > before {
            return None;
        }
        Some(Pair {
            source: source?,
            destination: destination?,
            rate,
            delay_ns,
            loss,
        })
    }

    fn address(&mut self, text: Option<&str>, start: usize, column: &str) -> Option<IpAddr> {
        let help = "write an IPv4 or IPv6 address, such as 10.0.0.1";
        match text.map(str::parse::<IpAddr>) {
            Some(Ok(address)) => return Some(address.to_canonical()),
            Some(Err(_)) => {
                let title = format!("`{}` is not an address", text.unwrap_or_default());
                self.wrong(start, title, help);
            }
            None => self.wrong(start, format!("no {column}"), help),
        }
        None
    }

    fn value<T: std::str::FromStr<Err = super::UnitError>>(
        &mut self,
        text: Option<&str>,
        start: usize,
    ) -> Option<T> {
        match text?.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(start, error.problem, &error.help);
                None
            }
        }
    }

    /// Something in the line that begins at `start`.
    fn wrong(&mut self, start: usize, title: impl Into<String>, help: &str) {
        let start = start.min(self.text.len());
        let line = self.text.get(start..).unwrap_or_default();
        let end = start + line.find('\n').unwrap_or(line.len());
        let at = At {
            source: 0,
            span: start..end,
        };
        self.mistakes.push(Mistake::new(&at, title, help));
    }
}
