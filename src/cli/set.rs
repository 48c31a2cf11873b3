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
  emud set eth0 rate=none                     remove the rate
  emud set eth0 trace.restart                 restart traces and phases

Counters, the queue and packets in flight are kept.")]
pub struct Args {
    /// Interface to change
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
