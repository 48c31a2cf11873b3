// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::change;

use super::failure::EX_USAGE;
use super::{Failure, Place};

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
    /// Interface to change; optional with --container
    #[arg(value_name = "IFACE")]
    interface: String,

    /// Keys of the profile: [up.|down.]KEY=VALUE
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<String>,
}

pub fn run(args: &Args, place: &Place) -> Result<(), Failure> {
    let omitted = place.is_container() && (args.changes.is_empty() || args.interface.contains('='));
    let (interface, changes) = match omitted {
        true => {
            let all = std::iter::once(&args.interface).chain(&args.changes);
            (place.interface(None)?, all.cloned().collect())
        }
        false => (
            place.interface(Some(&args.interface))?,
            args.changes.clone(),
        ),
    };
    if changes.is_empty() {
        let message = "no change is given: KEY=VALUE, such as delay=80ms";
        return Err(Failure::new(EX_USAGE, message));
    }
    change::change(&interface, &changes)?;
    Ok(())
}
