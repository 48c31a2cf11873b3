// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud's own devices, and those whose interface is gone: its filters go with it, the segmenter,
//! engine fq's ifb and the TAPs of a killed holder do not. A holder deletes them as it ends. Under
//! engine fq nothing of emud runs that could, so the next attach or detach in the namespace does.

use super::engine::fq;
use super::{LinkError, attachment, devices, segmenter};
use crate::netlink::{Link, Netlink, NetlinkError};

/// Deletes every device of emud's whose interface is gone; their names.
///
/// # Errors
/// The kernel's.
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
            // The other end of the segmenter has gone with the first, or another emud was here.
            Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => {}
            Err(LinkError::Netlink(e)) if e.is_no_device() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(swept)
}

/// Not somebody's who likes the name.
pub(crate) fn is_ours(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    let by_root = |q: crate::netlink::Qdisc| q.handle == fq::ROOT_HANDLE;
    Ok(devices::serves(link).is_some()
        && (attachment::kept_by(nl, link)?.is_some()
            || segmenter::is_end(nl, link)?
            || nl.root_by_hand(link.index)?.is_some_and(by_root)))
}
