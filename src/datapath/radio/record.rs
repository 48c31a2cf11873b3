// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of a medium, and its repetition: with the arrivals and the seed, the air is the same
//! bit for bit, without a node, a TAP, or a clock.
//!
//! The first line is JSON: the medium. Then a line for each arrival, `A TIME STATION TO BYTES`, with
//! the DS field behind it unless it is 0, and `M TIME STEP` for each change of positions, and at the
//! end `E TIME DELIVERIES DIGEST`. Times are ns from the beginning; TO is a station or `*`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::frame::OLDEST_STAMP_NS;
use crate::abi::mix;
use crate::medium::air::{Air, Frame, Outcome, Plan, To};
use crate::medium::motion::Track;
use crate::medium::phy::{Geometry, Matrix};

/// Latest time in a record: about a thousand years.
const LATEST_NS: u64 = u64::MAX >> 4;

/// Most stations of a medium.
pub const MOST_STATIONS: usize = 256;

/// How much earlier a line can be than one before it: that is the age up to which a stamp is accepted, and
/// positions are handed over ahead of time.
const DISORDER_NS: u64 = OLDEST_STAMP_NS + LEAD_NS;

const SCHEMA: &str = "emud-medium/1";

/// More than the first line can have: a trace and a grid of 64 MiB each are up to four times as long there.
const LONGEST_HEAD: u64 = 1 << 29;
/// More than any other line has.
const LONGEST_LINE: u64 = 1 << 10;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    plan: Plan,
    setting: Setting,
}

/// Interval between positions.
pub(super) const STEP_NS: u64 = 100_000_000;
/// How long before their time positions are handed over, in ns.
pub(super) const LEAD_NS: u64 = 3 * STEP_NS;

/// The stations of a medium.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setting {
    /// Propagation.
    pub geometry: Geometry,
    /// Where each station is, from the beginning of the motion.
    pub tracks: Vec<Track>,
    /// Each station's mode of unicast data.
    pub modes: Vec<usize>,
    /// Whether each station receives frames for others.
    pub promiscuous: Vec<bool>,
}

impl Setting {
    /// Returns the signals between stations at a step of the motion.
    pub(super) fn matrix(&self, step: u64) -> Arc<Matrix> {
        let at = |track: &Track| track.at(step * STEP_NS);
        let positions: Vec<_> = self.tracks.iter().map(at).collect();
        Arc::new(self.geometry.matrix(&positions))
    }

    /// Returns the last step of the motion, 0 if nothing moves.
    pub(super) fn last_step(&self) -> u64 {
        let moving = self.tracks.iter().filter(|track| track.moves());
        moving
            .map(|track| track.end_ns().div_ceil(STEP_NS))
            .max()
            .unwrap_or(0)
    }

    pub(super) fn air(&self, plan: Plan) -> Air<u32> {
        let mut air = Air::new(plan, self.matrix(0), &self.modes);
        for (station, promiscuous) in self.promiscuous.iter().enumerate() {
            air.set_promiscuous(station, *promiscuous);
        }
        air
    }
}

/// All deliveries in one number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Digest {
    deliveries: u64,
    hash: u64,
}

impl Digest {
    fn add(&mut self, at_ns: u64, from: usize, to: usize) {
        self.deliveries += 1;
        let pair = (from as u64) << 32 | to as u64;
        self.hash = mix(self.hash ^ mix(at_ns).wrapping_add(pair));
    }
}

/// A record that is being written.
#[derive(Debug)]
pub(super) struct Record {
    out: BufWriter<File>,
    digest: Digest,
    line: String,
    failed: Option<io::Error>,
}

impl Record {
    pub fn begin(file: File, plan: &Plan, setting: &Setting) -> io::Result<Self> {
        let mut out = BufWriter::new(file);
        let head = Head {
            schema: SCHEMA.to_owned(),
            plan: plan.clone(),
            setting: setting.clone(),
        };
        serde_json::to_writer(&mut out, &head)?;
        writeln!(out)?;
        Ok(Self {
            out,
            digest: Digest::default(),
            line: String::new(),
            failed: None,
        })
    }

    pub fn arrival(&mut self, at_ns: u64, station: usize, frame: &Frame<u32>, ds: u8) {
        self.line.clear();
        // Writing to a String does not fail.
        let _ = match frame.to {
            To::All => write!(self.line, "A {at_ns} {station} * {}", frame.bytes),
            To::Station(to) => write!(self.line, "A {at_ns} {station} {to} {}", frame.bytes),
        };
        let _ = match ds {
            0 => writeln!(self.line),
            ds => writeln!(self.line, " {ds}"),
        };
        self.write_line();
    }

    pub fn moved(&mut self, at_ns: u64, step: u64) {
        self.line.clear();
        // Writing to a String does not fail.
        let _ = writeln!(self.line, "M {at_ns} {step}");
        self.write_line();
    }

    /// Writes a line in one piece: if the process is killed, the file ends with a whole line.
    fn write_line(&mut self) {
        if let Err(error) = self.out.write_all(self.line.as_bytes()) {
            self.failed.get_or_insert(error);
        }
    }

    pub fn delivery(&mut self, at_ns: u64, from: usize, to: usize) {
        self.digest.add(at_ns, from, to);
    }

    /// Returns the first error so far, once.
    pub fn failure(&mut self) -> Option<String> {
        self.failed.take().map(|error| error.to_string())
    }

    pub fn finish(mut self, air: &Air<u32>) -> io::Result<()> {
        let Digest { deliveries, hash } = self.digest;
        writeln!(self.out, "E {} {deliveries} {hash:016x}", air.now_ns())?;
        self.out.flush()
    }
}

/// Result of repeating a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Packets that were handed to the air.
    pub arrivals: u64,
    /// Packets that a station received.
    pub deliveries: u64,
    /// Hash of all deliveries.
    pub digest: u64,
    /// Whether deliveries and digest are those of the run; none: the record has no end, because the
    /// process was killed.
    pub same: Option<bool>,
}

/// Why a record cannot be repeated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ReplayError {
    #[error("cannot read it: {0}")]
    Read(io::Error),
    #[error("cannot pass on a delivery: {0}")]
    Delivery(#[from] io::Error),
    #[error("this is no record of a medium ({0}); `record` of a [medium] in a scenario writes one")]
    NoRecord(String),
    #[error("line {line}: `{text}` is neither an arrival nor the end")]
    Line { line: usize, text: String },
}

impl ReplayError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read(_) => 66,
            Self::Delivery(_) => 74,
            Self::NoRecord(_) | Self::Line { .. } => 65,
        }
    }
}

/// Repeats a record and calls `delivered` with time, sender, receiver and bytes of each delivery.
///
/// # Errors
/// The file cannot be read, or is no record; or `delivered` fails.
pub fn replay(
    path: &Path,
    mut delivered: impl FnMut(u64, usize, usize, u32) -> io::Result<()>,
) -> Result<Replay, ReplayError> {
    let mut file = BufReader::new(File::open(path).map_err(ReplayError::Read)?);
    let head = read_head(&mut file)?;
    let setting = head.setting;
    let stations = setting.tracks.len();
    let fits = head.schema == SCHEMA
        && head.plan.is_consistent()
        && setting
            .geometry
            .is_consistent(head.plan.timing.fastest() + 1)
        && stations <= MOST_STATIONS
        && setting.modes.len() == stations
        && setting.promiscuous.len() == stations
        && (setting.modes.iter()).all(|mode| *mode <= head.plan.timing.fastest());
    if !fits {
        return Err(ReplayError::NoRecord(match head.schema == SCHEMA {
            true => "its figures do not fit together".to_owned(),
            false => format!("its schema is {}", head.schema),
        }));
    }
    let mut air = setting.air(head.plan);
    let mut digest = Digest::default();
    let mut arrivals = 0;
    let mut end = None;
    let mut moves = VecDeque::new();
    let mut run = |air: &mut Air<u32>, moves: &mut VecDeque<(u64, u64)>, until_ns: u64| {
        loop {
            // One by one: all matrices of a long motion would not fit into memory.
            let moved = moves.front().filter(|(at_ns, _)| *at_ns <= until_ns);
            let moved = moved.copied();
            while let Some(outcome) = air.next(moved.map_or(until_ns, |(at_ns, _)| at_ns - 1)) {
                if let Outcome::Delivered {
                    at_ns,
                    from,
                    to,
                    token,
                } = outcome
                {
                    digest.add(at_ns, from, to);
                    delivered(at_ns, from, to, token)?;
                }
            }
            let Some((at_ns, step)) = moved else {
                return Ok::<(), io::Error>(());
            };
            moves.pop_front();
            air.move_at(at_ns, setting.matrix(step));
        }
    };
    let mut line = Vec::new();
    for number in 2.. {
        read_line(&mut file, &mut line)?;
        let text = match line.strip_suffix(b"\n") {
            Some(text) => text,
            None if line.len() as u64 == LONGEST_LINE => &line[..],
            // A last line without an end is cut: its figures can be others than those of the run.
            None => break,
        };
        let text = String::from_utf8_lossy(text);
        let at_ns = match parse(&text, stations) {
            Some(Entry::Arrival(at_ns, station, frame, ds)) => {
                // Arrivals are in the order of reading, within what was not decided then.
                air.arrive_with(at_ns, station, frame, ds);
                arrivals += 1;
                at_ns
            }
            Some(Entry::Move(at_ns, step)) => {
                moves.push_back((at_ns, step));
                at_ns
            }
            Some(Entry::End(at_ns, expected)) => {
                end = Some((at_ns, expected));
                continue;
            }
            None => {
                let text = text.chars().take(60).collect();
                let line = number;
                return Err(ReplayError::Line { line, text });
            }
        };
        // A record of hours would not fit into memory as a whole.
        run(&mut air, &mut moves, at_ns.saturating_sub(DISORDER_NS))?;
    }
    let end_ns = end.map_or(2 * LATEST_NS, |(at_ns, _)| at_ns);
    run(&mut air, &mut moves, end_ns)?;
    Ok(Replay {
        arrivals,
        deliveries: digest.deliveries,
        digest: digest.hash,
        same: end.map(|(_, expected)| expected == digest),
    })
}

/// Reads the first line piece by piece: what is no JSON ends it, however long it is.
fn read_head(file: &mut impl BufRead) -> Result<Head, ReplayError> {
    let mut json = serde_json::Deserializer::from_reader(file.by_ref().take(LONGEST_HEAD));
    let head = Head::deserialize(&mut json).map_err(|error| match error.is_io() {
        true => ReplayError::Read(error.into()),
        false => ReplayError::NoRecord(error.to_string()),
    })?;
    let mut rest = Vec::new();
    read_line(file, &mut rest)?;
    match rest.trim_ascii() {
        [] => Ok(head),
        _ => Err(ReplayError::NoRecord("more in line 1".to_owned())),
    }
}

/// Reads a line, or the beginning of one that is too long.
fn read_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> Result<(), ReplayError> {
    line.clear();
    let mut limited = file.take(LONGEST_LINE);
    let read = limited.read_until(b'\n', line);
    read.map_err(ReplayError::Read)?;
    Ok(())
}

enum Entry {
    Arrival(u64, usize, Frame<u32>, u8),
    Move(u64, u64),
    End(u64, Digest),
}

fn parse(line: &str, stations: usize) -> Option<Entry> {
    let fields: Vec<&str> = line.split(' ').collect();
    let station = |text: &str| text.parse().ok().filter(|station| *station < stations);
    match fields[..] {
        ["A", at, from, to, bytes, ref ds @ ..] => {
            let bytes = bytes.parse().ok().filter(|bytes| *bytes <= super::MTU)?;
            let to = match to {
                "*" => To::All,
                to => To::Station(station(to)? as u16),
            };
            let token = bytes;
            let at_ns = at.parse().ok().filter(|at| *at < LATEST_NS)?;
            Some(Entry::Arrival(
                at_ns,
                station(from)?,
                Frame { to, bytes, token },
                match ds {
                    [] => 0,
                    [ds] => ds.parse().ok()?,
                    _ => return None,
                },
            ))
        }
        ["M", at, step] => {
            let at_ns = at.parse().ok().filter(|at| (1..LATEST_NS).contains(at))?;
            let step = step
                .parse()
                .ok()
                .filter(|step| *step < LATEST_NS / STEP_NS)?;
            Some(Entry::Move(at_ns, step))
        }
        ["E", at, deliveries, hash] => {
            let digest = Digest {
                deliveries: deliveries.parse().ok()?,
                hash: u64::from_str_radix(hash, 16).ok()?,
            };
            let at_ns = at.parse().ok().filter(|at| *at < LATEST_NS)?;
            Some(Entry::End(at_ns, digest))
        }
        _ => None,
    }
}
