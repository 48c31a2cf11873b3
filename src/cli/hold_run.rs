// SPDX-License-Identifier: GPL-2.0-only
//! The holder's own process; started by attach, not by people.

use std::os::fd::RawFd;
use std::process::Command;

use emud::engine::hold::{self, Direction, HoldError, spawn};
use emud::link::attach::HolderStart;

use super::Failure;

/// Hold frames until their departure time (started by `emud attach`)
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long)]
    ifindex: u32,
    #[arg(long)]
    program: u32,
    #[arg(long)]
    up: Option<RawFd>,
    #[arg(long)]
    down: Option<RawFd>,
    #[arg(long)]
    ready: RawFd,
}

/// The command line that [`run`] understands.
pub fn command(start: HolderStart) -> Command {
    let mut command = spawn::this_program();
    command.arg("hold-run");
    command.args(["--ifindex", &start.ifindex.to_string()]);
    command.args(["--program", &start.program_id.to_string()]);
    command.args(["--ready", &start.ready.to_string()]);
    for (name, fd) in ["--up", "--down"].into_iter().zip(start.taps) {
        if let Some(fd) = fd {
            command.args([name, &fd.to_string()]);
        }
    }
    command
}

pub fn run(args: Args) -> Result<(), Failure> {
    // SAFETY: attach passed these descriptors to this process and to nobody else in it.
    let ready = unsafe { spawn::ReadyPipe::from_raw_fd(args.ready) }?;
    let result = inherited(&args).and_then(|taps| {
        let stop = hold::signal::stop_signals()
            .map_err(|source| HoldError::System { what: "signals".into(), source })?;
        Ok((taps, stop))
    });
    let (taps, stop) = match result {
        Ok(both) => both,
        Err(e) => {
            ready.failed(e.exit_code(), &e.to_string())?;
            return Err(e.into());
        }
    };
    use std::os::fd::AsFd;
    hold::serve(args.ifindex, args.program, taps, stop.as_fd(), || ready.ready())?;
    Ok(())
}

fn inherited(args: &Args) -> Result<Vec<(std::os::fd::OwnedFd, Direction)>, HoldError> {
    let mut taps = Vec::new();
    for (fd, direction) in [(args.up, Direction::Up), (args.down, Direction::Down)] {
        if let Some(fd) = fd {
            // SAFETY: as above.
            taps.push((unsafe { spawn::inherited(fd) }?, direction));
        }
    }
    Ok(taps)
}
