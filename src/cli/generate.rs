// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completions and man pages, generated from the definition of the command line.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;
use emud::experiment::scenario::shipped as scenario;
use emud::profile::shipped as profile;

use super::{Cli, Failure};

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Example:\n  emud completions bash > /usr/share/bash-completion/completions/emud"
)]
pub struct CompletionArgs {
    shell: Shell,
}

/// Write the man pages into a folder
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  emud man /usr/share/man/man1")]
pub struct ManArgs {
    /// Folder for the man pages [default: print emud(1)]
    folder: Option<PathBuf>,
}

pub fn completions(args: &CompletionArgs) -> Result<(), Failure> {
    // clap_complete panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "emud", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        let profiles: Vec<_> = profile::SHIPPED.iter().map(|one| one.name).collect();
        let scenarios: Vec<_> = scenario::SHIPPED.iter().map(|one| one.name).collect();
        script += &(LIVE.replace("@PROFILES@", &profiles.join(" ")))
            .replace("@SCENARIOS@", &scenarios.join(" "));
    }
    super::out(&script)
}

/// The command line without internal verbs, which clap_complete would complete.
fn shown() -> clap::Command {
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    clap::Command::new("emud")
        .args(all.get_arguments().cloned())
        .subcommands(verbs.cloned())
}

/// What clap_complete does not know: names that exist now.
const LIVE: &str = include_str!("completions.bash");

pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return super::out(&String::from_utf8_lossy(&page));
    };
    clap_mangen::generate_to(Cli::command(), folder).map_err(|e| {
        Failure::os(format!(
            "cannot write man pages into {}: {e}",
            folder.display()
        ))
    })
}
