// SPDX-License-Identifier: GPL-2.0-only

mod calibrate;
mod quantity;
mod record;
mod thresholds;

use clap::Subcommand;
use emud::watch;

use super::Failure;
use thresholds::Thresholds;

/// Notice in the kernel, within milliseconds, that the host ran out of a resource
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// Print all thresholds as TOML, which --config reads, and end
    #[arg(long)]
    print_config: bool,

    // Last: its heading is for all that follows.
    #[command(flatten)]
    thresholds: Thresholds,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Record(record::Args),
    Calibrate(Box<calibrate::Args>),
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.verb {
        None => super::out(&watch::to_toml(&args.thresholds.config()?)),
        Some(Verb::Record(args)) => record::run(args),
        Some(Verb::Calibrate(args)) => calibrate::run(args),
    }
}
