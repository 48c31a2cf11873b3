// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reverts what the record lists, the filters last (which lead to the record).

use super::attachment::{Attachment, Ours};
use super::engine::{Engine, fq, qdisc};
use super::maps::{Maps, Program};
use super::saved::Saved;
use super::undo::{self, Undo};
use super::{
    FILTER_HANDLE, LinkError, ORPHAN_HANDLE, attachment, devices, filters, moved, pieces, sweep,
};
use crate::abi::DIRECTIONS;
use crate::netlink::{self, Gso, Hook, IngressQdisc, Link, Netlink, NetlinkError, Qdisc, Standing};

/// The kernel's.
const DEFAULT_TX_QUEUE_LEN: u32 = 1000;

/// The result of a detach.
#[derive(Debug, Default)]
pub struct Done {
    /// Sentences on what was found missing or changed.
    pub notes: Vec<String>,
}

impl Done {
    /// Deletes the copy of the record.
    fn forget(&mut self, link: &Link) {
        if let Err(e) = undo::forget(link) {
            self.notes
                .push(format!("cannot delete the copy of the record: {e}"));
        }
    }
}

/// The link that a process has attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// By [`Maps::id`].
    Id(u32),
    /// By what was known before it was attached.
    Begun {
        /// Seed that the link will have.
        seed: u64,
        /// A time before the attach, CLOCK_MONOTONIC ns.
        since_ns: u64,
    },
}

impl Own {
    pub(super) fn is(self, map_id: u32, saved: &Saved) -> bool {
        match self {
            Self::Id(id) => map_id == id,
            Self::Begun { seed, since_ns } => saved.seed == seed && saved.epoch_ns >= since_ns,
        }
    }
}

/// Undoes an attachment, complete or not, by [`undo()`].
pub(crate) fn undo_attachment(
    nl: &mut Netlink,
    link: &Link,
    there: &mut Attachment,
) -> Result<Done, LinkError> {
    let ours = attachment::filters(nl, link.index)?;
    undo(nl, link, &mut there.maps, &there.saved, &ours)
}

/// Removes emud's objects on an interface whose record is lost, because another process deleted
/// the filters and every device that kept it, and restores the state before from the copy of the record.
/// Returns what was done; nothing if that link is not `own`.
pub(crate) fn remains(
    nl: &mut Netlink,
    link: &Link,
    own: Option<Own>,
) -> Result<Vec<String>, LinkError> {
    let copy = undo::find(link);
    if let (Some(own), Some(copy)) = (own, &copy)
        && !own.is(copy.id, &copy.saved)
    {
        return Ok(vec![]);
    }
    let mut found = vec![];
    for name in devices::all_names(link.index) {
        if let Some(device) = nl.find_link(&name)?
            && sweep::is_ours(nl, &device)?
        {
            nl.delete_link(device.index)?;
            found.push(name);
        }
    }
    if is_own_root(nl, link.index)? {
        nl.delete_root(link.index)?;
        found.push("the root qdisc".to_owned());
    }
    let Some(Undo { saved, .. }) = copy else {
        return Ok(match found.is_empty() {
            true => vec![],
            false => vec![format!(
                "the record of an emulated link is lost, and with it the previous root qdisc and limits \
                 of segmentation (gso_max_segs is {}); deleted {}",
                link.gso.max_segs,
                found.join(", ")
            )],
        });
    };
    let mut done = Done {
        notes: moved::delete(netlink::identity()?.inode, link.index),
    };
    stop_redirect(nl, link.index, &saved)?;
    let root = restore_root(nl, link.index, &saved, &mut done);
    let settings = restore_settings(nl, link.index, &saved, &mut done);
    root.and(settings)?;
    remove_filters(nl, link.index, &saved, &[], &mut done)?;
    done.forget(link);
    let note = "all parts of an emulated link that lead to its record were deleted: restored from the copy of the record";
    done.notes.insert(0, note.to_owned());
    Ok(done.notes)
}

/// Returns whether the root qdisc belongs to emud.
fn is_own_root(nl: &mut Netlink, ifindex: u32) -> Result<bool, NetlinkError> {
    let root = nl.root_by_hand(ifindex)?;
    let by_fq = |q: &Qdisc| q.handle == fq::ROOT_HANDLE && ["fq", "mq"].contains(&&*q.kind);
    Ok(root.is_some_and(|q| by_fq(&q) || qdisc::is_own(&q)))
}

/// Removes emud's objects and restores the previous state. Each step may be done already: attach or detach may
/// have been killed at any point.
pub(crate) fn undo(
    nl: &mut Netlink,
    link: &Link,
    maps: &mut Maps,
    saved: &Saved,
    ours: &[Ours],
) -> Result<Done, LinkError> {
    let mut done = Done::default();
    let passed = stop_redirect(nl, link.index, saved)
        .map_err(LinkError::from)
        .and_then(|()| Ok(maps.pass_everything()?));
    // One that fails does not prevent the other one.
    let root = restore_root(nl, link.index, saved, &mut done);
    let settings = restore_settings(nl, link.index, saved, &mut done);
    // The devices keep the record, like the filters: both are last. Packets that do not pass would
    // be lost without the devices.
    passed?;
    done.notes.extend(delete_devices(nl, maps, saved)?);
    if saved.engine == Engine::Hold {
        for direction in DIRECTIONS {
            pieces::wake(&maps.holder(direction)?);
        }
    }
    // The filters lead the next detach to what is still to be restored.
    root.and(settings)?;
    // Before them: a copy that outlives the link would be restored once more.
    done.forget(link);
    remove_filters(nl, link.index, saved, ours, &mut done)?;
    Ok(done)
}

/// Stops the redirection, before the classifier stops stamping packets: those it passes would go to the ifb.
fn stop_redirect(nl: &mut Netlink, ifindex: u32, saved: &Saved) -> Result<(), NetlinkError> {
    let Some(pref) = saved.mirred_pref else {
        return Ok(());
    };
    for filter in nl.filters(ifindex, Hook::Ingress)? {
        let orphan = Program::Orphan.name();
        let is_own = filter.pref == pref && filter.handle == FILTER_HANDLE;
        if is_own && filter.kind == "matchall" {
            nl.delete_filter(ifindex, Hook::Ingress, c"matchall", pref, FILTER_HANDLE)?;
        } else if filter.bpf.is_some_and(|bpf| bpf.name == orphan) {
            nl.delete_filter(ifindex, Hook::Ingress, c"bpf", filter.pref, ORPHAN_HANDLE)?;
        }
    }
    Ok(())
}

/// Deletes emud's devices. The holder ends when its TAP is deleted.
fn delete_devices(nl: &mut Netlink, maps: &Maps, saved: &Saved) -> Result<Vec<String>, LinkError> {
    for direction in DIRECTIONS {
        if let Some(device) = pieces::renamed(nl, maps, saved, direction)? {
            nl.delete_link(device.index)?;
        }
    }
    let segmenter = saved.segmenter.iter().flat_map(|s| &s.ends);
    let mut found = vec![];
    for name in saved.devices.iter().flatten().chain(segmenter) {
        found.push(nl.find_link(name)?);
    }
    for device in found.iter().flatten() {
        match nl.delete_link(device.index) {
            Ok(()) => {}
            // Deleting one end of the pair deletes the other one.
            Err(e) if e.is_no_device() => {}
            Err(e) => return Err(e.into()),
        }
    }
    if found.iter().all(Option::is_some) {
        return Ok(vec![]);
    }
    let of = maps.control()?;
    Ok(moved::delete(of.netns.into(), of.ifindex))
}

fn restore_root(
    nl: &mut Netlink,
    ifindex: u32,
    saved: &Saved,
    done: &mut Done,
) -> Result<(), NetlinkError> {
    if !saved.root_taken {
        return Ok(());
    }
    if is_own_root(nl, ifindex)? {
        nl.delete_root(ifindex)?;
    }
    let Some(root) = &saved.root else {
        return Ok(());
    };
    let standing = root.standing(nl, ifindex)?;
    match (standing, nl.root_by_hand(ifindex)?) {
        // attach was killed before it removed the qdisc, or a user configured the same one again.
        (Standing::All, _) => Ok(()),
        // A part: detach was killed while it restored it.
        (Standing::Nothing | Standing::Part, _) | (_, None) => root.restore(nl, ifindex),
        (Standing::Another, Some(now)) => {
            done.notes.push(format!(
                "the root qdisc {} {}, configured while emud was attached, stays: {} of before is \
                 not restored",
                now.kind,
                netlink::show_handle(now.handle),
                root.kind()
            ));
            Ok(())
        }
    }
}

/// Restores the device's settings, after the root qdisc, whose creation changes txqueuelen, too.
fn restore_settings(
    nl: &mut Netlink,
    ifindex: u32,
    saved: &Saved,
    done: &mut Done,
) -> Result<(), NetlinkError> {
    let now = nl.link_by_index(ifindex)?;
    // By qdisc_create() of any qdisc, clsact too. Another value is a user's.
    if saved.txqlen_zero && now.txqlen == DEFAULT_TX_QUEUE_LEN {
        nl.set_txqlen(ifindex, 0)?;
    }
    if let Some(Gso { max_segs, .. }) = saved.gso {
        // The kernel takes no more (validate_linkmsg()), and a bridge or bond has the least limit of its ports,
        // whatever came since attach.
        let most = max_segs.min(now.tso_max_segs.unwrap_or(max_segs));
        if most < max_segs {
            done.notes.push(format!(
                "gso_max_segs is {most} and not {max_segs} as before: the device permits no more since a \
                 device below it has changed"
            ));
        }
        // The sizes are not emud's.
        let gso = Gso {
            max_segs: most,
            ..now.gso
        };
        nl.set_gso(ifindex, &gso)?;
    }
    let Some(offloads) = &saved.offloads else {
        return Ok(());
    };
    let mut missing = offloads.restore(nl, ifindex)?;
    // After the device: unless it wants LRO, they cannot have it (netdev_sync_upper_features()).
    for (lower, lro) in &saved.lro_below {
        match lro.restore(nl, *lower) {
            Err(e) if !e.is_no_device() => return Err(e),
            _ => {}
        }
    }
    // A macvlan has what the device below has.
    if !saved.lro_below.is_empty() {
        missing = offloads.restore(nl, ifindex)?;
    }
    let note = |name| format!("{name} was enabled before and cannot be enabled again");
    done.notes.extend(missing.into_iter().map(note));
    Ok(())
}

/// Deletes clsact with everything in it if emud created it and it only holds emud's filters.
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
    let (in_clsact, by_tcx): (Vec<_>, Vec<_>) = ours.iter().partition(|one| one.pref.is_some());
    let alone = all == in_clsact.len();
    if saved.clsact_created && alone {
        if nl.ingress_qdisc(ifindex)? == IngressQdisc::Clsact {
            nl.delete_clsact(ifindex)?;
        }
    } else {
        for filter in in_clsact {
            filters::delete(nl, ifindex, filter)?;
        }
    }
    for program in by_tcx {
        filters::delete(nl, ifindex, program)?;
    }
    if saved.clsact_created && !alone {
        done.notes
            .push("clsact stays: other filters have been added to it".to_owned());
    }
    Ok(())
}
