// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a run about what was done: phases, links, programs and their output, files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Phase of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Services start.
    Preparation,
    /// The measured phase.
    Measurement,
    /// Services end.
    CleanUp,
}

/// A phase begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Phase that begins.
    pub phase: PhaseName,
}

/// Change of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEvent {
    /// The link is in force.
    Attached,
    /// By `emud set`, `emud apply` or a phase of the profile; noticed with the next sample.
    Changed,
    /// Another process deleted or changed a part of the link.
    Tampered,
    /// The link is removed.
    Detached,
}

/// A link is attached, changed or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// Kind of the change.
    pub event: LinkEvent,
    /// With "tampered": the missing or changed parts; empty when the link is complete again.
    #[serde(default)]
    pub what: Vec<String>,
    /// With "changed" by a command: the complete profile; null otherwise.
    pub toml: Option<String>,
    /// With "changed" by the profile: number (from 1) and name of the phase; null otherwise.
    pub phase: Option<String>,
}

/// Origin of a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, of a program at a terminal.
    Terminal,
}

/// A program wrote a line; `mono_ns` is the time at which emud read its first byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the program.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Origin of the text.
    pub stream: OutputStream,
    /// Text without its line feed; bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// The text had no line feed: it was too long, or the program ended.
    pub partial: bool,
}

/// A command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExitLine {
    /// Time of the end in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the command.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Phase in which the command started.
    pub phase: PhaseName,
    /// Command with its arguments.
    pub command: Vec<String>,
    /// Time of the start in ns of CLOCK_MONOTONIC.
    pub started_mono_ns: u64,
    /// Exit code; null: a signal ended the command.
    pub code: Option<i32>,
    /// Number of the signal; null: the command exited.
    pub signal: Option<i32>,
    /// emud ended the command, because its time or the run was over.
    pub ended_by_emud: bool,
}

impl ExitLine {
    /// Returns whether the command failed. A command that emud ended did not fail.
    pub fn failed(&self) -> bool {
        self.code != Some(0) && !self.ended_by_emud
    }

    /// Returns the status as text, such as "exit code 7" or "signal 15, by emud".
    pub fn status(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown state".to_owned(),
        };
        match self.ended_by_emud {
            true => format!("{how}, by emud"),
            false => how,
        }
    }
}

/// A file was kept, or could not be kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtefactLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the file.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Path in the node.
    pub path: String,
    /// Path of the copy; null: the file could not be kept.
    pub stored: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// Why the file could not be kept; null: it was.
    pub error: Option<String>,
}

/// A figure that a program under test measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricLine {
    /// Time of the report in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the figure.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Value in that unit.
    pub value: f64,
    /// Unit as the program wrote it; null: it has none.
    pub unit: Option<String>,
}

/// Lines that the log could not store since the previous line of this type, because the disk was too
/// slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Number of lines of output.
    pub output_lines: u64,
    /// Number of samples.
    pub samples: u64,
}
