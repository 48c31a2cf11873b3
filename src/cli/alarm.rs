// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::monitor::session::client::report;
use serde_json::json;

use super::Failure;

/// Report contention that a program noticed to a running monitor
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud alarm \"receiver jitter\" --value 12ms --threshold 10ms
  emud alarm \"frames lost\" --value 3packets
  emud alarm \"sender fell behind\"

A value is a whole number or has a unit: 12ms, 1500B, 3packets, 7pages. A program may also write
the line of JSON itself (docs/log-format.md).

Exit codes: 0 the monitor accepted it, 64 it rejected it, 66 no monitor runs, 74 the connection to it
broke, 77 this user may not report.")]
pub struct Args {
    /// Name of the contention
    name: String,

    /// Measured value
    #[arg(long)]
    value: Option<String>,

    /// Limit that the value exceeded
    #[arg(long, requires = "value")]
    threshold: Option<String>,

    /// The monitor's socket [default: that of the run, outside a run all monitors that run without
    /// --socket]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut message = json!({"name": args.name});
    if let Some(value) = &args.value {
        message["value"] = json!(value);
    }
    if let Some(threshold) = &args.threshold {
        message["threshold"] = json!(threshold);
    }
    report(args.socket.as_deref(), &message)?;
    Ok(())
}
