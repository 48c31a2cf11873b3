// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of an emulated link on an interface, and which of them are missing or changed.
//!
//! `expected` lists what attach created, from the record alone. Show, the holder, the sampler of a
//! run and the monitor compare the kernel's state with it; detach and a new attach remove what
//! remains.

mod difference;
mod inside;
mod root;
mod tampering;

use rustix::process::{Pid, Signal, kill_process};

use super::attachment::Attachment;
use super::engine::Engine;
use super::engine::hold::process::{running, stopped};
use super::maps::{Maps, Program};
use super::programs::{is_by_tcx, uses_clsact};
use super::saved::{Saved, Segmenter};
use super::{KEEPER_NAME, LinkError, attachment};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::netlink::{IngressQdisc, Link, Netlink, NetlinkError};
pub use difference::Tampering;
use tampering::check;

/// A part that a link needs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// The classifier at a hook of the interface.
    Filter(u32),
    /// emud's ifb or TAP of a direction: exists, is up, and receives the packets.
    Device {
        name: String,
        direction: u32,
    },
    /// The root qdisc of emud's ifb or TAP, and these filters at its ingress.
    Inside {
        name: String,
        direction: u32,
        filters: Vec<&'static str>,
    },
    /// The root qdisc of the interface: fq (or mq with fq below it), emud's own, or the kernel's
    /// default.
    Root,
    /// mirred at this pref, and the filter before it.
    Redirect(u16),
    /// gso_max_segs is 1.
    Segments,
    /// The device that segments super-packets.
    Segmenter(Segmenter),
    Mtu(u32),
    Holder(u32),
}

/// Lists what attach created, in the order in which a user reads it.
fn expected(saved: &Saved) -> Vec<Piece> {
    let mut pieces = vec![];
    let emulated = || {
        DIRECTIONS
            .into_iter()
            .filter(|d| saved.directions[*d as usize])
    };
    pieces.extend(emulated().map(Piece::Filter));
    if saved.directions[abi::EMUD_UP as usize] {
        pieces.push(Piece::Root);
    }
    for direction in emulated() {
        let Some(name) = saved.devices[direction as usize].clone() else {
            continue;
        };
        pieces.push(Piece::Device {
            name: name.clone(),
            direction,
        });
        let behind = match saved.engine {
            Engine::Fq | Engine::Qdisc => None,
            Engine::Hold => Some(tap_program(direction).name()),
        };
        pieces.push(Piece::Inside {
            name,
            direction,
            filters: behind.into_iter().chain([KEEPER_NAME]).collect(),
        });
    }
    pieces.extend(saved.mirred_pref.map(Piece::Redirect));
    if saved.engine == Engine::Hold {
        pieces.extend(emulated().map(Piece::Holder));
    }
    pieces.extend(saved.gso.is_some().then_some(Piece::Segments));
    pieces.extend(saved.segmenter.clone().map(Piece::Segmenter));
    pieces.extend(saved.mtu.map(Piece::Mtu));
    pieces
}

/// Returns the names of emud's devices that packets of a link pass.
pub(crate) fn devices(saved: &Saved) -> Vec<String> {
    let mut names = vec![];
    for piece in expected(saved) {
        match piece {
            Piece::Device { name, .. } => names.push(name),
            Piece::Segmenter(segmenter) => names.extend(segmenter.ends),
            _ => {}
        }
    }
    names
}

/// Returns the program at the ingress of a direction's TAP.
pub(crate) const fn tap_program(direction: u32) -> Program {
    if direction == abi::EMUD_UP {
        Program::TapUp
    } else {
        Program::TapDown
    }
}

/// Returns the device of a direction if it has another name than attach gave it. Its index alone
/// proves nothing: a user can create a device with the index of a deleted one.
pub(crate) fn renamed(
    nl: &mut Netlink,
    maps: &Maps,
    saved: &Saved,
    direction: u32,
) -> Result<Option<Link>, LinkError> {
    let Some(name) = &saved.devices[direction as usize] else {
        return Ok(None);
    };
    let device = match nl.link_by_index(maps.link(direction)?.ifindex) {
        Err(NetlinkError::NoInterface(_)) => return Ok(None),
        found => found?,
    };
    let kept = attachment::kept_by(nl, &device)?;
    let is_ours = kept.is_some_and(|program| maps.are_of(program));
    Ok((is_ours && device.name != *name).then_some(device))
}

/// The state of a link during an attach or detach, or after one that was killed.
pub(crate) const UNFINISHED: &str = "not in force: an attach or detach has not finished";

/// Returns which parts of a link are missing or changed.
pub fn tampering(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
) -> Result<Vec<Tampering>, LinkError> {
    nl.with_one_list(|nl| compare(nl, link, there))
}

fn compare(nl: &mut Netlink, link: &Link, there: &Attachment) -> Result<Vec<Tampering>, LinkError> {
    if !there.is_in_force()? {
        return Ok(Tampering::gone(UNFINISHED).into_iter().collect());
    }
    let mut found = vec![];
    let saved = &there.saved;
    if uses_clsact(saved.engine, saved.directions)
        && nl.ingress_qdisc(link.index)? != IngressQdisc::Clsact
    {
        found.extend(Tampering::gone(
            "qdisc clsact was deleted, and all filters with it",
        ));
    }
    let clsact = found.is_empty();
    for piece in expected(&there.saved) {
        let in_clsact = match piece {
            Piece::Filter(direction) => !is_by_tcx(saved.engine, direction),
            Piece::Redirect(_) => true,
            _ => false,
        };
        if clsact || !in_clsact {
            found.extend(check(nl, link, there, &piece)?);
        }
    }
    found.dedup();
    // Detached in the meantime: the missing parts were not removed by another process.
    if !found.is_empty() && !there.is_in_force()? {
        return Ok(Tampering::gone(UNFINISHED).into_iter().collect());
    }
    Ok(found)
}

/// Continues a holder that was stopped, so that it detects that its TAP is gone, and ends.
pub(crate) fn wake(h: &abi::emud_holder) {
    let pid = i32::try_from(h.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| running(h.pid) && stopped(h.pid)) {
        // It may have ended just now.
        let _ = kill_process(pid, Signal::CONT);
    }
}
