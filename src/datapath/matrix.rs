// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of addresses with separate figures: written all at once, and read back.

use super::change::make_room;
use super::compiled::compile_there;
use super::maps::pairs::Applied;
use super::{LinkError, attachment};
use crate::host::interface;
use crate::netlink::Netlink;
use crate::profile::{Pair, Profile};

/// Changes the pairs of an interface, all between two packets.
///
/// `interface` may be `None` if only one has an emulated link. With `replace`, pairs that are not
/// given return to the base link.
///
/// # Errors
/// Nothing is attached, it has no matrix, or no room; nothing changes then.
pub fn apply(
    interface: Option<&str>,
    pairs: &[Pair],
    replace: bool,
) -> Result<(String, Applied), LinkError> {
    let mut nl = Netlink::open()?;
    let link = match interface {
        Some(name) => nl.link(name)?,
        None => attachment::only(&mut nl)?,
    };
    let _lock = interface::lock(link.index, interface::PATIENCE)?;
    let mut there = attachment::running(&mut nl, &link)?;
    let profile = Profile::parse(&there.saved.profile, "the profile in the kernel")?;
    if profile.matrix.is_none() {
        return Err(LinkError::NoMatrix {
            interface: link.name,
        });
    }
    if let Some((pair, least_ns)) = profile.too_short(pairs) {
        return Err(LinkError::ShortPair {
            interface: link.name,
            pair: Box::new(*pair),
            least_ns,
        });
    }
    if there.saved.engine.is_stamped() {
        let both = compile_there(&there.maps, &profile, &there.saved)?;
        make_room(&mut nl, &link, &mut there, &both, pairs)?;
        there.saved.write(&mut there.maps)?;
    }
    match there.maps.apply_pairs(pairs, replace)? {
        Ok(applied) => Ok((link.name, applied)),
        Err(full) => Err(LinkError::MatrixFull {
            interface: link.name,
            full,
        }),
    }
}

/// Returns the active pairs of an interface.
///
/// # Errors
/// Nothing is attached, or it cannot be read.
pub fn show(interface: &str) -> Result<Vec<Pair>, LinkError> {
    let mut nl = Netlink::open()?;
    let link = nl.link(interface)?;
    let there = attachment::get(&mut nl, &link)?;
    let profile = Profile::parse(&there.saved.profile, "the profile in the kernel")?;
    if profile.matrix.is_none() {
        return Err(LinkError::NoMatrix {
            interface: link.name,
        });
    }
    Ok(there.maps.pairs_in_force()?)
}
