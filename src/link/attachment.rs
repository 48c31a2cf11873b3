// SPDX-License-Identifier: GPL-2.0-only
//! Finds what is attached, from the device alone: filter -> program -> maps.

use crate::link::datapath::{Maps, Program};
use crate::link::report::{Report, report};
use crate::link::saved::Saved;
use crate::link::{DIRECTIONS, FILTER_HANDLE, LinkError, hook, now_ns};
use crate::netlink::{Link, Netlink};

/// One of emud's filters on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours {
    pub direction: u32,
    pub pref: u16,
    pub program_id: u32,
}

/// An emulated link that is there.
pub struct Attachment {
    pub maps: Maps,
    pub saved: Saved,
}

/// emud's filters on a device.
pub(super) fn filters(nl: &mut Netlink, ifindex: u32) -> Result<Vec<Ours>, LinkError> {
    let mut ours = Vec::new();
    for direction in DIRECTIONS {
        let name = Program::of_direction(direction).name();
        for filter in nl.filters(ifindex, hook(direction))? {
            if let Some(bpf) = filter.bpf
                && filter.handle == FILTER_HANDLE
                && bpf.name == name
            {
                ours.push(Ours {
                    direction,
                    pref: filter.pref,
                    program_id: bpf.program_id,
                });
            }
        }
    }
    Ok(ours)
}

/// The link on a device, if there is one.
///
/// # Errors
/// It is of another version of emud, or the kernel refuses to show it.
pub fn find(nl: &mut Netlink, ifindex: u32) -> Result<Option<Attachment>, LinkError> {
    let Some(ours) = filters(nl, ifindex)?.first().copied() else {
        return Ok(None);
    };
    let maps = Maps::of_program(ours.program_id)?;
    let saved = serde_json::from_slice(&maps.saved()?)?;
    Ok(Some(Attachment { maps, saved }))
}

/// The link on a device.
///
/// # Errors
/// As [`find`], and if there is none.
pub fn get(nl: &mut Netlink, link: &Link) -> Result<Attachment, LinkError> {
    find(nl, link.index)?.ok_or_else(|| LinkError::NotAttached {
        interface: link.name.clone(),
    })
}

/// What runs on one interface, or on all that have an emulated link.
///
/// # Errors
/// There is no such interface, nothing is attached to it, or it cannot be read.
pub fn reports(interface: Option<&str>) -> Result<Vec<Report>, LinkError> {
    let mut nl = Netlink::open()?;
    let read = |link: &Link, a: &Attachment| {
        report(&link.name, link.index, &a.maps, &a.saved, now_ns()).map_err(LinkError::from)
    };
    if let Some(name) = interface {
        let link = nl.link(name)?;
        let attachment = get(&mut nl, &link)?;
        return Ok(vec![read(&link, &attachment)?]);
    }
    let mut all = Vec::new();
    for link in nl.links()? {
        if let Some(attachment) = find(&mut nl, link.index)? {
            all.push(read(&link, &attachment)?);
        }
    }
    Ok(all)
}
