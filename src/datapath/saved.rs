// SPDX-License-Identifier: MIT OR Apache-2.0
//! What attach leaves in the kernel for show, set and detach.

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::stage::sizes::Sizes;
use crate::netlink::{FqOptions, Gso, Offloads, RootSnapshot};

/// The record in the `emud_saved` map. It is complete before the first change
/// is made, so that detach can undo whatever part of it had been done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    /// The profile as it is in force, canonical TOML; up is egress, whether or
    /// not it was reversed.
    pub profile: String,
    pub seed: u64,
    pub engine: Engine,
    /// Why this engine.
    pub reason: String,
    /// Emulated directions, by `EMUD_UP` and `EMUD_DOWN`.
    pub directions: [bool; 2],
    /// How long the maps are.
    pub sizes: Sizes,
    /// As it was attached with --reverse.
    pub reversed: bool,
    /// What the user was told at attach.
    pub notes: Vec<String>,
    /// Origin of the in-order jitter and time of attach, CLOCK_MONOTONIC ns.
    pub epoch_ns: u64,
    /// When the time of traces and phases began anew, if it did.
    #[serde(default)]
    pub restarted_ns: Option<u64>,
    pub l3: bool,
    /// The MTU of the interface at attach.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// clsact was not there before.
    pub clsact_created: bool,
    /// emud's ifb (fq, also where only `up` is emulated) or its TAPs (hold), by direction. Each
    /// has a filter that keeps the maps, and so this record, when clsact is deleted.
    pub devices: [Option<String>; 2],
    /// Ingress goes to the ifb by a mirred filter at this pref, because this
    /// kernel's ifb drops what a BPF program redirects.
    pub mirred_pref: Option<u16>,
    /// Bytes that engine hold keeps of each direction at most.
    #[serde(default)]
    pub hold_limit: u64,
    /// The root qdisc is emud's while attached.
    pub root_taken: bool,
    /// The root qdisc that somebody had configured by hand.
    pub root: Option<RootSnapshot>,
    /// Segmentation limits of the device before they were capped.
    pub gso: Option<Gso>,
    /// Receive offloads that were switched off.
    pub offloads: Option<Offloads>,
    /// What fq has room for, by direction.
    #[serde(default)]
    pub fq_room: [FqRoom; 2],
    /// What segments super-packets.
    #[serde(default)]
    pub segmenter: Option<Segmenter>,
}

/// The most that an fq has been made for since attach.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct FqRoom {
    /// Packets.
    limit: u32,
    horizon_us: u32,
}

impl FqRoom {
    /// Makes room for these options; those for all that there has to be room for.
    pub(crate) fn make(&mut self, options: FqOptions) -> FqOptions {
        self.limit = self.limit.max(options.limit);
        self.horizon_us = self.horizon_us.max(options.horizon_us);
        FqOptions {
            limit: self.limit,
            flow_limit: self.limit,
            horizon_us: self.horizon_us,
            ..options
        }
    }
}

/// emud's veth pair that segments super-packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segmenter {
    /// By direction, the end at which they enter it.
    pub ends: [String; 2],
    /// Those whose super-packets are segmented.
    pub directions: [bool; 2],
}
