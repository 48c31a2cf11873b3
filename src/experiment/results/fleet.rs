// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of a run on several hosts: the lines of each, on the clock of one of them, and at the end
//! the verdict over all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use emud_monitor::log::{RunVerdict, SCHEMA};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::line::Line;
use super::lines::Lines;
use super::read::Part;
use super::run::cut_short;
use super::{InFleet, ResultsError, Run};

/// Last line of the log of several hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "fleet")]
pub struct FleetLine {
    /// UTC, RFC 3339.
    pub time: String,
    /// That of the line before, on the clock of the log.
    pub reference_ns: u64,
    /// Verdict over all hosts.
    pub verdict: RunVerdict,
    /// Why; each begins with the name of a host, or is about the run.
    pub reasons: Vec<String>,
    /// Exit code of emud.
    pub exit_code: u8,
    /// All hosts of the plan, also those without a log.
    pub hosts: Vec<FleetHost>,
}

/// A host in that line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetHost {
    /// Its name.
    pub host: String,
    /// Verdict on its part; null: there is none.
    pub verdict: Option<RunVerdict>,
    /// Why the host is lost; null: it has reported.
    pub lost: Option<String>,
    /// Null: its clock is that of the log, or it is lost.
    pub clock: Option<FleetClock>,
}

/// CLOCK_MONOTONIC of the log minus that of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetClock {
    /// Before the start, ns.
    pub offset_ns: i64,
    /// At the end, ns; null: it was not measured.
    pub end_offset_ns: Option<i64>,
    /// Largest error of both, ns.
    pub bound_ns: u64,
}

/// A run on several hosts.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Path of the log.
    pub path: PathBuf,
    /// By the name of the host; at least one. All times are those of the log's clock.
    pub runs: Vec<Run>,
    /// The last line, the verdict over all hosts; `None`: the log has none.
    pub end: Option<FleetLine>,
    /// Sentences on the log.
    pub notes: Vec<String>,
}

impl Fleet {
    /// Returns the verdict over all hosts; `None`: the log has none, and no host in it is invalid or contended.
    pub fn verdict(&self) -> Option<RunVerdict> {
        let of_hosts = || {
            let found = |verdict| self.runs.iter().any(|run| run.verdict() == Some(verdict));
            let known = [RunVerdict::Invalid, RunVerdict::Contended];
            known.into_iter().find(|verdict| found(*verdict))
        };
        let end = self.end.as_ref();
        end.map(|end| end.verdict).or_else(of_hosts)
    }

    /// Returns why the verdict is not clean, each reason with the host, and why the run is not complete.
    pub fn reasons(&self) -> Vec<String> {
        let of_run = |run: &Run| Some(run.of_host(&run.why_incomplete()?));
        let mut incomplete: Vec<String> = self.runs.iter().filter_map(of_run).collect();
        if let Some(end) = &self.end {
            // A program that failed is the reason for the exit code.
            if incomplete.is_empty() {
                incomplete.extend(cut_short(end.verdict, end.exit_code));
            }
            return [&end.reasons[..], &incomplete].concat();
        }
        let missing = "the log lacks its last line, the verdict over all hosts: those that were lost \
                       are not in it";
        let of_run = |run: &Run| Some(run.of_host(&run.why_not_clean()?));
        let of_runs = self.runs.iter().filter_map(of_run);
        std::iter::once(missing.to_owned())
            .chain(of_runs)
            .chain(incomplete)
            .collect()
    }

    /// Returns the part of a host; none: it has no log, or no experiment in it.
    pub fn run(&self, host: &str) -> Option<&Run> {
        let is_of = |run: &&Run| run.in_fleet.as_ref().is_some_and(|of| of.host == host);
        self.runs.iter().find(is_of)
    }

    /// Returns all hosts of the plan; without the last line those of which the log has an experiment.
    pub fn hosts(&self) -> Vec<FleetHost> {
        let of_run = |run: &Run| FleetHost {
            host: run
                .in_fleet
                .as_ref()
                .map_or(String::new(), |of| of.host.clone()),
            verdict: run.verdict(),
            lost: None,
            clock: None,
        };
        match &self.end {
            Some(end) => end.hosts.clone(),
            None => self.runs.iter().map(of_run).collect(),
        }
    }

    /// Returns the time from the first start of a measured phase to the last end.
    pub fn measured(&self) -> Option<(u64, u64)> {
        let measured = self.runs.iter().filter_map(Run::measured);
        measured.reduce(|(from, until), (a, b)| (from.min(a), until.max(b)))
    }
}

/// Returns whether this is a line of the log of several hosts.
pub fn is_merged(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Key {
        reference_ns: Option<u64>,
    }
    serde_json::from_slice(text).is_ok_and(|key: Key| key.reference_ns.is_some())
}

pub fn read(path: &Path, mut lines: Lines) -> Result<Fleet, ResultsError> {
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let (mut end, mut notes) = (None, Vec::new());
    while let Some(text) = lines.next()? {
        match serde_json::from_slice(text) {
            Err(e) if lines.at_end_without_feed() => {
                notes.push(format!("the last line of the log is cut off ({e})"));
            }
            Err(e) => return Err(lines.mistake(&e)),
            Ok(keys) => match of_host(keys) {
                Ok(Merged::Fleet(line)) => end = Some(line),
                Ok(Merged::Host(host, line)) => {
                    let part = parts.entry(host).or_default();
                    part.take(path, line).map_err(|e| lines.wrong(e))?;
                }
                Err(problem) => return Err(lines.wrong(&problem)),
            },
        }
    }
    let of_plan = end.iter().flat_map(|end: &FleetLine| &end.hosts);
    let mut hosts: BTreeSet<String> = of_plan.map(|host| host.host.clone()).collect();
    hosts.extend(parts.keys().cloned());
    let mut runs = Vec::new();
    for host in hosts {
        match parts.remove(&host).and_then(|part| part.finish(vec![])) {
            None => notes.push(format!("{host}: the log has no experiment of this host")),
            Some(run) => runs.push(Run {
                in_fleet: Some(InFleet { host, origin_ns: 0 }),
                ..run
            }),
        }
    }
    let mut fleet = Fleet {
        path: path.to_owned(),
        runs,
        end,
        notes,
    };
    let first = fleet.runs.iter().map(|run| run.first_mono_ns).min();
    let Some(first) = first else {
        let why = fleet.reasons().join("; ");
        let path = path.to_owned();
        return Err(ResultsError::NoHost { path, why });
    };
    let origin_ns = fleet.measured().map_or(first, |(from, _)| from);
    for run in &mut fleet.runs {
        if let Some(in_fleet) = &mut run.in_fleet {
            in_fleet.origin_ns = origin_ns;
        }
    }
    Ok(fleet)
}

enum Merged {
    Host(String, Line),
    Fleet(FleetLine),
}

/// Returns a line as the log of its host would have it, but with the times of the common clock.
///
/// # Errors
/// A sentence on what is wrong.
fn of_host(mut keys: Map<String, Value>) -> Result<Merged, String> {
    // Not the column: what is read is not the text of the log.
    let problem = |e: serde_json::Error| {
        let text = e.to_string();
        text.split(" at line ").next().unwrap_or(&text).to_owned()
    };
    if keys.get("type").is_some_and(|kind| kind == "fleet") {
        let line = serde_json::from_value(Value::Object(keys));
        return line.map(Merged::Fleet).map_err(problem);
    }
    let (host, at_ns) = (keys.remove("host"), keys.remove("reference_ns"));
    let Some((Value::String(host), at_ns)) = host.zip(at_ns.and_then(|ns| ns.as_u64())) else {
        return Err("without `host` or `reference_ns`, which all lines of this log have".into());
    };
    if let Some(machine) = keys.remove("machine") {
        keys.insert("host".into(), machine);
    }
    let mono_ns = keys.get("mono_ns").and_then(Value::as_u64);
    let ahead_ns = i128::from(at_ns) - i128::from(mono_ns.unwrap_or(at_ns));
    let mut line = Value::Object(keys);
    shift(&mut line, ahead_ns);
    match Line::read(line.to_string().as_bytes()).map_err(problem)? {
        Line::Start(start) if start.schema != SCHEMA => {
            Err(format!("the log of {host} is of schema {:?}", start.schema))
        }
        line => Ok(Merged::Host(host, line)),
    }
}

/// Adds to all times of CLOCK_MONOTONIC in a line.
fn shift(value: &mut Value, ahead_ns: i128) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                // `realtime_minus_mono_ns` is a difference.
                match key.ends_with("mono_ns") && !key.ends_with("minus_mono_ns") {
                    true => add(value, ahead_ns),
                    false => shift(value, ahead_ns),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shift(value, ahead_ns)),
        _ => {}
    }
}

/// Adds to a time, or to each of several.
fn add(value: &mut Value, ahead_ns: i128) {
    if let Value::Array(values) = value {
        values.iter_mut().for_each(|value| add(value, ahead_ns));
    } else if let Some(ns) = value.as_u64() {
        let ns = (i128::from(ns) + ahead_ns).clamp(0, i128::from(u64::MAX));
        *value = Value::from(ns as u64);
    }
}
