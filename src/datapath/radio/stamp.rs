// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that stamps packets when a node sends them (bpf/stamp.bpf.c).

use std::os::fd::AsFd;

use aya::Ebpf;
use emud_monitor::loader;

use super::RadioError;
use crate::abi;
use crate::datapath::maps::{DatapathError, classifier};
use crate::netlink::{BpfFilter, Hook, Netlink};

const NAME: &str = "emud_stamp";
const HANDLE: u32 = 0xe40;

/// The loaded program. The filters of TAPs keep it.
#[derive(Debug)]
pub struct Stamp {
    bpf: Ebpf,
}

impl Stamp {
    /// Loads the program.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn load() -> Result<Self, RadioError> {
        let loaded = loader(None).load(abi::STAMP_OBJECT);
        let mut bpf = loaded.map_err(DatapathError::from)?;
        let refused = |source| DatapathError::Program { name: NAME, source };
        classifier(&mut bpf, NAME)?.load().map_err(refused)?;
        Ok(Self { bpf })
    }

    /// Attaches it to what a device sends.
    pub(super) fn attach(&mut self, nl: &mut Netlink, ifindex: u32) -> Result<(), RadioError> {
        let refused = |source| DatapathError::Program { name: NAME, source };
        let program = classifier(&mut self.bpf, NAME)?;
        let filter = BpfFilter {
            hook: Hook::Egress,
            pref: 1,
            handle: HANDLE,
            program: program.fd().map_err(refused)?.as_fd(),
            name: NAME,
            classid: 0,
            chain: 0,
        };
        nl.attach_bpf_filter(ifindex, &filter)?;
        Ok(())
    }
}
