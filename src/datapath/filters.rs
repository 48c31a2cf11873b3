// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filters of the classifier.

use super::maps::{DatapathError, Loaded, Program};
use super::{FILTER_HANDLE, KEEPER_CHAIN, KEEPER_NAME, filter_classid, filter_name, hook};
use crate::netlink::{BpfFilter, Hook};

/// The one of a direction on the interface.
pub(super) fn of_direction(
    loaded: &Loaded,
    direction: u32,
    pref: u16,
) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        hook: hook(direction),
        pref,
        handle: FILTER_HANDLE,
        program: loaded.program_fd(Program::Classify)?,
        name: filter_name(direction),
        classid: filter_classid(direction),
        chain: 0,
    })
}

/// The one on emud's devices that keeps the maps, and with them the record, even if clsact of the
/// interface is deleted.
pub(super) fn keeper(loaded: &Loaded) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        hook: Hook::Ingress,
        pref: 2,
        handle: FILTER_HANDLE,
        program: loaded.program_fd(Program::Classify)?,
        name: KEEPER_NAME,
        classid: 0,
        chain: KEEPER_CHAIN,
    })
}
