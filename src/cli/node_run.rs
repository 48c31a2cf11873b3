// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes behind a network of nodes; started by run, not by people.

use emud::experiment::lab;

use super::Failure;

/// Hold the namespaces of a node (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Put forwarding on an interface of the host back once emud has gone, instead
    #[arg(long, value_name = "IFINDEX")]
    keep_forwarding: Option<u32>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match args.keep_forwarding {
        Some(ifindex) => lab::keep_forwarding(ifindex)?,
        None => lab::run_node()?,
    }
    Ok(())
}
