// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that copies the files of a node; only `emud run` starts it.

use std::path::PathBuf;

use super::Failure;

/// Copy files into the folder in standard input (started by `emud run`)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Path of that folder outside of the node
    folder: PathBuf,

    /// Shell patterns
    patterns: Vec<String>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    Ok(emud::experiment::run::collect(
        &args.folder,
        &args.patterns,
    )?)
}
