// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine `qdisc`: packets wait in a qdisc of emud's own, a BPF program (bpf/qdisc.bpf.c), at the
//! root of the device and of the ifb. The classifier and the stamps are those of engine fq.

#[cfg_attr(not(feature = "qdisc"), path = "none.rs")]
mod object;

use std::ffi::CStr;
use std::path::Path;

use super::fq;
use crate::abi;
use crate::abi::QDISC_OBJECTS;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::stage::service;
use crate::host::{btf, in_namespace};
use crate::netlink::{Netlink, NetlinkError, OWN_KIND, Qdisc, ROOT};
use crate::profile::Pair;
pub use object::{QdiscError, Registered};

/// How the note of [`lacks_room`] begins.
pub const LACKS_ROOM: &str = "engine qdisc has room for";

/// A packet that can wait takes 24 bytes, whether it waits or not.
const ROOM_MIN: u32 = 16_384;
/// The largest number of packets that can wait in a direction.
pub const ROOM_MAX: u32 = 1 << 20;

/// The share of the room that what senders hold back may take.
const OF_SENDERS: f64 = 1.0 / (1 << abi::EMUD_QDISC_BY_SENDER_SHIFT) as f64;

/// Returns the handle of emud's qdisc for a direction, by which its program knows the direction.
pub const fn handle(direction: u32) -> u32 {
    fq::ROOT_HANDLE | (direction << abi::EMUD_QDISC_HANDLE_SHIFT)
}

/// Returns whether a qdisc is emud's own.
pub fn is_own(qdisc: &Qdisc) -> bool {
    is_handle(qdisc.handle) && qdisc.kind.starts_with(OWN_KIND)
}

/// Returns whether a handle is that of emud's qdisc for a direction.
pub fn is_handle(wanted: u32) -> bool {
    abi::DIRECTIONS.map(handle).contains(&wanted)
}

/// Returns how many packets of these links and in these classes, by direction, may wait in one of the directions
/// that are emulated; see [`fq::options`] for the other arguments.
pub fn waiting(
    links: &[Vec<Compiled>; 2],
    plans: &[abi::emud_plan; 2],
    directions: [bool; 2],
    instances: u32,
    pairs: &[Pair],
) -> u64 {
    let emulated = links.iter().zip(plans).zip(directions);
    let emulated = emulated.filter(|(_, emulated)| *emulated);
    let of_one = |links: &[Compiled], plan: &abi::emud_plan| {
        let (held, longest_s) = fq::waiting(links, instances, pairs);
        // One queue, of which one CPU at a time has the lock, takes no more, whatever the number of links.
        let held = held.min(fq::PACKETS_PER_S_MAX * longest_s);
        let held = held + service::waiting(plan, fq::FRAME_MIN);
        // The rest may be full of what senders hold back.
        (held / (1.0 - OF_SENDERS)).ceil() as u64
    };
    let all = emulated.map(|((links, plan), _)| of_one(links, plan));
    all.max().unwrap_or(0)
}

/// Returns the number of packets to reserve room for, if `waiting` packets may wait.
pub fn room(waiting: u64) -> u32 {
    let most = u32::try_from(waiting).unwrap_or(u32::MAX);
    most.clamp(ROOM_MIN, ROOM_MAX)
}

/// Returns a note if more packets may wait than there is room for.
pub fn lacks_room(room: u32, waiting: u64) -> Option<String> {
    (waiting > u64::from(room)).then(|| {
        format!(
            "{LACKS_ROOM} {room} packets that wait, and the link may have up to {waiting}: at such rates, \
             packets are dropped"
        )
    })
}

/// Adds emud's qdisc at the root of a device with the kernel's default root.
pub fn install(
    nl: &mut Netlink,
    ifindex: u32,
    direction: u32,
    kind: &CStr,
) -> Result<(), NetlinkError> {
    nl.add_qdisc(ifindex, ROOT, handle(direction), kind)
}

/// Tests whether this emud and this kernel support the engine, without loading anything.
///
/// # Errors
/// A sentence about the missing feature.
pub fn supported() -> Result<(), String> {
    if QDISC_OBJECTS.iter().any(|object| object.is_empty()) {
        let missing = match cfg!(feature = "qdisc") {
            true => "build it with clang 15 or later (`make build`), or from a crate that was",
            false => "the feature `qdisc` of the crate was off",
        };
        return Err(format!("this emud was built without it: {missing}"));
    }
    match btf::FIELDS.qdisc_ops {
        Some(_) => Ok(()),
        None if !Path::new(btf::KERNEL).exists() => Err(format!(
            "the kernel takes a BPF qdisc only with {}, which is missing",
            btf::KERNEL
        )),
        None => Err("this kernel has no BPF qdiscs".to_owned()),
    }
}

/// Tests whether this kernel supports the engine, in a network namespace that ends with the thread.
///
/// # Errors
/// A sentence about the missing feature.
pub fn probe() -> Result<(), String> {
    supported()?;
    in_namespace(|| {
        let registered = Registered::new(1, 0, [true; 2]).map_err(|e| e.to_string())?;
        let mut nl = Netlink::open().map_err(|e| e.to_string())?;
        let ifb = fq::add_trial_ifb(&mut nl).map_err(|e| e.to_string())?;
        install(&mut nl, ifb, abi::EMUD_DOWN, registered.kind()).map_err(|e| e.to_string())
    })
}
