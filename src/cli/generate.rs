// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completions and man pages, generated from the definition of the command line.

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;
use emud::experiment::scenario::shipped as scenario;
use emud::profile::shipped as profile;

use super::failure::EX_CANTCREAT;
use super::{Cli, Failure, man_pages};

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
#[command(
    after_long_help = "Examples:\n  emud man /usr/share/man/man1\n  emud man --section 5 /usr/share/man/man5"
)]
pub struct ManArgs {
    /// Section: 1 (commands) or 5 (files: emud-profile, emud-scenario, emud-log)
    #[arg(long, value_name = "1|5", default_value_t = 1, value_parser = section)]
    section: u8,

    /// Folder for the man pages [default: print emud(1), or those of section 5]
    folder: Option<PathBuf>,
}

fn section(text: &str) -> Result<u8, String> {
    let found = [1, 5]
        .into_iter()
        .find(|section| section.to_string() == text);
    found.ok_or_else(|| "emud has pages in sections 1 and 5".to_owned())
}

pub fn completions(args: &CompletionArgs) -> Result<(), Failure> {
    // clap_complete panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "emud", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match args.shell {
        Shell::Bash => script += &(names() + include_str!("completions/live.bash")),
        Shell::Zsh => {
            let live = include_str!("completions/live.zsh").replace("@NAMES@", &names());
            let end = "if [ \"$funcstack[1]\" = \"_emud\" ]; then";
            script = script
                .replacen("\n_emud() {", "\n_emud_generated() {", 1)
                .replacen(end, &(live + end), 1);
        }
        Shell::Fish => {
            script += &include_str!("completions/live.fish").replace("@NAMES@", &names());
        }
        _ => {}
    }
    super::out(&script)
}

/// Returns the completion of names that exist now, which clap_complete does not know.
fn names() -> String {
    let profiles: Vec<_> = profile::SHIPPED.iter().map(|one| one.name).collect();
    let scenarios: Vec<_> = scenario::SHIPPED.iter().map(|one| one.name).collect();
    include_str!("completions/names.sh")
        .replace("@PROFILES@", &profiles.join(" "))
        .replace("@SCENARIOS@", &scenarios.join(" "))
}

/// Returns the command line without internal verbs, which clap_complete would complete.
fn shown() -> clap::Command {
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    clap::Command::new("emud")
        .args(all.get_arguments().cloned())
        .subcommands(verbs.cloned())
}

pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |folder: &Path, e: io::Error| {
        let folder = folder.display();
        let message = format!("cannot write man pages into {folder}: {e}");
        Failure::new(EX_CANTCREAT, message)
    };
    let mut pages = match args.section {
        5 => man_pages::section_5(),
        _ => man_pages::section_1(Cli::command())?,
    };
    let Some(folder) = &args.folder else {
        // Each command of emud has a separate page.
        pages.truncate(if args.section == 1 { 1 } else { pages.len() });
        return super::out(&pages.into_iter().map(|(_, page)| page).collect::<String>());
    };
    for (file, page) in pages {
        std::fs::write(folder.join(file), page).map_err(|e| failed(folder, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &clap::Command) {
        let verbs: Vec<_> = command.get_subcommands().collect();
        let names = verbs.iter().map(|verb| verb.get_name().len());
        let widest = names.max().unwrap_or(0);
        for verb in verbs {
            let name = verb.get_name();
            let about = verb.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let line = format!("  {name:widest$}  {about}");
            assert!(line.chars().count() <= 80, "{line}");
            assert!(!about.is_empty() && !about.ends_with('.'), "{line}");
            check(verb);
        }
    }

    /// At a terminal of 80 columns `--help` has a line for each verb.
    #[test]
    fn every_verb_has_a_line_of_help() {
        check(&shown());
    }
}
