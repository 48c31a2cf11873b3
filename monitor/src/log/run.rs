// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of a run: its nodes and links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::station::RunMedium;

/// The second line of an experiment: its programs and links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Command line of emud.
    pub argv: Vec<String>,
    /// Working directory of emud.
    pub cwd: String,
    /// Name of the scenario or profile.
    pub name: String,
    /// Complete text of the scenario; null: a single link.
    pub scenario: Option<String>,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Number of this run, from 1.
    #[schemars(range(min = 1))]
    pub repeat: u32,
    /// Number of requested runs.
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// Interface that existed before; null: emud made the network.
    pub in_place: Option<String>,
    /// User of the programs; null: root.
    #[serde(default)]
    pub user: Option<String>,
    /// Time between two samples in ns; null: no samples.
    pub sample_ns: Option<u64>,
    /// Nodes of the network.
    pub nodes: Vec<RunNode>,
    /// Emulated links.
    pub links: Vec<RunLink>,
    /// Radio channels.
    #[serde(default)]
    pub media: Vec<RunMedium>,
    /// Sentences on the run.
    pub notes: Vec<String>,
}

/// A node of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNode {
    /// Name in the scenario.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Addresses with prefix length.
    pub addresses: Vec<String>,
    /// Command with its arguments; null: the node runs nothing.
    pub command: Option<Vec<String>>,
    /// The command starts in the preparation and runs until all other commands have ended.
    pub service: bool,
}

/// A link when it was attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLink {
    /// Name in the scenario.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Node of the interface.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Interface of the link.
    pub interface: String,
    /// Name of the profile.
    pub profile: String,
    /// Complete profile in force; `up` is what the interface sends.
    pub toml: String,
    /// `up` and `down` of the profile were exchanged, because the interface is the other end.
    pub reversed: bool,
    /// Engine of the link.
    #[schemars(extend("enum" = ["fq", "hold", "qdisc"]))]
    pub engine: String,
    /// Why emud chose this engine.
    pub reason: String,
    /// Seed of the random decisions of this link.
    pub seed: u64,
    /// Configuration of what the interface sends; null: not emulated.
    pub up: Option<AskedFor>,
    /// Configuration of what the interface receives; null: not emulated.
    pub down: Option<AskedFor>,
    /// Other links of the profile, to which rules send packets.
    pub classes: Vec<RunClass>,
    /// Sentences on the link.
    pub notes: Vec<String>,
}

/// A named link of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunClass {
    /// Name in the profile.
    pub name: String,
    /// Configuration of what the interface sends; null: not emulated.
    pub up: Option<AskedFor>,
    /// Configuration of what the interface receives; null: not emulated.
    pub down: Option<AskedFor>,
}

/// Configuration of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedFor {
    /// Rate in bit/s; null: not limited.
    pub rate_bit_s: Option<u64>,
    /// Mean delay in ns.
    pub delay_ns: u64,
    /// Standard deviation of the delay in ns.
    pub jitter_ns: u64,
    /// Long-run share of lost packets, 0 to 1; of packets of 1500 bytes if it depends on the length.
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// The link changes with time (trace or phases); the values are those of the start.
    pub varies: bool,
}
