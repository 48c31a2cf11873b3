// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record that attach saves in the kernel for show, set and detach.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::LinkError;
use super::engine::Engine;
use super::maps::Maps;
use super::stage::sizes::Sizes;
use crate::netlink::{FqOptions, Gso, Offloads, RootSnapshot};

/// The record in the `emud_saved` map. It is complete before the first change, so that detach can
/// revert any part of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    /// The active profile, canonical TOML; up is egress, whether or not it was reversed.
    pub profile: String,
    /// Seed of random decisions.
    pub seed: u64,
    /// The engine in use.
    pub engine: Engine,
    /// Reason for this engine.
    pub reason: String,
    /// Emulated directions, by `EMUD_UP` and `EMUD_DOWN`.
    pub directions: [bool; 2],
    /// Lengths of the maps.
    pub sizes: Sizes,
    /// Whether it was attached with --reverse.
    pub reversed: bool,
    /// Notes printed at attach and by later changes.
    pub notes: Vec<String>,
    /// Origin of the in-order jitter and of time, CLOCK_MONOTONIC ns.
    pub epoch_ns: u64,
    /// Time of attach, from which counters count, if the origin is another one.
    #[serde(default)]
    pub attached_ns: Option<u64>,
    /// Time of the last restart of traces and phases, if any.
    #[serde(default)]
    pub restarted_ns: Option<u64>,
    /// Whether the interface has no Ethernet header.
    pub l3: bool,
    /// The MTU of the interface at attach.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether the interface had a txqueuelen of 0 before.
    #[serde(default)]
    pub txqlen_zero: bool,
    /// Whether attach created clsact.
    pub clsact_created: bool,
    /// emud's ifb (fq and qdisc, also if only `up` is emulated) or its TAPs (hold), indexed by direction.
    /// Each has a filter that keeps the maps, and so this record, if clsact is deleted.
    pub devices: [Option<String>; 2],
    /// Pref of the mirred filter that sends ingress to the ifb, if this kernel's ifb drops packets
    /// that a BPF program redirects.
    pub mirred_pref: Option<u16>,
    /// Filters and programs of others that run before emud's, indexed by direction.
    #[serde(default)]
    pub ahead: [Ahead; 2],
    /// Maximum number of bytes that engine hold buffers, indexed by direction.
    #[serde(default)]
    pub hold_limits: [u64; 2],
    /// Whether the interface may outlive the link: a copy of this record is then kept in a file, too.
    #[serde(default)]
    pub outlives: bool,
    /// Whether emud replaced the root qdisc.
    pub root_taken: bool,
    /// The root qdisc that a user configured before.
    pub root: Option<RootSnapshot>,
    /// Segmentation limits of the device before they were capped.
    pub gso: Option<Gso>,
    /// Receive offloads that were switched off.
    pub offloads: Option<Offloads>,
    /// LRO of the members of a bond and of the devices below a macvlan, by their index.
    #[serde(default)]
    pub lro_below: Vec<(u32, Offloads)>,
    /// The limits of fq, indexed by direction.
    #[serde(default)]
    pub fq_room: [FqRoom; 2],
    /// Engine qdisc: how many packets may wait in each direction.
    #[serde(default)]
    pub qdisc_room: u32,
    /// Bottlenecks in which packets of each direction may still wait, beside those of the profile.
    #[serde(default)]
    pub bottlenecks: [BTreeSet<String>; 2],
    /// The device that segments super-packets and computes checksums.
    #[serde(default)]
    pub segmenter: Option<Segmenter>,
}

/// How often each filter and program that runs before is there: a device may have thousands of them.
pub type Ahead = BTreeMap<String, u32>;

impl Saved {
    /// Returns the time since attach in ns.
    pub(crate) fn since_attach_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.attached_ns.unwrap_or(self.epoch_ns))
    }

    /// Returns whether packets wait in classes of the server in the kernel.
    pub(crate) fn has_server(&self) -> bool {
        self.engine == Engine::Qdisc && self.sizes.classes > 0
    }

    /// Writes the record to the kernel.
    pub(crate) fn write(&self, maps: &mut Maps) -> Result<(), LinkError> {
        Ok(maps.save(&serde_json::to_vec(self)?)?)
    }
}

/// The largest limit of an fq since attach.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct FqRoom {
    /// Packets.
    limit: u32,
}

impl FqRoom {
    /// Packets for which attach, or a later change, made room.
    pub(crate) fn packets(self) -> u32 {
        self.limit
    }

    /// Extends the limit to that of these options; returns options with the extended limit.
    pub(crate) fn make(&mut self, options: FqOptions) -> FqOptions {
        self.limit = self.limit.max(options.limit);
        FqOptions {
            limit: self.limit,
            flow_limit: self.limit,
            ..options
        }
    }
}

/// emud's veth pair that segments super-packets and computes checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segmenter {
    /// The end at which super-packets enter, indexed by direction.
    pub ends: [String; 2],
    /// Directions whose super-packets are segmented.
    pub directions: [bool; 2],
    /// Directions for which checksums that senders left to the device are computed.
    #[serde(default)]
    pub sums: [bool; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of the longer link still wait when a shorter one follows it: with less room,
    /// fq drops what arrives.
    #[test]
    fn room_is_never_taken_back() {
        let options = |limit| FqOptions {
            limit,
            flow_limit: limit,
            horizon_us: u32::MAX,
            timer_slack_ns: 0,
            horizon_drop: false,
            orphan_mask: None,
            buckets_log: None,
            pacing: None,
            ce_threshold_us: None,
        };
        let mut room = FqRoom::default();
        let limits = |fq: FqOptions| (fq.limit, fq.flow_limit);
        assert_eq!(limits(room.make(options(80_000))), (80_000, 80_000));
        assert_eq!(limits(room.make(options(1000))), (80_000, 80_000));
        assert_eq!(limits(room.make(options(90_000))), (90_000, 90_000));
    }
}
