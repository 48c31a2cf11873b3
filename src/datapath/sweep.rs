// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deletes emud's devices whose interface is gone: the filters are deleted with the interface, but
//! the segmenter, engine fq's ifb and the TAPs of a killed holder remain. A holder deletes them
//! when it ends. Engine fq has no running process, so the next attach or detach in the namespace
//! deletes them. What another process moved there from another namespace is of no use there.

use super::engine::qdisc;
use super::{LinkError, attachment, devices, moved, segmenter, undo};
use crate::netlink::{self, Link, Netlink, NetlinkError};

/// Deletes every device of emud whose interface is gone and returns their names; and copies of records.
pub fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut swept = Vec::new();
    let links = nl.links()?;
    let here = netlink::identity()?.inode;
    for link in &links {
        let is_moved = moved::is_elsewhere(link, here);
        let is_left = devices::serves(link)
            .is_some_and(|interface| !links.iter().any(|other| other.index == interface));
        if !is_moved && !is_left {
            continue;
        }
        let ours = match is_moved {
            true => Ok(true),
            false => is_ours(nl, link),
        };
        let deleted = ours.and_then(|ours| {
            if ours {
                nl.delete_link(link.index)?;
            }
            Ok(ours)
        });
        match deleted {
            Ok(true) => swept.push(link.name.clone()),
            Ok(false) => {}
            // The other end of the segmenter was deleted with the first, or another emud process
            // was faster.
            Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => {}
            Err(LinkError::Netlink(e)) if e.is_no_device() => {}
            Err(e) => return Err(e),
        }
    }
    // A copy that stays has no effect, and the next emud tries again.
    let _ = undo::sweep(nl);
    Ok(swept)
}

/// Returns whether emud created the device: a name alone proves nothing.
pub(crate) fn is_ours(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    let by_root = |q: crate::netlink::Qdisc| qdisc::is_handle(q.handle);
    Ok(devices::serves(link).is_some()
        && (attachment::kept_by(nl, link)?.is_some()
            || segmenter::is_end(nl, link)?
            || nl.root_by_hand(link.index)?.is_some_and(by_root)))
}
