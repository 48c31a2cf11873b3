// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of addresses from CSV, and as CSV.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use super::{MAX_PAIRS, Pair, Percent, ProfileError, Rate, Time};
use crate::text::{At, Mistake, Mistakes, TextError, behind_blank, read_up_to, utf8_up_to};

/// A file of as many pairs as there may be, IPv6, every figure in full.
const FILE_BYTES: usize = 16 << 20;
const COLUMNS: [&str; 5] = ["source", "destination", "rate", "delay", "loss"];

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

    /// Returns the line that says what the columns are.
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
            let start = behind_blank(self.text, start);
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

    /// Returns the columns, if this is a line of names.
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
            let title = format!(
                "the row has {} fields, {} at most",
                record.len(),
                columns.iter().flatten().count()
            );
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
            let title = "one address is IPv4, the other one IPv6";
            self.wrong(start, title, "no packet has both");
        }
        // The table of pairs takes them for no pair.
        if [source, destination] == [Some(Ipv6Addr::UNSPECIFIED.into()); 2] {
            self.wrong(start, "both addresses are `::`", "no packet has these");
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

    /// Adds a mistake in the line that begins at `start`.
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
