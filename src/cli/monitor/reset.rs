// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::monitor::session::client::tell;
use serde_json::json;

use crate::cli::Failure;

/// Let a running monitor report as many alarms as at its start
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:
  emud monitor reset

Exit codes: 0 done, 64 usage, 66 no monitor runs, 77 only root may.")]
pub struct Args {
    /// Socket of the monitor [default: all monitors that run without --socket]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    tell(args.socket.as_deref(), &json!({"type": "reset"}))?;
    Ok(())
}
