// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds an attachment from the device alone: filter -> program -> maps. If its filters are
//! deleted, a filter of emud's devices for this interface leads to the same program.

use super::engine::{Engine, qdisc};
use super::maps::{Maps, Program};
use super::saved::Saved;
use super::show::list::Listed;
use super::show::report::{Report, report};
use super::{
    FILTER_HANDLE, KEEPER_NAME, LinkError, devices, ending, filter_name, hook, pieces, undo,
};
use crate::abi;
use crate::abi::{DIRECTIONS, direction_name};
use crate::host::now_ns;
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
/// As [`get`], and if it has ended by itself.
pub(crate) fn running(nl: &mut Netlink, link: &Link) -> Result<Attachment, LinkError> {
    let there = get(nl, link)?;
    match ending::is_over(&there.maps)? {
        false => Ok(there),
        true => Err(LinkError::Ended {
            interface: link.name.clone(),
        }),
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

/// Returns the links on one interface, or on all interfaces with an emulated link.
///
/// # Errors
/// There is no such interface, nothing is attached to it, or it cannot be read.
pub fn reports(interface: Option<&str>) -> Result<Vec<Report>, LinkError> {
    let mut nl = Netlink::open()?;
    if let Some(name) = interface {
        let link = nl.link(name)?;
        let attachment = get(&mut nl, &link)?;
        return Ok(vec![read(&mut nl, &link, &attachment)?]);
    }
    let mut all = Vec::new();
    for link in nl.links()? {
        all.extend(report_of(&mut nl, &link)?);
    }
    Ok(all)
}

/// Lists the links of this namespace, also those that other processes have deleted whole.
///
/// # Errors
/// As [`reports`].
pub fn list() -> Result<Vec<Listed>, LinkError> {
    let mut nl = Netlink::open()?;
    let links = nl.links()?;
    let kept = undo::kept(&links).unwrap_or_default();
    let mut all = Vec::new();
    for link in links {
        match report_of(&mut nl, &link)? {
            Some(report) => all.push(report.into()),
            None if kept.contains(&link.index) => {
                all.extend(undo::find(&link).map(|undo| Listed::deleted(&link, &undo.saved)));
            }
            None => {}
        }
    }
    Ok(all)
}

/// Returns the link on an interface, if there is one.
fn report_of(nl: &mut Netlink, link: &Link) -> Result<Option<Report>, LinkError> {
    let there = find(nl, link.index);
    match there.and_then(|it| it.map(|it| read(nl, link, &it)).transpose()) {
        // It went after the listing.
        Err(LinkError::Netlink(e)) if e.is_no_device() => Ok(None),
        report => report,
    }
}

fn read(nl: &mut Netlink, link: &Link, there: &Attachment) -> Result<Report, LinkError> {
    let mut report = report(&link.name, link.index, &there.maps, &there.saved, now_ns())?;
    let tampering = pieces::tampering(nl, link, there)?;
    report.tampered = tampering.into_iter().map(|one| one.what).collect();
    for (direction, slot) in DIRECTIONS
        .into_iter()
        .zip([&mut report.up, &mut report.down])
    {
        let Some(read) = slot else { continue };
        read.engine_dropped = engine_dropped(nl, link, there, direction)?;
        if read.engine_dropped > 0 {
            report.notes.push(format!(
                "{}: engine {} dropped {} packets that the link did not",
                direction_name(direction),
                there.saved.engine,
                read.engine_dropped
            ));
        }
    }
    Ok(report)
}

/// Returns the number of packets dropped at the device where they wait: emud's device, or the
/// engine's qdisc on the interface.
fn engine_dropped(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
    direction: u32,
) -> Result<u64, LinkError> {
    let ifindex = match (&there.saved.devices[direction as usize], there.saved.engine) {
        (Some(name), _) => match nl.find_link(name)? {
            Some(device) => device.index,
            // The TAP of a dead holder.
            None => return Ok(0),
        },
        (None, Engine::Fq | Engine::Qdisc) => link.index,
        (None, Engine::Hold) => return Ok(0),
    };
    let in_qdiscs: u64 = nl
        .qdiscs(ifindex)?
        .iter()
        .filter(|q| match there.saved.engine {
            Engine::Fq => q.kind == "fq",
            Engine::Qdisc => qdisc::is_own(q),
            Engine::Hold => q.kind != "clsact",
        })
        .map(|q| u64::from(q.drops))
        .sum();
    let in_device = match there.saved.engine {
        Engine::Hold => match nl.tx_dropped(ifindex) {
            // Deleted meanwhile: as above.
            Err(e) if e.is_no_device() => 0,
            dropped => dropped?,
        },
        _ => 0,
    };
    Ok(in_qdiscs + in_device)
}
