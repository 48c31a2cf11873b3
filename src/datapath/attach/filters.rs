// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filters of a link.

use super::session::Session;
use crate::datapath::maps::Program;
use crate::datapath::programs::is_by_tcx;
use crate::datapath::programs::place_of;
use crate::datapath::{LinkError, filters, hook, moved};
use crate::netlink::{self, Hook};

impl Session {
    pub(super) fn add_filter(&mut self, direction: u32) -> Result<(), LinkError> {
        let hook = hook(direction);
        if is_by_tcx(self.saved.engine, direction) {
            let program = self.loaded.program_fd(Program::Egress)?;
            netlink::attach_tcx(self.link.index, hook, program)?;
            return Ok(());
        }
        let pref = self.free_pref(hook, place_of(self.saved.engine, hook))?;
        let classify = filters::of_direction(&self.loaded, direction, pref)?;
        self.nl.attach_bpf_filter(self.link.index, &classify)?;
        Ok(())
    }

    pub(super) fn free_pref(
        &mut self,
        hook: Hook,
        place: netlink::FilterOrder,
    ) -> Result<u16, LinkError> {
        let pref = self.nl.free_pref(self.link.index, hook, place)?;
        pref.ok_or_else(|| LinkError::NoPlace {
            interface: self.link.name.clone(),
            hook: hook.name(),
        })
    }

    pub(super) fn add_keeper(&mut self, device: u32) -> Result<(), LinkError> {
        let keeper = filters::keeper(&self.loaded)?;
        self.nl.attach_bpf_filter(device, &keeper)?;
        Ok(moved::mark(&mut self.nl, device, self.link.index)?)
    }
}
