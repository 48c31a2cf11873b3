// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of emud that another process moved to another network namespace. The kernel deletes their
//! filters and root qdiscs then (`dev_shutdown()` in `__dev_change_net_namespace()`); their alias stays and
//! says which interface they are for.

use super::devices::is_of_a_kind;
use crate::netlink::{self, Link, Namespace, Netlink, NetlinkError};

/// Start of each alias.
const MARK: &str = "emud: interface ";

fn alias(netns: u64, ifindex: u32) -> String {
    format!("{MARK}{ifindex} of net:[{netns}]")
}

/// Returns whether a device of emud was made in another namespace than this one. An alias alone proves nothing: a
/// container's can be on a device that the kernel gave back to the host.
pub(super) fn is_elsewhere(device: &Link, here: u64) -> bool {
    let alias = device.alias.as_deref().unwrap_or_default();
    is_of_a_kind(device)
        && alias.starts_with(MARK)
        && !alias.ends_with(&format!(" of net:[{here}]"))
}

/// Marks a new device for an interface of the namespace of the calling thread.
pub(super) fn mark(nl: &mut Netlink, device: u32, ifindex: u32) -> Result<(), NetlinkError> {
    let netns = netlink::identity()?.inode;
    nl.set_alias(device, &alias(netns, ifindex))
}

/// Deletes the marked devices for an interface in all network namespaces. Returns sentences on those that
/// were found, and on what could not be searched.
pub(super) fn delete(netns: u64, ifindex: u32) -> Vec<String> {
    let spaces = match Namespace::all() {
        Ok((spaces, _)) => spaces,
        Err(e) => return vec![not_searched("other network namespaces", &e)],
    };
    let alias = alias(netns, ifindex);
    let mut notes = vec![];
    for space in spaces {
        let label = match space.here {
            true => "this network namespace".to_owned(),
            false => format!("network namespace {}", space.label()),
        };
        let found = space.within(|| delete_here(&alias));
        match found.and_then(|found| found) {
            Ok(names) => notes.extend(names.into_iter().map(|name| {
                format!("another process had moved device {name} to {label}: deleted there")
            })),
            Err(e) => notes.push(not_searched(&label, &e)),
        }
    }
    notes
}

fn not_searched(what: &str, e: &NetlinkError) -> String {
    format!(
        "{what} cannot be searched for devices of emud that another process moved ({e}): those that \
         `ip link` lists with the alias `emud: ...` can be deleted there"
    )
}

fn delete_here(alias: &str) -> Result<Vec<String>, NetlinkError> {
    let mut nl = Netlink::open()?;
    let mut names = vec![];
    for link in nl.links()? {
        if link.alias.as_deref() != Some(alias) || !is_of_a_kind(&link) {
            continue;
        }
        match nl.delete_link(link.index) {
            Ok(()) => names.push(link.name),
            // The other end of the segmenter was deleted with the first.
            Err(e) if e.is_no_device() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(names)
}
