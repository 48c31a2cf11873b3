// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filters that run the programs of a link.

use super::maps::{DatapathError, Loaded, Program};
use super::{FILTER_HANDLE, KEEPER_CHAIN, KEEPER_NAME, filter_classid, filter_name, hook};
use crate::netlink::{BpfFilter, Hook};

/// Returns a filter with this program, by its name.
pub(super) fn of_program(
    loaded: &Loaded,
    program: Program,
    hook: Hook,
    pref: u16,
) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        hook,
        pref,
        handle: FILTER_HANDLE,
        program: loaded.program_fd(program)?,
        name: program.name(),
        classid: 0,
        chain: 0,
    })
}

/// Returns the classifier of a direction.
pub(super) fn of_direction(
    loaded: &Loaded,
    direction: u32,
    pref: u16,
) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        name: filter_name(direction),
        classid: filter_classid(direction),
        ..of_program(loaded, Program::Classify, hook(direction), pref)?
    })
}

/// Returns the filter on emud's devices that keeps the maps, and with them the record, even if clsact
/// of the interface is deleted.
pub(super) fn keeper(loaded: &Loaded) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        name: KEEPER_NAME,
        chain: KEEPER_CHAIN,
        ..of_program(loaded, Program::Classify, Hook::Ingress, 2)?
    })
}
