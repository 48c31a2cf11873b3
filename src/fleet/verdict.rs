// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict over all hosts of a run.

use std::collections::BTreeMap;

use emud_monitor::log::{ExitLine, RunVerdict};
use serde::Serialize;

use super::clock::Estimate;
use super::protocol::HostResult;
use crate::experiment::run::{ExitCode, exit_code, span};

/// How a host's part ended.
#[derive(Debug, Clone, PartialEq)]
pub enum HostEnd {
    /// It reported its result.
    Reported {
        /// Its report.
        result: Box<HostResult>,
        /// The clocks before the start; `None`: the host is the reference.
        clock: Option<Estimate>,
    },
    /// It did not report: why.
    Lost(String),
}

/// Why a run ended before its programs did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyEnd {
    /// A signal that the controller got.
    Signal(i32),
    /// `emud fleet stop`.
    Stop,
}

impl EarlyEnd {
    /// Returns the signal that the programs seem to have ended by: that of the controller, or the one which
    /// a stopped run's programs get.
    pub fn signal(self) -> i32 {
        match self {
            Self::Signal(signal) => signal,
            Self::Stop => libc::SIGTERM,
        }
    }

    fn sentence(self) -> String {
        match self {
            Self::Signal(signal) => format!("signal {signal} ended the run early"),
            Self::Stop => "`emud fleet stop` ended the run early".into(),
        }
    }
}

/// The verdict over all hosts, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetVerdict {
    /// Verdict over all hosts.
    pub verdict: RunVerdict,
    /// Each begins with the name of a host, or is about the run.
    pub reasons: Vec<String>,
    /// Exit code of emud.
    pub exit_code: u8,
}

/// Judges a run: invalid if a host is lost, failed, its clock is not known well enough, or a tunnel was not
/// what it was before the start; contended if any host was; clean only if all hosts are.
pub fn judge(
    hosts: &BTreeMap<String, HostEnd>,
    clock_bound_ns: u64,
    first: ExitCode,
    early: Option<EarlyEnd>,
) -> FleetVerdict {
    let mut reasons = Vec::from_iter(early.map(EarlyEnd::sentence));
    let (mut invalid, mut contended, mut unwatched) = (false, false, false);
    let mut exits: Vec<ExitLine> = Vec::new();
    // Then the others measure nothing at the end.
    let is_lost = |end: &HostEnd| match end {
        HostEnd::Lost(_) => true,
        HostEnd::Reported { result, .. } => result.error.is_some(),
    };
    let any_lost = hosts.values().any(is_lost);
    for (host, end) in hosts {
        let (result, clock) = match end {
            HostEnd::Reported { result, clock } => (result, clock),
            HostEnd::Lost(why) => {
                invalid = true;
                reasons.push(format!("{host}: lost: {why}"));
                continue;
            }
        };
        exits.extend(result.exits.clone());
        let mut wrong: Vec<String> = result.error.iter().cloned().collect();
        let clocks = (clock.as_ref(), result.clock.as_ref());
        if clocks.1.is_some() || !any_lost {
            wrong.extend(clock_error(clocks.0, clocks.1, clock_bound_ns));
        }
        // That of a host that is lost, or whose part failed, is gone.
        let is_there = |peer: &String| match hosts.get(peer) {
            Some(HostEnd::Reported { result, .. }) => result.judgement.is_some(),
            _ => false,
        };
        let tunnels = result.tunnels.iter().filter(|(peer, _)| is_there(peer));
        wrong.extend(tunnels.map(|(_, why)| why.clone()));
        match &result.judgement {
            Some(judgement) => {
                wrong.extend(judgement.invalid.clone());
                invalid |= judgement.verdict == RunVerdict::Invalid;
                contended |= judgement.verdict == RunVerdict::Contended;
                unwatched |= judgement.verdict == RunVerdict::Unwatched;
                let began = judgement.measured_mono_ns.map_or(0, |[began, _]| began);
                let spans = judgement.contention.iter().map(|one| span(one, began));
                reasons.extend(spans.map(|text| format!("{host}: {text}")));
            }
            None if wrong.is_empty() => wrong.push("no verdict".into()),
            None => {}
        }
        invalid |= !wrong.is_empty();
        reasons.extend(wrong.iter().map(|why| format!("{host}: {why}")));
    }
    let verdict = match (invalid || hosts.is_empty(), contended, unwatched) {
        (true, _, _) => RunVerdict::Invalid,
        (_, true, _) => RunVerdict::Contended,
        (_, _, true) => RunVerdict::Unwatched,
        _ => RunVerdict::Clean,
    };
    FleetVerdict {
        exit_code: exit_code(first, verdict, &exits, early.map(EarlyEnd::signal), true),
        verdict,
        reasons,
    }
}

/// Returns what is wrong with the clock of a host: it drifted between both measurements, or was not
/// measured again.
fn clock_error(start: Option<&Estimate>, end: Option<&Estimate>, bound_ns: u64) -> Option<String> {
    let start = start?;
    let Some(end) = end else {
        return Some("its clock could not be compared at the end".to_owned());
    };
    let drift_ns = (end.offset_ns - start.offset_ns).unsigned_abs();
    let error_ns = drift_ns + start.bound_ns.max(end.bound_ns);
    (error_ns > bound_ns).then(|| {
        format!(
            "clock error: its offset is {:.3} ms at the start and {:.3} ms at the end, each within \
             {:.3} ms; --clock-bound is {:.3} ms",
            start.offset_ns as f64 / 1e6,
            end.offset_ns as f64 / 1e6,
            start.bound_ns.max(end.bound_ns) as f64 / 1e6,
            bound_ns as f64 / 1e6
        )
    })
}

impl FleetVerdict {
    /// Returns one line for the verdict, and one for each reason.
    pub fn text(&self) -> String {
        let head = match self.verdict {
            RunVerdict::Clean => "clean: no contention was seen on any host",
            RunVerdict::Unwatched => "unwatched: contention of a host is unknown",
            RunVerdict::Contended => "contended: parts of the measured phase are not reliable",
            RunVerdict::Invalid => "invalid: the experiment failed on a host",
        };
        let reasons = self.reasons.iter().map(|why| format!("  {why}\n"));
        format!("{head}\n{}", reasons.collect::<String>())
    }
}
