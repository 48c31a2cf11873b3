// SPDX-License-Identifier: GPL-2.0-only

mod thresholds;

use emud::watch;

use super::Failure;
use thresholds::Thresholds;

/// Notice in the kernel, within milliseconds, that the host ran out of a resource
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print all thresholds as TOML, which --config reads, and end
    #[arg(long, required = true)]
    print_config: bool,

    // Last: its heading is for all that follows.
    #[command(flatten)]
    thresholds: Thresholds,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    super::out(&watch::to_toml(&args.thresholds.config()?))
}
