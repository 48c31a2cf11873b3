// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segmenter: a veth pair through which the classifier sends super-packets, so that they return
//! as wire packets (bpf/segment.bpf.c). If a link damages packets and keeps their checksums, the
//! packets whose checksum is still to be computed, too, so that it is right before the damage.
//!
//! `gso_max_segs 1` on the device itself keeps this host's TCP from making super-packets. It does
//! not affect UDP GSO, packets that GRO of another device merged, those of virtual machines, and
//! sockets that are older than the link.

use std::os::fd::AsFd;

use aya::Ebpf;
use emud_monitor::loader;

use super::maps::{DatapathError, Maps, classifier};
use super::saved::{Saved, Segmenter};
use super::{FILTER_HANDLE, LinkError, devices, moved};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::netlink::{
    BpfFilter, FilterBpf, Hook, Link, Netlink, NetlinkError, Offloads, WireEnd, is_segmentation,
};

/// The maximum of a veth: packets from the segmenter are as long as the device allows.
const MTU: u32 = 65_535;

/// Returns the program at the end where a direction's packets leave.
pub(crate) const fn program(direction: u32) -> &'static str {
    if direction == abi::EMUD_UP {
        "emud_seg_up"
    } else {
        "emud_seg_down"
    }
}

/// Creates the pair of the record if necessary, and sends packets through it.
///
/// # Errors
/// The kernel returns an error. [`NetlinkError::Unavailable`] if it has no veth.
pub(crate) fn set_up(
    nl: &mut Netlink,
    link: &Link,
    maps: &mut Maps,
    saved: &Saved,
) -> Result<(), LinkError> {
    let Some(segmenter) = &saved.segmenter else {
        return Ok(());
    };
    let ends = match ends(nl, &segmenter.ends) {
        Err(NetlinkError::NoInterface(_)) => make(nl, link, &segmenter.ends)?,
        found => found?,
    };
    let mut enter = [0; 2];
    for direction in DIRECTIONS.map(|d| d as usize) {
        // Before the first packet: validate_xmit_skb() computes what an end does not support.
        surplus(nl, &ends[direction], segmenter.sums[direction])?.cap(nl, ends[direction].index)?;
        if segmenter.directions[direction] {
            enter[direction] = ends[direction].index;
        }
    }
    Ok(maps.segment_at(enter)?)
}

/// Returns whether a veth is an end of a segmenter, by the program at its ingress.
pub(crate) fn is_end(nl: &mut Netlink, end: &Link) -> Result<bool, NetlinkError> {
    if end.kind.as_deref() != Some("veth") {
        return Ok(false);
    }
    let filters = nl.filters(end.index, Hook::Ingress)?;
    let has = |bpf: &FilterBpf| DIRECTIONS.map(program).contains(&&*bpf.name);
    Ok(filters.iter().any(|f| f.bpf.as_ref().is_some_and(has)))
}

/// Returns which super-packets an end passes on, as features, and with `sums` which checksums it leaves open.
/// Without them all are segmented, also those that pass a `gso_max_segs` of 1: gso_features_check() compares it
/// with gso_segs, which is 0 in what a virtual machine sends (SKB_GSO_DODGY).
pub(crate) fn surplus(nl: &mut Netlink, end: &Link, sums: bool) -> Result<Offloads, NetlinkError> {
    let is_sum = |feature: &str| feature.starts_with("tx-checksum-");
    Offloads::snapshot(nl, end.index, |feature| {
        is_segmentation(feature) || sums && is_sum(feature)
    })
}

pub(crate) fn ends(nl: &mut Netlink, names: &[String; 2]) -> Result<[Link; 2], NetlinkError> {
    Ok([nl.link(&names[0])?, nl.link(&names[1])?])
}

fn make(nl: &mut Netlink, link: &Link, names: &[String; 2]) -> Result<[Link; 2], LinkError> {
    let [near, far] = [&names[0], &names[1]].map(|name| WireEnd { name, netns: None });
    nl.add_veth(&near, &far)?;
    let mut bpf = load(link.index)?;
    let ends = ends(nl, names)?;
    for (direction, end) in DIRECTIONS.into_iter().zip(&ends) {
        moved::mark(nl, end.index, link.index)?;
        nl.silence(end.index)?;
        nl.set_mtu(end.index, MTU)?;
        // A packet leaves at the opposite end.
        let out = &ends[1 - direction as usize];
        let name = program(direction);
        let program = classifier(&mut bpf, name)?;
        let refused = |source| DatapathError::Program { name, source };
        program.load().map_err(refused)?;
        let filter = BpfFilter {
            hook: Hook::Ingress,
            pref: 1,
            handle: FILTER_HANDLE,
            program: program.fd().map_err(refused)?.as_fd(),
            name,
            classid: 0,
            chain: 0,
        };
        nl.attach_bpf_filter(out.index, &filter)?;
    }
    for end in &ends {
        nl.set_up(end.index, true)?;
    }
    Ok(ends)
}

fn load(ifindex: u32) -> Result<Ebpf, DatapathError> {
    let object = loader(None)
        .override_global("emud_ifindex", &ifindex, true)
        .load(abi::SEGMENT_OBJECT)?;
    Ok(object)
}

/// Returns whether packets of a device can pass a veth and come back: not without an Ethernet header, and not over
/// loopback, whose packets carry their route (skb_scrub_packet() drops it).
pub(crate) fn serves(loopback: bool, l3: bool) -> bool {
    !loopback && !l3
}

/// Plans the segmenter: the directions with super-packets, and those with checksums. Returns true if there is a
/// change to make.
pub(crate) fn plan(link: &Link, [supers, sums]: [[bool; 2]; 2], saved: &mut Saved) -> bool {
    if !serves(link.loopback, saved.l3) {
        return false;
    }
    let now = saved.segmenter.as_ref();
    let or = |now: [bool; 2], more: [bool; 2]| [now[0] || more[0], now[1] || more[1]];
    let next = Segmenter {
        ends: devices::segmenter(link.index),
        directions: or(now.map_or([false; 2], |s| s.directions), supers),
        sums: or(now.map_or([false; 2], |s| s.sums), sums),
    };
    let more = next.directions != [false; 2] && now != Some(&next);
    if more {
        saved.segmenter = Some(next);
    }
    more
}
