// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filters that run the programs of a link.

use super::attachment::Ours;
use super::engine::Engine;
use super::maps::{DatapathError, Loaded, Program};
use super::{
    FILTER_HANDLE, KEEPER_CHAIN, KEEPER_NAME, LinkError, filter_classid, filter_name, hook,
    programs,
};
use crate::netlink::{self, BpfFilter, Hook, Netlink, NetlinkError};

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

/// Replaces the program of a direction.
pub(super) fn replace(
    nl: &mut Netlink,
    ifindex: u32,
    ours: &Ours,
    engine: Engine,
    again: &Loaded,
) -> Result<(), LinkError> {
    match ours.pref {
        Some(pref) => {
            let filter = of_direction(again, ours.direction, pref)?;
            nl.replace_bpf_filter(ifindex, &filter)?;
        }
        None => {
            let program = programs::of_direction(engine, ours.direction);
            let program = again.program_fd(program)?;
            netlink::replace_tcx(ifindex, hook(ours.direction), ours.program_id, program)?;
        }
    }
    Ok(())
}

/// Deletes the filter of a direction, or detaches its program.
pub(super) fn delete(nl: &mut Netlink, ifindex: u32, ours: &Ours) -> Result<(), NetlinkError> {
    let hook = hook(ours.direction);
    match ours.pref {
        Some(pref) => nl.delete_filter(ifindex, hook, c"bpf", pref, FILTER_HANDLE),
        None => netlink::detach_tcx(ifindex, hook, ours.program_id),
    }
}

/// Returns the filter on emud's devices that keeps the maps, and with them the record, even if clsact
/// of the interface is deleted.
pub(super) fn keeper(loaded: &Loaded) -> Result<BpfFilter<'_>, DatapathError> {
    Ok(BpfFilter {
        name: KEEPER_NAME,
        chain: KEEPER_CHAIN,
        ..of_program(loaded, loaded.main(), Hook::Ingress, 2)?
    })
}
