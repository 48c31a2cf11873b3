// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder's process; only attach starts it.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::process::Command;

use emud::datapath::attach::HolderStart;
use emud::datapath::engine::hold;
use emud::datapath::engine::hold::{Direction, HoldError, spawn};
use emud::datapath::maps::Maps;
use emud::datapath::{serve, sweep};
use emud::netlink::Netlink;

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
    #[arg(long, num_args = 2)]
    limit_bytes: Vec<u64>,
    #[arg(long)]
    ready: RawFd,
}

/// Bytes of a thread's stack, all of them locked in memory: a holder has five threads, and took 88
/// MB where a test had set RUST_MIN_STACK to 16 MiB.
const STACK: &str = "1048576";

/// Returns the command line for [`run`].
pub fn command(start: HolderStart) -> Command {
    let mut command = spawn::this_program();
    command.arg("hold-run");
    command.env("RUST_MIN_STACK", STACK);
    command.args(["--ifindex", &start.ifindex.to_string()]);
    command.args(["--program", &start.program_id.to_string()]);
    command.args(["--ready", &start.ready.to_string()]);
    let limits = start.limit_bytes.map(|bytes| bytes.to_string());
    command.arg("--limit-bytes").args(limits);
    for (name, fd) in ["--up", "--down"].into_iter().zip(start.taps) {
        if let Some(fd) = fd {
            command.args([name, &fd.to_string()]);
        }
    }
    command
}

pub fn run(args: Args) -> Result<(), Failure> {
    // ps and top would show a process started from /proc/self/exe as "exe".
    rustix::thread::set_name(hold::orphan::HOLDER).map_err(std::io::Error::from)?;
    // SAFETY: attach passed these descriptors to this process, and nothing else in it uses them.
    let ready = unsafe { spawn::ReadyPipe::from_raw_fd(args.ready) }?;
    match prepare(&args) {
        Ok((taps, stop, maps)) => {
            hold::orphan::watch();
            serve::serve(
                args.ifindex,
                maps,
                (taps, [args.limit_bytes[0], args.limit_bytes[1]]),
                stop.as_fd(),
                || ready.ready(),
            )?;
            // The holder may have ended because the device was deleted.
            sweep::sweep(&mut Netlink::open()?)?;
            Ok(())
        }
        Err(e) => {
            ready.failed(e.code, &e.message)?;
            Err(e)
        }
    }
}

type Taps = Vec<(OwnedFd, Direction)>;

fn prepare(args: &Args) -> Result<(Taps, OwnedFd, Maps), Failure> {
    let taps = inherited(args)?;
    let stop = hold::signal::stop_signals()?;
    Ok((taps, stop, Maps::of_program(args.program)?))
}

fn inherited(args: &Args) -> Result<Taps, HoldError> {
    let mut taps = Vec::new();
    for (fd, direction) in [(args.up, Direction::Up), (args.down, Direction::Down)] {
        if let Some(fd) = fd {
            // SAFETY: as above.
            taps.push((unsafe { spawn::inherited(fd) }?, direction));
        }
    }
    Ok(taps)
}
