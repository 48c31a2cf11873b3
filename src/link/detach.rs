// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detach: undo what the record says, the filters (by which it is found) last.

use std::time::Duration;

use crate::abi;
use crate::engine::hold::signal;
use crate::link::attachment::{self, Ours};
use crate::link::datapath::{DatapathError, Maps, Program};
use crate::link::saved::Saved;
use crate::link::{FILTER_HANDLE, LinkError, ORPHAN_HANDLE, hook, sweep};
use crate::netlink::{self, Hook, IngressQdisc, Link, Netlink, NetlinkError};

/// How long the end of a process waits for another emud; `attach` may take seconds.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// What there is to say about it.
#[derive(Debug, Default)]
pub struct Done {
    pub notes: Vec<String>,
}

/// Takes the link away from an interface.
///
/// # Errors
/// Nothing is attached, or the kernel refuses a step; run it again after the
/// cause is gone, it goes on where it stopped.
pub fn detach(interface: &str) -> Result<Done, LinkError> {
    detach_within(interface, netlink::PATIENCE)
}

/// As [`detach`] at the end of a process that has to leave nothing behind: it waits longer for
/// another emud that is at work.
///
/// # Errors
/// [`LinkError::StillAttached`]. That the link or the interface has gone is none.
pub fn at_end(interface: &str) -> Result<(), LinkError> {
    match detach_within(interface, LAST_PATIENCE) {
        Ok(_)
        | Err(LinkError::NotAttached { .. })
        | Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => Ok(()),
        Err(cause) => Err(LinkError::StillAttached {
            cause: Box::new(cause),
            interface: interface.to_owned(),
        }),
    }
}

fn detach_within(interface: &str, patience: Duration) -> Result<Done, LinkError> {
    // Ctrl-C waits until everything is done.
    let _stop = signal::stop_signals().map_err(LinkError::Signal)?;
    let mut nl = Netlink::open()?;
    sweep::sweep(&mut nl)?;
    let link = nl.link(interface)?;
    let _lock = netlink::lock(link.index, patience)?;
    let mut there = attachment::get(&mut nl, &link)?;
    let ours = attachment::filters(&mut nl, link.index)?;
    undo(&mut nl, &link, &mut there.maps, &there.saved, &ours)
}

/// Every step may already have been done: attach or detach may have been killed
/// anywhere.
pub(super) fn undo(
    nl: &mut Netlink,
    link: &Link,
    maps: &mut Maps,
    saved: &Saved,
    ours: &[Ours],
) -> Result<Done, LinkError> {
    let mut done = Done::default();
    stop_redirect(nl, link.index, saved)?;
    pass_everything(maps)?;
    delete_devices(nl, saved)?;
    restore_root(nl, link.index, saved)?;
    restore_offloads(nl, link.index, saved, &mut done)?;
    remove_filters(nl, link.index, saved, ours, &mut done)?;
    Ok(done)
}

/// Before the classifier stops to stamp: what it lets through goes to the ifb.
fn stop_redirect(nl: &mut Netlink, ifindex: u32, saved: &Saved) -> Result<(), NetlinkError> {
    let Some(pref) = saved.mirred_pref else {
        return Ok(());
    };
    for filter in nl.filters(ifindex, Hook::Ingress)? {
        let orphan = Program::Orphan.name();
        if filter.pref == pref && filter.kind == "matchall" {
            nl.delete_filter(ifindex, Hook::Ingress, c"matchall", pref, FILTER_HANDLE)?;
        } else if filter.bpf.is_some_and(|bpf| bpf.name == orphan) {
            nl.delete_filter(ifindex, Hook::Ingress, c"bpf", filter.pref, ORPHAN_HANDLE)?;
        }
    }
    Ok(())
}

fn pass_everything(maps: &mut Maps) -> Result<(), DatapathError> {
    maps.segment_at([0; 2])?;
    let mut links = [maps.link(abi::EMUD_UP)?, maps.link(abi::EMUD_DOWN)?];
    for link in &mut links {
        link.release = abi::EMUD_RELEASE_NONE;
    }
    maps.apply_links(links)
}

/// The holder ends when its TAP does.
fn delete_devices(nl: &mut Netlink, saved: &Saved) -> Result<(), NetlinkError> {
    // The other end of the pair goes with the first.
    let segmenter = saved.segmenter.as_ref().map(|s| &s.ends[0]);
    for name in saved.devices.iter().flatten().chain(segmenter) {
        match nl
            .link(name)
            .and_then(|device| nl.delete_link(device.index))
        {
            Ok(()) => {}
            // Without its holder a TAP has gone before.
            Err(e) if e.is_no_device() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn restore_root(nl: &mut Netlink, ifindex: u32, saved: &Saved) -> Result<(), NetlinkError> {
    if !saved.root_taken {
        return Ok(());
    }
    let now = nl.root_by_hand(ifindex)?;
    let ours = now
        .as_ref()
        .is_some_and(|q| q.handle == crate::engine::fq::ROOT_HANDLE);
    if ours {
        nl.delete_root(ifindex)?;
    }
    match &saved.root {
        // Killed before it was taken away, or somebody has configured another since.
        Some(_) if now.is_some() && !ours => Ok(()),
        Some(root) => root.restore(nl, ifindex),
        None => Ok(()),
    }
}

fn restore_offloads(
    nl: &mut Netlink,
    ifindex: u32,
    saved: &Saved,
    done: &mut Done,
) -> Result<(), NetlinkError> {
    if let Some(gso) = &saved.gso {
        nl.set_gso(ifindex, gso)?;
    }
    if let Some(offloads) = &saved.offloads {
        for missing in offloads.restore(nl, ifindex)? {
            done.notes
                .push(format!("{missing} was on before and does not come back"));
        }
    }
    Ok(())
}

/// Our clsact goes with everything in it, if that is only ours.
fn remove_filters(
    nl: &mut Netlink,
    ifindex: u32,
    saved: &Saved,
    ours: &[Ours],
    done: &mut Done,
) -> Result<(), NetlinkError> {
    let mut all = 0;
    for hook in [Hook::Egress, Hook::Ingress] {
        all += nl.filters(ifindex, hook)?.len();
    }
    let alone = all == ours.len();
    if saved.clsact_created && alone {
        if nl.ingress_qdisc(ifindex)? == IngressQdisc::Clsact {
            nl.delete_clsact(ifindex)?;
        }
        return Ok(());
    }
    for filter in ours {
        nl.delete_filter(
            ifindex,
            hook(filter.direction),
            c"bpf",
            filter.pref,
            FILTER_HANDLE,
        )?;
    }
    if saved.clsact_created {
        done.notes
            .push("clsact stays: other filters have been added to it".to_owned());
    }
    Ok(())
}
