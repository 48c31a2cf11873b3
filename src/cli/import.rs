// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use emud::import::{self, Header, Imported};
use emud::profile::{ProfileError, TextError};

use super::Failure;
use super::failure::EX_CANTCREAT;

/// Make a profile of a netem command, a ping log or a Mahimahi trace
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
    /// Write the profile whose up and down are two traces of Mahimahi
    #[command(after_long_help = "\
Example:
  emud import mahimahi Verizon-LTE.up Verizon-LTE.down -o verizon.toml

The profile names the files: by their places relative to it if they are in its folder or below,
else by their whole paths.")]
    Mahimahi {
        /// Delivery opportunities of what leaves the interface, a time in ms a line
        up: PathBuf,
        /// The same of what arrives
        down: PathBuf,
        /// Where to write it; else it is printed
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
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
        Verb::Mahimahi { up, down, output } => return mahimahi(&up, &down, output.as_deref()),
    }
    .map_err(ProfileError::from)?;
    show(&imported)
}

fn mahimahi(up: &Path, down: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let folder = output.map(|file| file.parent().unwrap_or(Path::new("")));
    // An empty one is this one.
    let folder = folder.map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let imported = import::mahimahi(up, down, folder)?;
    match output {
        None => show(&imported),
        Some(file) => std::fs::write(file, &imported.toml).map_err(|e| {
            Failure::new(
                EX_CANTCREAT,
                format!("cannot write {}: {e}", file.display()),
            )
        }),
    }
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
