// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a vanished device leaves: its filters go with it, the segmenter and engine fq's
//! ifb do not. The holder takes them away as it ends. Under engine fq nothing of emud
//! runs that could, so the next attach or detach in the namespace does.

use crate::engine::fq;
use crate::link::{LinkError, attachment, segmenter};
use crate::netlink::{Link, Netlink};

/// The name of the ifb for a device.
pub(super) fn ifb_name(ifindex: u32) -> String {
    format!("{IFB}{ifindex}")
}

const IFB: &str = "emud-ifb-";

/// Deletes every ifb and segmenter of emud's whose device is gone; their names. An
/// attach under way is not mistaken for one: its filters come first.
///
/// # Errors
/// The kernel's.
pub fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut swept = Vec::new();
    for link in nl.links()? {
        if orphan(nl, &link)? {
            nl.delete_link(link.index)?;
            swept.push(link.name);
        }
    }
    Ok(swept)
}

fn orphan(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    if let Some(device) = segmenter::device(link) {
        // One end goes with the other, so the second is gone when it is its turn.
        let there = nl.link_by_index(link.index).is_ok();
        return Ok(there && attachment::filters(nl, device)?.is_empty());
    }
    let device = link
        .name
        .strip_prefix(IFB)
        .and_then(|n| n.parse::<u32>().ok());
    let (Some(device), Some("ifb")) = (device, link.kind.as_deref()) else {
        return Ok(false);
    };
    // By its qdisc it is emud's, not somebody's who likes the name.
    let ours = nl
        .root_by_hand(link.index)?
        .is_some_and(|q| q.handle == fq::ROOT_HANDLE);
    Ok(ours && attachment::filters(nl, device)?.is_empty())
}
