// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of keys, and the lines between an agent and the child that carries out its part.

use std::collections::{BTreeMap, BTreeSet};

use emud_monitor::log::{ExitLine, Judgement};
use serde::{Deserialize, Serialize};

use super::FleetError;
use super::clock::Estimate;

/// A run. All agents receive it; each host's plan has a separate key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Random; names the run.
    pub id: String,
    /// Name of the scenario.
    pub name: String,
}

/// Returns the SHA-256 of a text, hexadecimal.
pub fn digest(text: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Report of a host that it has built its part, or why it has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Built {
    /// All is built.
    Ready(Ready),
    /// It could not be built: why, and the exit code.
    Failed {
        /// Name of the run, from the agent.
        run: String,
        /// The error as text.
        message: String,
        /// Exit code of that error.
        code: u8,
        /// Another host does not answer as it must: that one may be lost.
        #[serde(default)]
        peer: bool,
    },
}

impl Built {
    /// Creates the report of a part that could not be built because of this error.
    pub(super) fn failed(run: String, error: &FleetError) -> Self {
        Self::Failed {
            run,
            message: error.to_string(),
            code: error.exit_code(),
            peer: matches!(error, FleetError::Peer(_)),
        }
    }
}

/// All is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Digest of the plan that was built.
    pub digest: String,
    /// CLOCK_MONOTONIC of the host in ns when its part began.
    pub mono_ns: u64,
    /// From the reference host to this one; `None`: this is the reference.
    pub clock: Option<Estimate>,
    /// Measured one-way delay in ns to the hosts of its tunnels.
    pub underlay_ns: BTreeMap<String, u64>,
    /// How the links differ from the scenario.
    pub notes: Vec<String>,
}

/// Returns the reference's clock in ns when the first part began. The report of that may be read any
/// time later.
pub fn first_begin<'a>(built: impl Iterator<Item = &'a Ready>) -> u64 {
    let at = |ready: &Ready| {
        let offset_ns = ready.clock.map_or(0, |clock| clock.offset_ns);
        ready.mono_ns.saturating_add_signed(offset_ns)
    };
    built.map(at).min().unwrap_or(0)
}

/// Start of the measured phase on all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// CLOCK_MONOTONIC of the reference host in ns.
    pub reference_ns: u64,
}

/// A change of links that all hosts make at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Names of links in the scenario.
    pub links: BTreeSet<String>,
    /// As for `emud set`.
    pub changes: Vec<String>,
}

/// When a change takes effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// CLOCK_MONOTONIC of the reference host in ns; and seconds of the measured phase.
    At(Start, f64),
    /// Never: why, and the exit code.
    Refused(String, u8),
}

/// Report of a host about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetDone {
    /// It is written into the kernel, and waits for its time.
    Prepared,
    /// It is not possible: why, and the exit code.
    Refused(String, u8),
}

/// Result of a host's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Name of the run.
    pub run: String,
    /// `None`: the part failed.
    pub judgement: Option<Judgement>,
    /// Exits of the programs under test.
    pub exits: Vec<ExitLine>,
    /// Sentences about the run.
    pub notes: Vec<String>,
    /// Why the part failed; `None`: it did not.
    pub error: Option<String>,
    /// CLOCK_MONOTONIC of the host in ns when the clocks were measured at the end.
    pub mono_ns: u64,
    /// The clocks at the end; `None`: this is the reference, or it was not measured.
    pub clock: Option<Estimate>,
    /// Problems of the tunnels to other hosts, by host.
    pub tunnels: BTreeMap<String, String>,
    /// Number of parts of the log.
    pub logs: u32,
}

/// A line to the child. The plan precedes the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToChild {
    /// The time of the start.
    Start(Start),
    /// Programs of these nodes have ended.
    Done(BTreeSet<String>),
    /// A change that was not there before.
    Set(String, Asked),
    /// When it takes effect.
    Turn(String, Turn),
    /// The measured phase is over. True: a host is lost, so that nothing is measured with it any more.
    Over(bool),
    /// The agent has its lease. It is answered.
    Alive,
}

/// A line from the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromChild {
    /// The part is built, or could not be.
    Built(Built),
    /// Programs of these nodes have ended.
    Done(String),
    /// All programs have ended.
    Complete,
    /// Result of a change with links of this host.
    Set(String, SetDone),
    /// The part follows its agent's lines.
    Alive,
    /// What the host's part found: verdict, exits and notes.
    Result(Box<HostResult>),
}
