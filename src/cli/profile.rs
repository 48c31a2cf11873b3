// SPDX-License-Identifier: GPL-2.0-only

use clap::Subcommand;
use emud::profile::shipped::{self, SHIPPED};

use super::Failure;

/// Look at profiles
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the shipped profiles
    List,
    /// Print a profile as it was written
    #[command(after_long_help = "Example:\n  emud profile show hsdpa > mine.toml")]
    Show {
        /// A shipped profile's name or a file
        profile: String,
    },
    /// Check profiles; nothing is attached
    #[command(after_long_help = "Example:\n  emud profile check ./*.toml")]
    Check {
        /// Files, or names of shipped profiles
        #[arg(required = true)]
        profiles: Vec<String>,
    },
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.verb {
        Verb::List => list(),
        Verb::Show { profile } => super::out(&text(&profile)?),
        Verb::Check { profiles } => check(&profiles),
    }
}

fn list() -> Result<(), Failure> {
    let mut lines = String::new();
    for profile in SHIPPED {
        lines += &format!("{:22} {}\n", profile.name, profile.parse()?.description);
    }
    super::out(&lines)
}

/// As it was written, comments and all, if it is a good profile.
fn text(name: &str) -> Result<String, Failure> {
    shipped::find(name)?;
    match SHIPPED.iter().find(|shipped| shipped.name == name) {
        Some(shipped) => Ok(shipped.text.to_owned()),
        None => Ok(std::fs::read_to_string(name)?),
    }
}

/// All of them are looked at, the first failure is the one that counts.
fn check(profiles: &[String]) -> Result<(), Failure> {
    let mut first: Option<Failure> = None;
    for name in profiles {
        match shipped::find(name) {
            Ok(_) => super::out(&format!("{name}: good\n"))?,
            Err(e) if first.is_none() => first = Some(e.into()),
            Err(e) => eprintln!("emud: {e}"),
        }
    }
    first.map_or(Ok(()), Err)
}
