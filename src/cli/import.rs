// SPDX-License-Identifier: GPL-2.0-only

use std::io::Read;
use std::path::Path;

use clap::{Subcommand, ValueEnum};
use emud::import::{self, Header, Imported};
use emud::profile::{ProfileError, TextError};

use super::Failure;

/// Make a profile of a netem command or a ping log
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the profile that equals a netem command, with comments where the two differ
    #[command(after_long_help = "\
Examples:
  emud import netem 'tc qdisc add dev eth0 root netem delay 100ms 10ms loss 1%' > my.toml
  emud import netem --direction down -- netem rate 5mbit -14

Warnings say what the profile cannot say; the same is in its comments.")]
    Netem {
        /// The header to write: netem shapes what leaves a device, which is `up`
        #[arg(long, value_enum, default_value_t = Side::Up)]
        direction: Side,

        /// The command, or its part from `netem` on, as one argument or as many (after `--`)
        #[arg(value_name = "COMMAND", required = true)]
        command: Vec<String>,
    },
    /// Print the profile that a ping measured: each way half of the round trip
    #[command(after_long_help = "\
Example:
  ping -D -c 1000 -i 0.2 example.org > ping.log
  emud import ping ping.log > measured.toml")]
    Ping {
        /// What ping printed, with a line for each reply; - for standard input
        file: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Side {
    Up,
    Down,
    Both,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let imported = match args.verb {
        Verb::Netem { direction, command } => {
            let header = match direction {
                Side::Up => Header::Up,
                Side::Down => Header::Down,
                Side::Both => Header::Link,
            };
            import::netem(&command.join(" "), header, &import::tc_table)
        }
        Verb::Ping { file } => ping(&file),
    }
    .map_err(ProfileError::from)?;
    show(&imported)
}

fn ping(file: &str) -> Result<Imported, TextError> {
    let path = Path::new(file);
    let read = match file {
        "-" => {
            let mut text = Vec::new();
            std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
        }
        _ => std::fs::read(path),
    };
    let bytes = read.map_err(|error| TextError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    import::ping(&String::from_utf8_lossy(&bytes), file)
}

fn show(imported: &Imported) -> Result<(), Failure> {
    super::out(&imported.toml)?;
    for warning in &imported.warnings {
        eprintln!("emud: warning: {warning}");
    }
    Ok(())
}
