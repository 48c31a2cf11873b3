// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::Duration;

use emud::datapath::{change, ending};

use super::failure::EX_USAGE;
use super::{CliTarget, Failure};

/// Change a running link; no packet sees half of the change
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud set eth0 loss=1%                       both directions
  emud set eth0 up.delay=80ms down.rate=2Mbit
  emud set eth0 delay.jitter=5ms queue=100p
  emud set eth0 rate=none                     remove the rate
  emud set eth0 trace.restart                 restart traces and phases
  emud set eth0 --for 10min                   end 10 min from now

Counters, the queue and packets in flight are kept.")]
pub struct Args {
    /// Interface to change; optional with --container
    #[arg(value_name = "IFACE", required_unless_present = "lasts")]
    interface: Option<String>,

    /// Keys of the profile: [up.|down.]KEY=VALUE
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<String>,

    /// End after this time, instead of at an earlier --for or --while-pid: the kernel passes all packets
    /// unchanged from then on
    #[arg(long = "for", value_name = "TIME", value_parser = super::attach::lasting)]
    lasts: Option<Duration>,
}

pub fn run(args: &Args, place: &CliTarget) -> Result<(), Failure> {
    let given = args.interface.as_deref();
    let is_change =
        |text: &str| text.contains('=') || args.changes.is_empty() && args.lasts.is_none();
    let (interface, changes) = match given {
        Some(first) if place.is_container() && is_change(first) => {
            let all = std::iter::once(first.to_owned()).chain(args.changes.iter().cloned());
            (place.interface(None)?, all.collect())
        }
        given => (place.interface(given)?, args.changes.clone()),
    };
    if changes.is_empty() && args.lasts.is_none() {
        let message = "no change is given: KEY=VALUE, such as delay=80ms, or --for TIME";
        return Err(Failure::new(EX_USAGE, message));
    }
    if !changes.is_empty() {
        for note in change::change(&interface, &changes)? {
            super::out(&format!("{interface}: note: {note}\n"))?;
        }
    }
    if let Some(lasts) = args.lasts {
        ending::end_after(&interface, lasts)?;
    }
    Ok(())
}
