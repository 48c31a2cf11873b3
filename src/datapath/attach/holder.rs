// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine hold: the TAPs, and the process that holds packets.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::Duration;

use super::HolderStart;
use super::session::Session;
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::datapath::engine::hold::{self, Direction, Tap};
use crate::datapath::{LinkError, filters, pieces};
use crate::netlink::Hook;

/// Time limit for the start of the holder. It usually takes 0.1 s; on two CPUs with two builds and
/// three guests, and time stolen by the hypervisor, it took more than 10 s once. A holder that ends
/// is detected immediately.
const HOLDER_START: Duration = Duration::from_secs(60);

impl Session {
    pub(super) fn set_up_hold(&mut self) -> Result<(), LinkError> {
        if self.saved.root_taken {
            self.nl.delete_root(self.link.index)?;
        }
        for direction in DIRECTIONS {
            let Some(name) = self.saved.devices[direction as usize].clone() else {
                continue;
            };
            let tap = hold::tap::create(&name, self.link.mtu)?;
            let resume = filters::of_program(
                &self.loaded,
                pieces::tap_program(direction),
                Hook::Ingress,
                1,
            )?;
            self.nl.attach_bpf_filter(tap.ifindex, &resume)?;
            self.add_keeper(tap.ifindex)?;
            // It has the record: the end of a killed holder must not delete it.
            Tap::persist(tap.fd.as_fd(), true)?;
            self.targets[direction as usize] = tap.ifindex;
            let side = if direction == abi::EMUD_UP {
                Direction::Up
            } else {
                Direction::Down
            };
            self.taps.push((tap.fd, side));
        }
        Ok(())
    }

    pub(super) fn start_holder(
        &mut self,
        holder: &impl Fn(HolderStart) -> Command,
    ) -> Result<(), LinkError> {
        let program_id = self.program_id()?;
        let mut start = HolderStart {
            ifindex: self.link.index,
            program_id,
            taps: [None; 2],
            limit_bytes: self.saved.hold_limits,
            ready: -1,
        };
        for (fd, direction) in &self.taps {
            start.taps[*direction as usize] = Some(fd.as_raw_fd());
        }
        let inherit: Vec<_> = self.taps.iter().map(|(fd, _)| fd.as_fd()).collect();
        let holder = hold::spawn::spawn(
            |ready| holder(HolderStart { ready, ..start }),
            &inherit,
            HOLDER_START,
        )?;
        self.spare(holder.id());
        Ok(())
    }

    pub(super) fn spare(&mut self, holder: u32) {
        if let Err(e) = hold::spare(holder) {
            self.saved.notes.push(format!(
                "the kernel may end the holder, and with it the link, when memory runs out: its \
                 oom_score_adj cannot be lowered ({e}), which requires CAP_SYS_RESOURCE"
            ));
        }
    }
}
