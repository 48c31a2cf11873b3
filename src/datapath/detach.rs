// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detach, by a user or at the end of a process.

use std::time::Duration;

use super::engine::hold::signal;
pub use super::restore::{Done, Own};
use super::restore::{remains, undo_attachment};
use super::{LinkError, attachment, ending, sweep};
use crate::host::interface;
use crate::netlink::{Link, Netlink, NetlinkError};

/// How long a process that ends waits for another emud process; `attach` may take seconds.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Removes the link from an interface.
///
/// # Errors
/// Nothing is attached, or the kernel rejects a step; after the cause is fixed, a new run continues
/// where this one stopped.
pub fn detach(interface: &str) -> Result<Done, LinkError> {
    detach_within(|nl| nl.link(interface), None, interface::PATIENCE)
}

/// As [`detach`], by the index: a name that is not UTF-8 finds no interface.
pub(super) fn detach_index(ifindex: u32) -> Result<Done, LinkError> {
    let found = |nl: &mut Netlink| nl.link_by_index(ifindex);
    detach_within(found, None, interface::PATIENCE)
}

/// As [`detach`], for the end of a process that must not leave a link behind: by the index, because
/// another interface may have the name by now. Waits longer for another emud process that is
/// changing the interface. `own`: the link that it attached, since that may be gone, and the one that is
/// there another's.
///
/// # Errors
/// [`LinkError::StillAttached`]. A missing link or interface is not an error.
pub fn at_end(ifindex: u32, own: Own) -> Result<(), LinkError> {
    let found = |nl: &mut Netlink| nl.link_by_index(ifindex);
    match detach_within(found, Some(own), LAST_PATIENCE) {
        Ok(_)
        | Err(LinkError::NotAttached { .. })
        | Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => Ok(()),
        Err(cause) => Err(LinkError::StillAttached {
            cause: Box::new(cause),
            interface: Netlink::open()?.link_by_index(ifindex)?.name,
        }),
    }
}

fn detach_within(
    find: impl FnOnce(&mut Netlink) -> Result<Link, NetlinkError>,
    own: Option<Own>,
    patience: Duration,
) -> Result<Done, LinkError> {
    // Ctrl-C is handled after everything is done.
    let _stop = signal::stop_signals().map_err(LinkError::Signal)?;
    let mut nl = Netlink::open()?;
    sweep::sweep(&mut nl)?;
    let link = find(&mut nl)?;
    let _lock = interface::lock(link.index, patience)?;
    if let Some(mut there) = attachment::find(&mut nl, link.index)? {
        if own.is_some_and(|own| !own.is(there.maps.id, &there.saved)) {
            return Err(LinkError::NotAttached {
                interface: link.name,
            });
        }
        let mut done = undo_attachment(&mut nl, &link, &mut there)?;
        done.notes.extend(ending::sweep(&mut nl)?);
        return Ok(done);
    }
    match remains(&mut nl, &link, own)? {
        notes if notes.is_empty() => Err(LinkError::NotAttached {
            interface: link.name,
        }),
        notes => Ok(Done { notes }),
    }
}
