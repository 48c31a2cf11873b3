// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two JSON objects of a recording: the header with what was recorded and how, and the trailer
//! with the result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::config::Basis;
use crate::event::{Hook, Watched};
use crate::log::{Clock, Host};

/// Version of the format, incremented when a key is removed or changes its meaning.
pub const SCHEMA: &str = "emud-record/1";

/// The content, the machine, and the hooks of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub schema: String,
    /// Version of emud that recorded.
    pub version: String,
    pub host: Host,
    /// Timer interrupts per second of a busy CPU.
    pub hz: u32,
    pub page_bytes: u32,
    pub clock: Clock,
    /// Time at which the last program was attached, ns of CLOCK_MONOTONIC.
    pub start_mono_ns: u64,
    pub cpu_basis: Basis,
    /// Size of the ring buffer.
    pub ring_bytes: u32,
    /// Every hook that was tried, attached or not.
    pub hooks: Vec<Hook>,
    pub watched: WatchedKinds,
    /// Swap devices at the start, as in /proc/swaps.
    pub swaps: Vec<String>,
}

/// By the key of [`crate::criteria::Recorded`]: whether an absence of records means that nothing
/// happened.
pub type WatchedKinds = BTreeMap<String, Watched>;

/// The result of the recording; missing if the file is cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    pub end_mono_ns: u64,
    pub reason: StopReason,
    /// Records in the file.
    pub records: BTreeMap<Kind, u64>,
    /// Records that found the ring buffer full.
    pub lost: BTreeMap<Kind, u64>,
    /// Requests of block devices beyond the first 1024 devices.
    pub disks_unknown: u64,
    /// Requests that ended without a start: those in progress at the start of the recording.
    pub unpaired: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    Duration,
    Signal,
}
