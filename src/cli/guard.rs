// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that outlives `emud run --in-place`, which starts it.

use std::path::PathBuf;

use emud::experiment::run::in_place;

use super::Failure;

/// End programs and remove the link at the end of standard input (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    ifindex: u32,
    /// Control group of the programs
    programs: PathBuf,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    Ok(in_place::guard(args.ifindex, &args.programs)?)
}
