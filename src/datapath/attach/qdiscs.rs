// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines fq and qdisc: the ifb, the qdiscs, and the way of ingress packets to the ifb.

use super::session::Session;
use crate::abi;
use crate::datapath::engine::{fq, qdisc};
use crate::datapath::maps::Program;
use crate::datapath::{FILTER_HANDLE, LinkError, ORPHAN_HANDLE, filters};
use crate::netlink::{self, BpfFilter, FqOptions, Hook};

impl Session {
    pub(super) fn set_up_qdiscs(&mut self) -> Result<(), LinkError> {
        if let Some(name) = self.saved.devices[abi::EMUD_DOWN as usize].clone() {
            let ifb = fq::add_ifb(&mut self.nl, &name, &self.link)?;
            self.add_keeper(ifb)?;
            if self.saved.directions[abi::EMUD_DOWN as usize] {
                self.add_qdisc(ifb, abi::EMUD_DOWN)?;
                // fq takes its quantum from the MTU that it finds.
                self.nl.set_mtu(ifb, fq::IFB_MTU)?;
                self.nl.set_up(ifb, true)?;
                self.targets[abi::EMUD_DOWN as usize] = ifb;
            }
        }
        if self.saved.root_taken {
            // One that another process has made since the plan is not emud's to delete, and adding fails.
            if self.saved.root.is_some() {
                self.nl.delete_root(self.link.index)?;
            }
            self.add_qdisc(self.link.index, abi::EMUD_UP)?;
            let in_order = fq::in_order(&self.both[abi::EMUD_UP as usize]);
            let queues = self.nl.transmit_queues(&self.link);
            if (in_order || self.qdisc.is_some()) && queues > 1 {
                let why = match in_order {
                    true => ", so that packets stay in order",
                    false => "",
                };
                self.saved.notes.push(format!(
                    "up: one queue serves all {queues} transmit queues{why}; senders on several CPUs share its lock, as with netem"
                ));
            }
        }
        Ok(())
    }

    /// Adds the qdisc at the root of a device, which has the kernel's default root.
    fn add_qdisc(&mut self, ifindex: u32, direction: u32) -> Result<(), LinkError> {
        if let Some(own) = &self.qdisc {
            return Ok(qdisc::install(
                &mut self.nl,
                ifindex,
                direction,
                own.kind(),
            )?);
        }
        let options = self.fq_options(direction);
        if direction == abi::EMUD_DOWN {
            return Ok(self
                .nl
                .add_fq(ifindex, netlink::ROOT, fq::ROOT_HANDLE, &options)?);
        }
        let in_order = fq::in_order(&self.both[abi::EMUD_UP as usize]);
        Ok(fq::install(&mut self.nl, &self.link, &options, in_order)?)
    }

    fn fq_options(&mut self, direction: u32) -> FqOptions {
        let links = &self.both[direction as usize];
        let options = fq::options(links, self.saved.sizes.instances, self.profile.pairs());
        self.saved.fq_room[direction as usize].make(options)
    }

    /// Redirects ingress packets to the ifb, the last step: from now on all that the classifier passes go there.
    pub(super) fn redirect_ingress(&mut self) -> Result<(), LinkError> {
        let Some(pref) = self.saved.mirred_pref else {
            return Ok(());
        };
        let first = self.free_pref(Hook::Ingress, netlink::FilterOrder::First)?;
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
