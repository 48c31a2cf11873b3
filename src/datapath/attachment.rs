// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds an attachment from the device alone: filter -> program -> maps. If its filters are
//! deleted, a filter of emud's devices for this interface leads to the same program.

use super::engine::qdisc;
use super::maps::{DatapathError, Maps, Program};
use super::saved::Saved;
use super::{FILTER_HANDLE, KEEPER_NAME, LinkError, devices, filter_name, hook, undo};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::netlink::{self, Hook, Link, Netlink, NetlinkError};

/// A filter of emud on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours {
    pub direction: u32,
    /// `None`: a program of tcx.
    pub pref: Option<u16>,
    pub program_id: u32,
}

/// An attached link.
pub struct Attachment {
    /// The classifier.
    pub(crate) program_id: u32,
    /// The maps of its programs.
    pub maps: Maps,
    /// The record for detach.
    pub saved: Saved,
}

impl Attachment {
    /// Returns whether every emulated direction is active: attach and detach make all of them pass
    /// packets first.
    pub(crate) fn is_in_force(&self) -> Result<bool, DatapathError> {
        for direction in DIRECTIONS {
            let emulated = self.saved.directions[direction as usize];
            if emulated && self.maps.link(direction)?.release == abi::EMUD_RELEASE_NONE {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns emud's filters on a device, and its programs of tcx.
pub(crate) fn filters(nl: &mut Netlink, ifindex: u32) -> Result<Vec<Ours>, LinkError> {
    let egress = hook(abi::EMUD_UP);
    match nl.link_by_index(ifindex) {
        // It has gone meanwhile, and its filters and programs with it.
        Err(NetlinkError::NoInterface(_)) => return Ok(vec![]),
        link => link?,
    };
    let by_tcx = match netlink::tcx_programs(ifindex, egress) {
        // Filters are listed for every user, programs of tcx are not: where none of emud's can be,
        // that is no failure.
        Err(NetlinkError::Denied(_)) if !has_own_root(nl, ifindex)? => vec![],
        programs => programs?,
    };
    let by_tcx = (by_tcx.into_iter()).filter(|program| program.name == Program::Egress.name());
    let mut ours: Vec<_> = by_tcx
        .map(|program| Ours {
            direction: abi::EMUD_UP,
            pref: None,
            program_id: program.id,
        })
        .collect();
    for direction in DIRECTIONS {
        let name = filter_name(direction);
        for filter in nl.filters(ifindex, hook(direction))? {
            if let Some(bpf) = filter.bpf
                && filter.handle == FILTER_HANDLE
                && bpf.name == name
            {
                ours.push(Ours {
                    direction,
                    pref: Some(filter.pref),
                    program_id: bpf.program_id,
                });
            }
        }
    }
    Ok(ours)
}

fn has_own_root(nl: &mut Netlink, ifindex: u32) -> Result<bool, NetlinkError> {
    Ok(nl.root_by_hand(ifindex)?.is_some_and(|q| qdisc::is_own(&q)))
}

/// Returns the classifier of a device's link from its filters, or from those of emud's devices.
fn program_of(nl: &mut Netlink, ifindex: u32) -> Result<Option<u32>, LinkError> {
    if let Some(ours) = filters(nl, ifindex)?.first() {
        return Ok(Some(ours.program_id));
    }
    for name in devices::all_names(ifindex) {
        let Some(device) = nl.find_link(&name)? else {
            continue;
        };
        if let Some(program_id) = kept_by(nl, &device)? {
            return Ok(Some(program_id));
        }
    }
    Ok(None)
}

/// Returns the classifier that one of emud's devices keeps; `None` if the device is not emud's.
pub(crate) fn kept_by(nl: &mut Netlink, device: &Link) -> Result<Option<u32>, NetlinkError> {
    let filters = nl.filters(device.index, Hook::Ingress)?;
    let mut ours = (filters.into_iter()).filter(|filter| filter.handle == FILTER_HANDLE);
    Ok(ours.find_map(|filter| {
        let bpf = filter.bpf.filter(|bpf| bpf.name == KEEPER_NAME)?;
        Some(bpf.program_id)
    }))
}

/// Returns the link on a device, complete or not, if there is one.
///
/// # Errors
/// A different version of emud attached it, or the kernel returns an error.
pub fn find(nl: &mut Netlink, ifindex: u32) -> Result<Option<Attachment>, LinkError> {
    let Some(program_id) = program_of(nl, ifindex)? else {
        return Ok(None);
    };
    let maps = Maps::of_program(program_id)?;
    let saved = serde_json::from_slice(&maps.saved()?)?;
    Ok(Some(Attachment {
        program_id,
        maps,
        saved,
    }))
}

/// Returns the link on a device.
///
/// # Errors
/// As [`find`], and if there is none.
pub fn get(nl: &mut Netlink, link: &Link) -> Result<Attachment, LinkError> {
    find(nl, link.index)?.ok_or_else(|| {
        let interface = link.name.clone();
        match undo::find(link) {
            Some(_) => LinkError::AllDeleted { interface },
            None => LinkError::NotAttached { interface },
        }
    })
}

/// Returns the link on a device, to be changed or measured.
///
/// # Errors
/// As [`get`], and if it has ended by itself, or is not in force.
pub(crate) fn running(nl: &mut Netlink, link: &Link) -> Result<Attachment, LinkError> {
    let there = get(nl, link)?;
    let interface = link.name.clone();
    if there.maps.is_over()? {
        return Err(LinkError::Ended { interface });
    }
    match there.is_in_force()? {
        true => Ok(there),
        false => Err(LinkError::Unfinished { interface }),
    }
}

/// Returns the interface with an emulated link if there is exactly one.
pub(crate) fn only(nl: &mut Netlink) -> Result<Link, LinkError> {
    let mut found = Vec::new();
    for link in nl.links()? {
        if program_of(nl, link.index)?.is_some() {
            found.push(link);
        }
    }
    match found.len() {
        0 => Err(LinkError::NoInterface),
        1 => found.pop().ok_or(LinkError::NoInterface),
        _ => {
            let names: Vec<_> = found.into_iter().map(|link| link.name).collect();
            Err(LinkError::WhichInterface(names.join(", ")))
        }
    }
}

/// Returns the interfaces of this namespace that can have a link and are up, without loopback and
/// emud's devices.
pub fn candidates(nl: &mut Netlink) -> Result<Vec<Link>, NetlinkError> {
    let mut links = nl.links()?;
    links.retain(|link| link.up && !link.loopback && devices::serves(link).is_none());
    Ok(links)
}
