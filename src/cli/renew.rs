// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that renews the lease of a link attached with `--while-pid`; only attach starts it.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use emud::datapath::attach::Done;
use emud::datapath::detach::{self, Own};
use emud::datapath::ending::{self, LEASE, Whose};
use emud::datapath::engine::hold::{orphan, spawn};

use super::Failure;

/// Renew a link as long as a process runs (started by `emud attach`)
#[derive(Debug, clap::Args)]
pub struct Args {
    ifindex: u32,
    link: u32,
    ends_at: u64,
    whose: RawFd,
    ready: RawFd,
}

/// Starts [`run`]. If that fails, the link is removed.
pub fn start(link: &Done, whose: &Whose) -> Result<(), Failure> {
    let command = |ready: RawFd| {
        let mut command = spawn::this_program();
        command.args(["renew", &link.ifindex.to_string()]);
        command.arg(link.link_id.to_string());
        command.arg(link.ends_at.unwrap_or_default().to_string());
        command.arg(whose.as_fd().as_raw_fd().to_string());
        command.arg(ready.to_string());
        command
    };
    match spawn::spawn(command, &[whose.as_fd()], LEASE) {
        Ok(_) => Ok(()),
        Err(e) => {
            detach::at_end(link.ifindex, Own::Id(link.link_id))?;
            Err(e.into())
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    rustix::thread::set_name(orphan::RENEWER).map_err(std::io::Error::from)?;
    // SAFETY: attach passed these descriptors to this process, and nothing else in it uses them.
    let ready = unsafe { spawn::ReadyPipe::from_raw_fd(args.ready) }?;
    // SAFETY: as above.
    let whose = Whose::from(unsafe { spawn::inherited(args.whose) }?);
    orphan::watch();
    ready.ready()?;
    Ok(ending::renew(
        args.ifindex,
        args.link,
        args.ends_at,
        &whose,
    )?)
}
