// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a run about radio channels: media and their stations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::counters;

/// A radio channel that nodes share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMedium {
    /// Interface of its stations.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Distance in m up to which data is received, without bit errors and interference; null: it
    /// depends on more than the distance.
    #[schemars(range(min = 0))]
    pub range_m: Option<f64>,
    /// Distance in m up to which a transmission keeps the channel busy; null: it depends on more than
    /// the distance.
    #[schemars(range(min = 0))]
    pub sense_m: Option<f64>,
    /// Stations and their positions at the start.
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
    /// Counts of the station in the interval.
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

counters! {
    /// Counters of a station.
    pub struct StationCounted {
        /// Accesses to the channel, each with an RTS or a data frame.
        attempts,
        /// Unicast data frames on air: an aggregate counts once, and so does each repetition.
        // Logs of before have none.
        #[serde(default)]
        data_frames,
        /// The sum of their rates in kbit/s: divided by their number the mean.
        // Logs of before have none.
        #[serde(default)]
        data_kbit_s,
        /// Packets that were acknowledged, or broadcast.
        sent_packets,
        /// Bytes of these packets, from the IP header on.
        sent_bytes,
        /// Attempts without an answer.
        failed,
        /// Those of them that were repeated: their first packet was not given up.
        // Logs of before have none.
        #[serde(default)]
        retried,
        /// RTS and data frames that their receiver, in range, has not decoded because of others'
        /// transmissions or its own. Broadcasts do not count.
        collided,
        /// RTS and data frames that had bit errors at their receiver. Broadcasts do not count.
        damaged,
        /// Attempts that a more urgent access category of the station made instead: internal collisions.
        /// They count for a packet's last attempt.
        // Logs of before have none.
        #[serde(default)]
        internal_collisions,
        /// Packets whose last attempt failed, of an aggregate each packet.
        given_up,
        /// Packets that found the queue full.
        dropped_full,
        /// Packets that the queue's manager (RED) dropped.
        dropped_aqm,
        /// Packets received, without duplicates.
        received_packets,
        /// Bytes of these packets.
        received_bytes,
        /// Packets received again, because their acknowledgement was lost.
        duplicates,
        /// Time in transmission in ns, answers included.
        air_ns,
        /// Time with a carrier in ns, its own included; with `access = "none"` this alone.
        busy_ns,
    }
}

impl StationCounted {
    /// Returns the failed attempts that were followed by another one.
    pub fn retried(&self) -> u64 {
        match self.retried {
            // In a log of before one packet was given up for each of the others; now it is one or more.
            0 => self.failed.saturating_sub(self.given_up),
            retried => retried,
        }
    }

    /// Returns the mean rate of its unicast data frames in bit/s; `None`: there were none.
    pub fn data_bit_s(&self) -> Option<f64> {
        let sum_bit_s = self.data_kbit_s as f64 * 1e3;
        (self.data_frames > 0).then(|| sum_bit_s / self.data_frames as f64)
    }

    /// Returns the packets that its queue dropped, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.dropped_full.saturating_add(self.dropped_aqm)
    }
}
