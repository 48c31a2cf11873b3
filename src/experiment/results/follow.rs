// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log that an experiment is still writing: what the stations of its media did last.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use emud_monitor::log::{Run, RunMedium, SCHEMA, StationSample};

use super::ResultsError;
use super::fleet::is_merged;
use super::line::Line;

/// A medium of a log.
#[derive(Debug)]
pub struct FollowedMedium {
    /// The interface of its stations.
    pub name: String,
    /// Distance up to which data is received, m; none: it depends on more than the distance.
    pub range_m: Option<f64>,
    /// The lowest and the highest coordinates of all stations so far, m.
    pub area_m: [[f64; 2]; 2],
    /// In the order of the scenario.
    pub stations: Vec<FollowedStation>,
}

impl FollowedMedium {
    /// Returns whether its stations have positions; those of a segment are all in the origin.
    pub fn has_positions(&self) -> bool {
        self.range_m.is_some() || self.area_m[0] != self.area_m[1]
    }

    fn include(&mut self, at_m: [f64; 2]) {
        let [low, high] = &mut self.area_m;
        for axis in 0..2 {
            low[axis] = low[axis].min(at_m[axis]);
            high[axis] = high[axis].max(at_m[axis]);
        }
    }
}

/// A station of a medium.
#[derive(Debug)]
pub struct FollowedStation {
    /// Name of the node.
    pub node: String,
    /// The last position, m.
    pub at_m: [f64; 2],
    /// The last neighbours.
    pub neighbours: Vec<String>,
    /// The last line about it; none so far.
    pub sample: Option<Box<StationSample>>,
}

/// A log that is read as it grows.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    file: BufReader<File>,
    /// A line, whose end may not be there yet.
    line: Vec<u8>,
    /// Lines so far.
    number: u64,
    /// Media of the experiment; none before its line.
    pub media: Vec<FollowedMedium>,
    /// Whether the experiment has ended.
    pub ended: bool,
}

impl Follow {
    /// Opens a log.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(|source| ResultsError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            line: Vec::new(),
            number: 0,
            media: Vec::new(),
            ended: false,
        })
    }

    /// Reads what was written since the last call.
    ///
    /// # Errors
    /// The file cannot be read, is no log, or its experiment has no medium.
    pub fn read(&mut self) -> Result<(), ResultsError> {
        loop {
            let read = self.file.read_until(b'\n', &mut self.line);
            read.map_err(|source| ResultsError::Io {
                path: self.path.clone(),
                source,
            })?;
            if self.line.last() != Some(&b'\n') {
                return Ok(());
            }
            self.number += 1;
            if self.number == 1 && is_merged(&self.line) {
                let path = self.path.clone();
                return Err(ResultsError::Merged { path });
            }
            let line = Line::read(&self.line);
            self.line.clear();
            self.take(line)?;
        }
    }

    fn take(&mut self, line: serde_json::Result<Line>) -> Result<(), ResultsError> {
        let path = self.path.clone();
        match line {
            Ok(Line::Start(start)) if self.number == 1 && start.schema == SCHEMA => {}
            _ if self.number == 1 => {
                let found = String::new();
                return Err(ResultsError::NotALog { path, found });
            }
            Ok(Line::Run { run, .. }) => self.begin(*run)?,
            Ok(Line::Station(sample)) => self.station(sample),
            Ok(Line::End(..)) if self.media.is_empty() => {
                return Err(ResultsError::NoExperiment { path });
            }
            Ok(Line::End(..)) => self.ended = true,
            Ok(_) => {}
            Err(error) => {
                return Err(ResultsError::Line {
                    path,
                    line: self.number,
                    problem: error.to_string(),
                });
            }
        }
        Ok(())
    }

    fn begin(&mut self, run: Run) -> Result<(), ResultsError> {
        if run.media.is_empty() {
            let path = self.path.clone();
            return Err(ResultsError::NoMedium { path });
        }
        let area = |medium: &RunMedium| {
            let at = |with: fn(f64, f64) -> f64| {
                let all = medium.stations.iter().map(|station| station.at_m);
                all.reduce(|a, b| [with(a[0], b[0]), with(a[1], b[1])])
            };
            [at(f64::min), at(f64::max)].map(Option::unwrap_or_default)
        };
        let medium = |medium: RunMedium| FollowedMedium {
            area_m: area(&medium),
            range_m: medium.range_m,
            name: medium.name,
            stations: (medium.stations.into_iter())
                .map(|station| FollowedStation {
                    node: station.node,
                    at_m: station.at_m,
                    neighbours: station.neighbours,
                    sample: None,
                })
                .collect(),
        };
        self.media = run.media.into_iter().map(medium).collect();
        Ok(())
    }

    fn station(&mut self, mut sample: Box<StationSample>) {
        let mut media = self.media.iter_mut();
        let Some(medium) = media.find(|medium| medium.name == sample.medium) else {
            return;
        };
        medium.include(sample.at_m);
        let mut stations = medium.stations.iter_mut();
        if let Some(station) = stations.find(|station| station.node == sample.node) {
            station.at_m = sample.at_m;
            if let Some(neighbours) = sample.neighbours.take() {
                station.neighbours = neighbours;
            }
            station.sample = Some(sample);
        }
    }
}
