// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that outlives `emud run --in-place`; started by it, not by people.

use emud::run::in_place;

use super::Failure;

/// Take the link away from an interface once standard input ends (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    interface: String,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    Ok(in_place::guard(&args.interface)?)
}
