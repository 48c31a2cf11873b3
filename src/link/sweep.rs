// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a vanished device leaves: its filters go with it, the segmenter and engine fq's
//! ifb do not. The holder takes them away as it ends. Under engine fq nothing of emud
//! runs that could, so the next attach or detach in the namespace does.

use crate::engine::fq;
use crate::link::{LinkError, attachment, devices};
use crate::netlink::{Link, Netlink};

/// Deletes every ifb and segmenter of emud's whose device is gone; their names. An
/// attach under way is not mistaken for one: its filters come first.
///
/// # Errors
/// The kernel's.
pub fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut swept = Vec::new();
    for link in nl.links()? {
        let deleted = orphan(nl, &link).and_then(|orphan| {
            if orphan {
                nl.delete_link(link.index)?;
            }
            Ok(orphan)
        });
        match deleted {
            Ok(true) => swept.push(link.name),
            Ok(false) => {}
            // Another emud has swept it meanwhile.
            Err(LinkError::Netlink(e)) if e.is_no_device() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(swept)
}

fn orphan(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    if let Some(device) = devices::segmenter_of(link) {
        // One end goes with the other, so the second is gone when it is its turn.
        let there = nl.link_by_index(link.index).is_ok();
        return Ok(there && attachment::filters(nl, device)?.is_empty());
    }
    let Some(device) = devices::ifb_of(link) else {
        return Ok(false);
    };
    // By its qdisc it is emud's, not somebody's who likes the name.
    let ours = nl
        .root_by_hand(link.index)?
        .is_some_and(|q| q.handle == fq::ROOT_HANDLE);
    Ok(ours && attachment::filters(nl, device)?.is_empty())
}
