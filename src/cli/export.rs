// SPDX-License-Identifier: MIT OR Apache-2.0

use clap::{Subcommand, ValueEnum};
use emud::convert::export;
use emud::convert::export::ExportDirection;
use emud::profile::shipped;
use emud::text::to_stderr;

use super::Failure;

/// Convert a profile to another tool's command
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the netem command for a profile, or what netem does not support
    #[command(after_long_help = "\
Example:
  emud export netem geo --direction down --dev ifb0
  emud export netem lte --nearest

Notes on standard error list the differences of netem that no command removes; with --nearest
warnings list each property that netem does not support.")]
    Netem {
        /// Profile to export: shipped name or path to a TOML file
        profile: String,

        /// Direction to export: a netem has only one
        #[arg(long, value_enum, default_value_t = ExportSide::Up)]
        direction: ExportSide,

        /// Print the whole tc command for this device, not only the part from `netem` on
        #[arg(long, value_name = "IFACE", value_parser = device)]
        dev: Option<String>,

        /// Export the nearest netem command if netem does not support the profile, and list each
        /// difference [default: such a profile is an error]
        #[arg(long)]
        nearest: bool,
    },
    /// Print the htb tree for a bottleneck, or what tc does not support
    #[command(after_long_help = "\
Example:
  emud export tc tiainen-tree --dev eth1

Notes on standard error list the differences of htb and netem that no command removes.")]
    Tc {
        /// Profile to export: shipped name or path to a TOML file
        profile: String,

        /// Direction to export: a tree has only one
        #[arg(long, value_enum, default_value_t = ExportSide::Up)]
        direction: ExportSide,

        /// Device in the commands
        #[arg(long, value_name = "IFACE", value_parser = device)]
        dev: String,
    },
}

/// Parses a name of a device as it can be in a command: as the kernel accepts it, and without
/// characters that a shell interprets. A variable (`$DEV`) is possible.
fn device(text: &str) -> Result<String, String> {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"/;|&<>()`'\"\\*?".contains(c);
    match !text.is_empty() && text.len() < 16 && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a command needs the name of an interface, such as eth0".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportSide {
    Up,
    Down,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let exported = match &args.verb {
        Verb::Netem {
            profile,
            direction,
            dev,
            nearest,
        } => {
            let (profile, dev) = (shipped::find(profile)?, dev.as_deref());
            match nearest {
                true => export::nearest_netem(&profile, (*direction).into(), dev),
                false => export::netem(&profile, (*direction).into(), dev)?,
            }
        }
        Verb::Tc {
            profile,
            direction,
            dev,
        } => export::tc(&shipped::find(profile)?, (*direction).into(), dev)?,
    };
    super::out(&format!("{}\n", exported.command))?;
    for difference in &exported.differences {
        to_stderr(format_args!("emud: warning: not exported: {difference}"));
    }
    for note in &exported.notes {
        to_stderr(format_args!("emud: note: {note}"));
    }
    Ok(())
}

impl From<ExportSide> for ExportDirection {
    fn from(side: ExportSide) -> Self {
        match side {
            ExportSide::Up => Self::Up,
            ExportSide::Down => Self::Down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn a_command_has_a_device() {
        for good in ["eth0", "v0.5", "$DEV", "enp0s31f6"] {
            assert_eq!(device(good).as_deref(), Ok(good));
        }
        for bad in ["", "a b", "a;b", "../x", "a'b", "abcdefghijklmnop", "$(x)"] {
            assert!(device(bad).is_err(), "{bad}");
        }
    }
}
