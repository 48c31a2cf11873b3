// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in force on the interfaces of this namespace, and what of it is missing.

use super::attachment::{Attachment, find, get};
use super::engine::{Engine, qdisc};
use super::show::list::Listed;
use super::show::report::{Report, report};
use super::{LinkError, pieces, undo};
use crate::abi::{DIRECTIONS, direction_name};
use crate::host::now_ns;
use crate::netlink::{Link, Netlink};

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
