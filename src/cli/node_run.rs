// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes behind a network of nodes; only `emud run` starts them.

use emud::experiment::lab;

use super::Failure;

/// Keep the namespaces of a node (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Restore forwarding on an interface of the host when emud has ended
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
