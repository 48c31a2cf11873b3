// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines fq and qdisc: the ifb, the qdiscs, and the way of ingress packets to the ifb.

use super::session::Session;
use crate::abi;
use crate::datapath::engine::{fq, qdisc};
use crate::datapath::maps::Program;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::{FILTER_HANDLE, LinkError, ORPHAN_HANDLE, filters};
use crate::netlink::{self, BpfFilter, FqOptions, Hook};
use crate::profile::{Pair, Profile};

impl Session {
    pub(super) fn set_up_qdiscs(&mut self) -> Result<(), LinkError> {
        let compiled = self.compile_both()?;
        if let Some(name) = self.saved.devices[abi::EMUD_DOWN as usize].clone() {
            let ifb = fq::add_ifb(&mut self.nl, &name, &self.link)?;
            self.add_keeper(ifb)?;
            if self.saved.directions[abi::EMUD_DOWN as usize] {
                self.add_qdisc(ifb, abi::EMUD_DOWN, &compiled)?;
                self.nl.set_up(ifb, true)?;
                self.targets[abi::EMUD_DOWN as usize] = ifb;
            }
        }
        if self.saved.root_taken {
            self.nl.delete_root(self.link.index)?;
            self.add_qdisc(self.link.index, abi::EMUD_UP, &compiled)?;
            let in_order = self.qdisc.is_some() || fq::in_order(&compiled[abi::EMUD_UP as usize]);
            let queues = self.link.num_tx_queues;
            if in_order && queues > 1 {
                self.saved.notes.push(format!(
                    "up: one queue serves all {queues} transmit queues, so that packets stay in order; senders on several CPUs share its lock, as with netem"
                ));
            }
        }
        Ok(())
    }

    /// At the root of a device, which has the kernel's default root.
    fn add_qdisc(
        &mut self,
        ifindex: u32,
        direction: u32,
        compiled: &[Vec<Compiled>; 2],
    ) -> Result<(), LinkError> {
        if let Some(own) = &self.qdisc {
            return Ok(qdisc::install(
                &mut self.nl,
                ifindex,
                direction,
                own.kind(),
            )?);
        }
        let options = self.fq_options(direction, compiled);
        if direction == abi::EMUD_DOWN {
            return Ok(self
                .nl
                .add_fq(ifindex, netlink::ROOT, fq::ROOT_HANDLE, &options)?);
        }
        let in_order = fq::in_order(&compiled[abi::EMUD_UP as usize]);
        Ok(fq::install(&mut self.nl, &self.link, &options, in_order)?)
    }

    pub(super) fn qdisc_room(&self, links: &[Vec<Compiled>; 2]) -> u32 {
        let instances = self.saved.sizes.instances;
        qdisc::room(
            links,
            self.saved.directions,
            instances,
            pairs(&self.profile),
        )
    }

    fn fq_options(&mut self, direction: u32, links: &[Vec<Compiled>; 2]) -> FqOptions {
        let links = &links[direction as usize];
        let options = fq::options(links, self.saved.sizes.instances, pairs(&self.profile));
        self.saved.fq_room[direction as usize].make(options)
    }

    /// Last step: from now on every packet that the classifier passes goes to the ifb.
    pub(super) fn redirect_ingress(&mut self) -> Result<(), LinkError> {
        let Some(pref) = self.saved.mirred_pref else {
            return Ok(());
        };
        let first = self.free_pref(Hook::Ingress, netlink::Place::First)?;
        let orphan = BpfFilter {
            handle: ORPHAN_HANDLE,
            ..filters::of_program(&self.loaded, Program::Orphan, Hook::Ingress, first)?
        };
        self.nl.attach_bpf_filter(self.link.index, &orphan)?;
        let ifb = self.targets[abi::EMUD_DOWN as usize];
        self.nl
            .add_redirect(self.link.index, Hook::Ingress, pref, FILTER_HANDLE, ifb)?;
        Ok(())
    }
}

fn pairs(profile: &Profile) -> &[Pair] {
    profile.matrix.as_ref().map_or(&[], |matrix| &matrix.pairs)
}
