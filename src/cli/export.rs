// SPDX-License-Identifier: MIT OR Apache-2.0

use clap::{Subcommand, ValueEnum};
use emud::export::{self, Direction};
use emud::profile::shipped;

use super::Failure;

/// Turn a profile into another tool's command
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the netem command that equals a profile, or what netem cannot do
    #[command(after_long_help = "\
Example:
  emud export netem geo --direction down --dev ifb0

Notes on standard error say how netem differs all the same.")]
    Netem {
        /// A shipped profile's name or a file
        profile: String,

        /// Which direction: a netem has one
        #[arg(long, value_enum, default_value_t = Side::Up)]
        direction: Side,

        /// Print the whole tc command for this device, not only the part from `netem` on
        #[arg(long, value_name = "IFACE")]
        dev: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Side {
    Up,
    Down,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let Verb::Netem {
        profile,
        direction,
        dev,
    } = &args.verb;
    let direction = match direction {
        Side::Up => Direction::Up,
        Side::Down => Direction::Down,
    };
    let exported = export::netem(&shipped::find(profile)?, direction, dev.as_deref())?;
    super::out(&format!("{}\n", exported.command))?;
    for note in &exported.notes {
        eprintln!("emud: note: {note}");
    }
    Ok(())
}
