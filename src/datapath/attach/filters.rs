// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filters of a link.

use super::session::Session;
use crate::datapath::maps::{Loaded, Program};
use crate::datapath::plan::place_of;
use crate::datapath::{
    FILTER_HANDLE, KEEPER_CHAIN, KEEPER_NAME, LinkError, filter_classid, filter_name, hook,
};
use crate::netlink::{self, BpfFilter, Hook};

impl Session {
    pub(super) fn add_filter(&mut self, direction: u32) -> Result<(), LinkError> {
        let hook = hook(direction);
        let pref = self.free_pref(hook, place_of(self.saved.engine, hook))?;
        let classify = BpfFilter {
            name: filter_name(direction),
            classid: filter_classid(direction),
            ..filter(&self.loaded, Program::Classify, hook, pref)?
        };
        self.nl.attach_bpf_filter(self.link.index, &classify)?;
        Ok(())
    }

    pub(super) fn free_pref(
        &mut self,
        hook: Hook,
        place: netlink::Place,
    ) -> Result<u16, LinkError> {
        let pref = self.nl.free_pref(self.link.index, hook, place)?;
        pref.ok_or_else(|| LinkError::NoPlace {
            interface: self.link.name.clone(),
            hook: hook.name(),
        })
    }

    /// Keeps the maps, and with them the record, even if clsact of the interface is deleted.
    pub(super) fn add_keeper(&mut self, device: u32) -> Result<(), LinkError> {
        let keeper = BpfFilter {
            name: KEEPER_NAME,
            chain: KEEPER_CHAIN,
            ..filter(&self.loaded, Program::Classify, Hook::Ingress, 2)?
        };
        self.nl.attach_bpf_filter(device, &keeper)?;
        Ok(())
    }
}

/// Returns a filter with this program, by its name.
pub(super) fn filter(
    loaded: &Loaded,
    program: Program,
    hook: Hook,
    pref: u16,
) -> Result<BpfFilter<'_>, LinkError> {
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
