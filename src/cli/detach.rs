// SPDX-License-Identifier: GPL-2.0-only

use emud::link::detach;

use super::Failure;

/// Take the emulated link away and put everything back
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  emud detach eth0")]
pub struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let done = detach::detach(&args.interface)?;
    for note in &done.notes {
        println!("{}: note: {note}", args.interface);
    }
    println!("{}: detached, as it was before", args.interface);
    Ok(())
}
