// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deletes emud's devices whose interface is gone: the filters are deleted with the interface, but
//! the segmenter, engine fq's ifb and the TAPs of a killed holder remain. A holder deletes them
//! when it ends. Engine fq has no running process, so the next attach or detach in the namespace
//! deletes them.

use super::engine::qdisc;
use super::{LinkError, attachment, devices, segmenter, undo};
use crate::netlink::{Link, Netlink, NetlinkError};

/// Deletes every device of emud whose interface is gone and returns their names; and copies of records.
pub fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut swept = Vec::new();
    let links = nl.links()?;
    for link in &links {
        let Some(interface) = devices::serves(link) else {
            continue;
        };
        if links.iter().any(|other| other.index == interface) {
            continue;
        }
        let deleted = is_ours(nl, link).and_then(|ours| {
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
    // One that stays harms nobody, and the next emud tries again.
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
