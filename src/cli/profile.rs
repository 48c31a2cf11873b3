// SPDX-License-Identifier: GPL-2.0-only

use std::path::Path;

use clap::Subcommand;
use emud::profile::{Profile, shipped};

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
        Verb::Show { profile } => {
            print!("{}", shipped::text(&profile)?);
            Ok(())
        }
        Verb::Check { profiles } => check(&profiles),
    }
}

fn list() -> Result<(), Failure> {
    for name in shipped::names() {
        println!("{name:22} {}", Profile::find(name)?.description);
    }
    Ok(())
}

/// All of them are looked at, the first failure is the one that counts.
fn check(profiles: &[String]) -> Result<(), Failure> {
    let mut first: Option<Failure> = None;
    for name in profiles {
        match Profile::find(name) {
            Ok(_) => println!("{}: good", Path::new(name).display()),
            Err(e) if first.is_none() => first = Some(e.into()),
            Err(e) => eprintln!("emud: {e}"),
        }
    }
    first.map_or(Ok(()), Err)
}
