// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares one part of an emulated link with what attach created.

use super::difference::{Tampering, lost};
use super::root::root_among;
use super::{Piece, inside, renamed};
use crate::abi;
use crate::abi::direction_name;
use crate::datapath::attachment::Attachment;
use crate::datapath::engine::hold::process::{running, stopped};
use crate::datapath::maps::Program;
use crate::datapath::programs::is_by_tcx;
use crate::datapath::saved::Saved;
use crate::datapath::{
    FILTER_HANDLE, LinkError, ORPHAN_HANDLE, ahead, attachment, filter_name, hook,
};
use crate::host::now_ns;
use crate::netlink::{Filter, FilterBpf, Hook, Link, Netlink, NetlinkError};

pub(super) fn check(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
    piece: &Piece,
) -> Result<Option<Tampering>, LinkError> {
    Ok(match piece {
        Piece::Filter(direction) => match filter(nl, link, there, *direction)? {
            None => ahead::added(nl, link, &there.saved, *direction)?.and_then(|what| {
                let (hook, name) = (hook(*direction).name(), filter_name(*direction));
                Tampering::changed(format!(
                    "the {hook} {what} was added before {name}: a packet that it accepts is not emulated"
                ))
            }),
            deleted => deleted,
        },
        Piece::Device { name, direction } => {
            let wanted = there.maps.link(*direction)?.ifindex;
            match nl.find_link(name)? {
                Some(device) if device.index != wanted => {
                    Tampering::gone(format!("device {name} was replaced"))
                }
                Some(device) if !device.up => Tampering::changed(format!("device {name} is down")),
                Some(_) => None,
                None => match renamed(nl, &there.maps, &there.saved, *direction)? {
                    Some(device) => {
                        Tampering::changed(format!("device {name} was renamed to {}", device.name))
                    }
                    None => Tampering::gone(lost(name)),
                },
            }
        }
        Piece::Inside {
            name,
            direction,
            filters,
        } => match nl.find_link(name)? {
            Some(device) => match root(nl, &device, &there.saved, *direction)? {
                None => inside::compare(nl, &device, filters)?,
                other => other,
            },
            // Reported for the device.
            None => None,
        },
        Piece::Root => root(nl, link, &there.saved, abi::EMUD_UP)?,
        Piece::Redirect(pref) => {
            let filters = nl.filters(link.index, Hook::Ingress)?;
            let ifb = there.maps.link(abi::EMUD_DOWN)?.ifindex;
            redirect(&filters, *pref, ifb)
        }
        Piece::Segments if link.gso.max_segs != 1 => {
            Tampering::changed(format!("gso_max_segs is {}, not 1", link.gso.max_segs))
        }
        Piece::Segments => None,
        Piece::Segmenter(segmenter) => inside::segmenter(nl, segmenter)?,
        Piece::Mtu(mtu) if link.mtu != *mtu => {
            Tampering::changed(format!("the MTU is {}, at attach it was {mtu}", link.mtu))
        }
        Piece::Mtu(_) => None,
        Piece::Holder(direction) => holder(&there.maps.holder(*direction)?),
    })
}

fn filter(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
    direction: u32,
) -> Result<Option<Tampering>, LinkError> {
    let ours = attachment::filters(nl, link.index)?;
    // A change may have loaded another program, and be about to replace this filter's.
    let is_there = |filter: &attachment::Ours| {
        filter.direction == direction
            && (filter.program_id == there.program_id || there.maps.are_of(filter.program_id))
    };
    if ours.iter().any(is_there) {
        return Ok(None);
    }
    let (hook, name) = (hook(direction).name(), filter_name(direction));
    let kind = match is_by_tcx(there.saved.engine, direction) {
        true => "tcx program",
        false => "filter",
    };
    let what = format!(
        "the {hook} {kind} {name} was deleted: {} is not emulated",
        direction_name(direction)
    );
    Ok(Tampering::gone(what))
}

/// Checks the root of the interface, or of emud's ifb, where packets of a direction wait.
fn root(
    nl: &mut Netlink,
    link: &Link,
    saved: &Saved,
    direction: u32,
) -> Result<Option<Tampering>, NetlinkError> {
    let room = saved.fq_room[direction as usize].packets();
    match nl.qdiscs(link.index) {
        Ok(qdiscs) => Ok(root_among(&qdiscs, link, saved.engine, room)),
        // It was deleted just now; that is reported for the device.
        Err(e) if e.errno() == libc::ENODEV => Ok(None),
        Err(e) => Err(e),
    }
}

/// Checks the filters that send ingress to the ifb.
fn redirect(filters: &[Filter], pref: u16, ifb: u32) -> Option<Tampering> {
    let redirect =
        |f: &&Filter| f.kind == "matchall" && f.pref == pref && f.handle == FILTER_HANDLE;
    let orphan = |f: &Filter| {
        let ours = |bpf: &FilterBpf| bpf.name == Program::Orphan.name();
        f.handle == ORPHAN_HANDLE && f.bpf.as_ref().is_some_and(ours)
    };
    match filters.iter().find(redirect) {
        None => Tampering::gone("the ingress filter that redirects to the ifb was deleted"),
        // 0: the ifb was deleted; that is reported for the device.
        Some(f) if f.redirects_to.is_none_or(|to| to != ifb && to != 0) => {
            Tampering::gone("the ingress filter that redirects to the ifb has another action")
        }
        Some(_) if !filters.iter().any(orphan) => Tampering::gone(format!(
            "the ingress filter {} was deleted",
            Program::Orphan.name()
        )),
        Some(_) => None,
    }
}

/// Returns what is wrong with the holder's process. Lack of CPU time is shown by the counters instead.
fn holder(h: &abi::emud_holder) -> Option<Tampering> {
    if h.lease_ns >= now_ns() {
        return None;
    }
    if !running(h.pid) {
        return Tampering::gone(format!("the holder (pid {}) is gone", h.pid));
    }
    match stopped(h.pid) {
        true => Tampering::changed(format!("the holder (pid {}) is stopped", h.pid)),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_that_does_something_else_is_none() {
        let filter = |kind: &str, pref, handle| Filter {
            kind: kind.into(),
            pref,
            handle,
            chain: 0,
            protocol: 3,
            bpf: None,
            redirects_to: None,
        };
        let orphan = Filter {
            bpf: Some(FilterBpf {
                program_id: 1,
                name: Program::Orphan.name().into(),
                tag: vec![],
                direct_action: true,
            }),
            ..filter("bpf", 1, ORPHAN_HANDLE)
        };
        let to = |redirects_to| Filter {
            redirects_to,
            ..filter("matchall", 4, FILTER_HANDLE)
        };
        let found = |filters: &[Filter]| redirect(filters, 4, 9).map(|one| one.what);
        for ifb in [9, 0] {
            assert_eq!(found(&[orphan.clone(), to(Some(ifb))]), None);
        }
        let other = Some("the ingress filter that redirects to the ifb has another action");
        for elsewhere in [None, Some(8)] {
            assert_eq!(found(&[orphan.clone(), to(elsewhere)]).as_deref(), other);
        }
        let deleted = "the ingress filter emud_orphan was deleted";
        assert_eq!(found(&[to(Some(9))]).as_deref(), Some(deleted));
        let deleted = "the ingress filter that redirects to the ifb was deleted";
        assert_eq!(found(&[orphan]).as_deref(), Some(deleted));
    }
}
