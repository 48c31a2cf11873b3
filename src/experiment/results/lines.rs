// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log's lines with their numbers, one in memory at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::ResultsError;

/// No line of emud's is as long. That of a run has the profiles of all links, with all rows of their traces: 21
/// links with 150,000 rows each take 72 MB.
const LONGEST: u64 = 1 << 30;

/// Lines of a file with their numbers.
pub struct Lines<'a> {
    path: &'a Path,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    again: bool,
}

impl<'a> Lines<'a> {
    pub fn open(path: &'a Path) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(|source| ResultsError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(1 << 20, file),
            line: Vec::new(),
            number: 0,
            again: false,
        })
    }

    /// Returns the next line without its line feed; `None`: the end.
    pub fn next(&mut self) -> Result<Option<&[u8]>, ResultsError> {
        if std::mem::take(&mut self.again) {
            return Ok(Some(self.last()));
        }
        self.line.clear();
        self.number += 1;
        let mut limited = (&mut self.file).take(LONGEST);
        let read = limited.read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|source| ResultsError::Io {
            path: self.path.to_owned(),
            source,
        })?;
        if bytes as u64 == LONGEST {
            return Err(self.wrong("longer than any line of a log"));
        }
        Ok((bytes > 0).then(|| self.last()))
    }

    fn last(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// Makes [`Self::next`] return the same line again.
    pub fn again(&mut self) {
        self.again = true;
    }

    /// As when emud was killed while it wrote.
    pub fn at_end_without_feed(&self) -> bool {
        self.line.last() != Some(&b'\n')
    }

    pub fn mistake(&self, e: &serde_json::Error) -> ResultsError {
        // serde_json reports line 1: it only received this line.
        let text = e.to_string();
        let problem = text.split(" at line 1 column").next().unwrap_or(&text);
        self.wrong(&format!("column {}: {problem}", e.column()))
    }

    pub fn wrong(&self, problem: &str) -> ResultsError {
        ResultsError::Line {
            path: self.path.to_owned(),
            line: self.number,
            problem: problem.to_owned(),
        }
    }
}
