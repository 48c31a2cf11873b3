// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a recording begins, and its two JSON objects: the header with what was recorded and how, and the
//! trailer with the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Kind;
use crate::config::Basis;
use crate::event::{Hook, Watched};
use crate::log::{Clock, Host};

/// Not text, so that a transfer that changes line ends is detected.
pub(super) const MAGIC: &[u8; 8] = b"\x89emudrec";
/// Version of what is not JSON: the records.
pub(super) const VERSION: u32 = 1;
/// Version of the format, incremented when a key is removed or changes its meaning.
pub const SCHEMA: &str = "emud-record/1";

/// What was recorded, where, and through which hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Version of the format.
    pub schema: String,
    /// Version of the emud that recorded.
    pub version: String,
    /// The machine.
    pub host: Host,
    /// Timer interrupts of a busy CPU per second.
    pub hz: u32,
    /// Size of a page in bytes.
    pub page_bytes: u32,
    /// Offsets of the clocks at the start.
    pub clock: Clock,
    /// Time in ns of CLOCK_MONOTONIC at which the last program was attached.
    pub start_mono_ns: u64,
    /// What counted as an idle CPU.
    pub cpu_basis: Basis,
    /// Size of the ring buffer in bytes.
    pub ring_bytes: u32,
    /// Every hook that emud tried, in this order.
    pub hooks: Vec<Hook>,
    /// What was watched, by kind of record.
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
    /// Time of the end, ns of CLOCK_MONOTONIC.
    pub end_mono_ns: u64,
    /// Why the recording ended.
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

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Its duration was over.
    Duration,
    /// A signal ended it.
    Signal,
}
