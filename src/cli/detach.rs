// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::detach;

use super::Failure;

/// Remove the emulated link and restore the previous state
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  emud detach eth0")]
pub struct Args {
    /// Interface to restore
    #[arg(value_name = "IFACE")]
    interface: String,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let done = detach::detach(&args.interface)?;
    let name = &args.interface;
    let notes = done
        .notes
        .iter()
        .map(|note| format!("{name}: note: {note}\n"));
    let text: String = notes
        .chain([format!("{name}: detached, previous state restored\n")])
        .collect();
    super::out(&text)
}
