// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of one host, or of several.

use std::path::Path;

use emud_monitor::log::SCHEMA;

use super::fleet::{self, Fleet};
use super::line::{Line, Start};
use super::lines::Lines;
use super::read::Part;
use super::{ResultsError, Run};

/// The log of one host, or of several.
#[derive(Debug, Clone)]
pub enum Logged {
    /// The log of one host.
    Run(Box<Run>),
    /// The merged log of several hosts.
    Fleet(Fleet),
}

impl Logged {
    /// Returns the parts of all hosts.
    pub fn runs(&self) -> &[Run] {
        match self {
            Self::Run(run) => std::slice::from_ref(run),
            Self::Fleet(fleet) => &fleet.runs,
        }
    }

    /// Reads the log of one host, or of several. It may lack its end.
    ///
    /// # Errors
    /// As of [`Run::read`], but that of several hosts is none.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        read(path)
    }
}

impl Run {
    /// Reads a log, which may lack its end.
    ///
    /// # Errors
    /// The file cannot be read, is not an experiment's log, is that of several hosts, or has a line that
    /// is none: with the number of the line and what to do.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        match Logged::read(path)? {
            Logged::Run(run) => Ok(*run),
            Logged::Fleet(fleet) => Err(ResultsError::Merged { path: fleet.path }),
        }
    }
}

fn read(path: &Path) -> Result<Logged, ResultsError> {
    let mut lines = Lines::open(path)?;
    let Some(first) = lines.next()? else {
        return Err(ResultsError::Empty {
            path: path.to_owned(),
        });
    };
    if fleet::is_merged(first) {
        lines.again();
        return fleet::read(path, lines).map(Logged::Fleet);
    }
    let mut part = Part::begun(start(path, first)?);
    let mut notes = Vec::new();
    while let Some(line) = lines.next()? {
        match Line::read(line) {
            Err(e) if lines.at_end_without_feed() => {
                notes.push(format!("the last line of the log is cut off ({e})"));
            }
            Err(e) => return Err(lines.mistake(&e)),
            Ok(line) => part.take(path, line).map_err(|e| lines.wrong(e))?,
        }
    }
    let run = part
        .finish(notes)
        .ok_or_else(|| ResultsError::NoExperiment {
            path: path.to_owned(),
        })?;
    Ok(Logged::Run(Box::new(run)))
}

fn start(path: &Path, line: &[u8]) -> Result<Start, ResultsError> {
    let not = |found: String| ResultsError::NotALog {
        path: path.to_owned(),
        found,
    };
    match Line::read(line) {
        Ok(Line::Start(start)) if start.schema == SCHEMA => Ok(start),
        Ok(Line::Start(start)) => Err(not(format!("it is of schema {:?}", start.schema))),
        Ok(_) => Err(not("it is of another type than \"start\"".to_owned())),
        Err(e) => Err(not(e.to_string())),
    }
}
