// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::change;

use super::Failure;

/// Change a running link; no packet sees half of the change
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud set eth0 loss=1%                       both directions
  emud set eth0 up.delay=80ms down.rate=2Mbit
  emud set eth0 delay.jitter=5ms queue=100p
  emud set eth0 rate=none                     no rate any more
  emud set eth0 trace.restart                 traces and phases begin again

Counters, the queue and what is on its way live on.")]
pub struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,

    /// Keys of the profile: [up.|down.]KEY=VALUE
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    change::change(&args.interface, &args.changes)?;
    Ok(())
}
