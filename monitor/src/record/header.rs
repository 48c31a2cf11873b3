// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two JSON objects of a recording: what was recorded and how, and what became of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::config::Basis;
use crate::event::{Hook, Watched};
use crate::log::{Clock, Host};

/// The number goes up when a key goes away or changes its meaning.
pub const SCHEMA: &str = "emud-record/1";

/// What was recorded, where, and through which hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub schema: String,
    /// Of the emud that recorded.
    pub version: String,
    pub host: Host,
    /// Timer interrupts a second of a busy CPU.
    pub hz: u32,
    pub page_bytes: u32,
    pub clock: Clock,
    /// When the last program was attached, CLOCK_MONOTONIC.
    pub start_mono_ns: u64,
    pub cpu_basis: Basis,
    /// Size of the ring buffer.
    pub ring_bytes: u32,
    /// Every hook that was tried, taken or refused.
    pub hooks: Vec<Hook>,
    pub watched: WatchedKinds,
    /// Swap devices at the start, as in /proc/swaps.
    pub swaps: Vec<String>,
}

/// By the key of [`crate::criteria::Recorded`]: whether the absence of records means that nothing
/// happened.
pub type WatchedKinds = BTreeMap<String, Watched>;

/// What became of the recording; missing if it was cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    pub end_mono_ns: u64,
    pub reason: StopReason,
    /// Records in the file.
    pub records: BTreeMap<Kind, u64>,
    /// Records that found the ring buffer full.
    pub lost: BTreeMap<Kind, u64>,
    /// Requests of block devices beyond the first 1024.
    pub disks_unknown: u64,
    /// Requests that ended and had not been seen to begin: those under way at the start.
    pub unpaired: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    Duration,
    Signal,
}
