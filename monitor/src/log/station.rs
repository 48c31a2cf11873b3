// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a run about radio channels: media and their stations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A radio channel that nodes share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMedium {
    /// Interface of its stations.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Distance in m up to which data is received, without bit errors and interference.
    #[schemars(range(min = 0))]
    pub range_m: f64,
    /// Distance in m up to which a transmission keeps the channel busy.
    #[schemars(range(min = 0))]
    pub sense_m: f64,
    /// Its stations.
    pub stations: Vec<RunStation>,
}

/// A station of a radio channel at the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStation {
    /// Name of the node.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Position in m: x, y.
    pub at_m: [f64; 2],
    /// It moves during the measured phase.
    pub moves: bool,
    /// Nodes that it exchanges data with: each receives the other, without bit errors and
    /// interference.
    pub neighbours: Vec<String>,
}

/// A station of a radio channel over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StationSample {
    /// End of the interval in ns of CLOCK_MONOTONIC, up to 100 ms before the line was written.
    pub mono_ns: u64,
    /// Name of the medium.
    #[schemars(length(min = 1))]
    pub medium: String,
    /// Name of the node.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Length of the interval in ns.
    pub interval_ns: u64,
    /// What the station did in the interval.
    #[serde(flatten)]
    pub counted: StationCounted,
    /// Packets in its queue at the end of the interval, the one on air included.
    pub backlog_packets: u64,
    /// Energy of the radio in the interval in J; null: the scenario has no `watts`.
    pub energy_j: Option<f64>,
    /// Position at the end of the interval in m: x, y.
    pub at_m: [f64; 2],
    /// Nodes that it exchanges data with at the end of the interval; null: those of the previous
    /// line.
    pub neighbours: Option<Vec<String>>,
}

/// Counters of a station.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StationCounted {
    /// Accesses to the channel, each with an RTS or a data frame.
    pub attempts: u64,
    /// Packets that were acknowledged, or broadcast.
    pub sent_packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub sent_bytes: u64,
    /// Attempts without an answer.
    pub failed: u64,
    /// RTS and data frames that their receiver, in range, has not decoded because of others'
    /// transmissions or its own. Broadcasts do not count.
    pub collided: u64,
    /// RTS and data frames that had bit errors at their receiver. Broadcasts do not count.
    pub damaged: u64,
    /// Packets whose last attempt failed. The other failed attempts were followed by a retry.
    pub given_up: u64,
    /// Packets that found the queue full.
    pub dropped_full: u64,
    /// Packets that the queue's manager (RED) dropped.
    pub dropped_aqm: u64,
    /// Packets received, without duplicates.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets received again, because their acknowledgement was lost.
    pub duplicates: u64,
    /// Time in transmission in ns, answers included.
    pub air_ns: u64,
    /// Time with a carrier in ns, its own included; 0 with `access = "none"`.
    pub busy_ns: u64,
}

impl StationCounted {
    /// Returns what was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the failed attempts that were followed by another one.
    pub fn retried(&self) -> u64 {
        self.failed.saturating_sub(self.given_up)
    }

    /// Returns the packets that its queue dropped, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.dropped_full.saturating_add(self.dropped_aqm)
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            attempts: of(self.attempts, other.attempts),
            sent_packets: of(self.sent_packets, other.sent_packets),
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            failed: of(self.failed, other.failed),
            collided: of(self.collided, other.collided),
            damaged: of(self.damaged, other.damaged),
            given_up: of(self.given_up, other.given_up),
            dropped_full: of(self.dropped_full, other.dropped_full),
            dropped_aqm: of(self.dropped_aqm, other.dropped_aqm),
            received_packets: of(self.received_packets, other.received_packets),
            received_bytes: of(self.received_bytes, other.received_bytes),
            duplicates: of(self.duplicates, other.duplicates),
            air_ns: of(self.air_ns, other.air_ns),
            busy_ns: of(self.busy_ns, other.busy_ns),
        }
    }
}
