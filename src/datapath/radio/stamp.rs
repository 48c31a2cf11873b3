// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that stamps packets when a node sends them, and the one that super-packets return by,
//! in segments (bpf/stamp.bpf.c).

use std::os::fd::AsFd;

use aya::Ebpf;
use emud_monitor::loader;

use super::RadioError;
use crate::abi;
use crate::datapath::maps::{DatapathError, classifier};
use crate::netlink::{BpfFilter, Hook, Netlink};

const NAME: &str = "emud_stamp";
const RETURN: &str = "emud_segmented";
const HANDLE: u32 = 0xe40;

/// The loaded programs. The filters of TAPs and of their nodes' loopback devices keep them.
#[derive(Debug)]
pub struct Stamp {
    bpf: Ebpf,
}

impl Stamp {
    /// Loads the programs.
    ///
    /// # Errors
    /// The kernel rejects one.
    pub fn load() -> Result<Self, RadioError> {
        let loaded = loader(None).load(abi::STAMP_OBJECT);
        let mut bpf = loaded.map_err(DatapathError::from)?;
        for name in [NAME, RETURN] {
            let refused = |source| DatapathError::Program { name, source };
            classifier(&mut bpf, name)?.load().map_err(refused)?;
        }
        Ok(Self { bpf })
    }

    /// Attaches them to what a device sends, and to what the loopback device receives.
    pub(super) fn attach(&mut self, nl: &mut Netlink, ifindex: u32) -> Result<(), RadioError> {
        for (device, hook, name) in [
            (abi::EMUD_LOOPBACK, Hook::Ingress, RETURN),
            (ifindex, Hook::Egress, NAME),
        ] {
            let refused = |source| DatapathError::Program { name, source };
            let program = classifier(&mut self.bpf, name)?;
            let filter = BpfFilter {
                hook,
                pref: 1,
                handle: HANDLE,
                program: program.fd().map_err(refused)?.as_fd(),
                name,
                classid: 0,
                chain: 0,
            };
            nl.attach_bpf_filter(device, &filter)?;
        }
        Ok(())
    }
}
