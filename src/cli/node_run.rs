// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes behind a network of nodes; started by run, not by people.

use emud::lab;

use super::Failure;

/// Hold the namespaces of a node (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Put the host's forwarding back once emud has gone, instead
    #[arg(long)]
    keep_forwarding: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.keep_forwarding {
        lab::keep_forwarding()?;
    } else {
        lab::run_node()?;
    }
    Ok(())
}
