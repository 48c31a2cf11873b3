// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of contention: the flags of `emud monitor` and `emud monitor calibrate`, which
//! are shorthands for keys of the file.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use emud::monitor::settings as watch;
use emud::monitor::settings::{Argument, COMMAND_LINE};
use emud::text::TextError;
use emud_monitor::Config;
use emud_monitor::criteria::sections;
use emud_monitor::criteria::table::{Flag, Kind};

use crate::cli::Failure;
use crate::cli::failure::EX_USAGE;

/// Thresholds and windows; the keys are those of docs/monitor.md.
#[derive(Debug, Default)]
pub struct Thresholds {
    config: Option<PathBuf>,
    arguments: Vec<Argument>,
}

const CONFIG_HELP: &str =
    "Read thresholds from a TOML file (docs/monitor.md), or use `shared` (docs/ci.md)";
const SET: Flag = Flag {
    name: "set",
    value: "KEY=VALUE",
};
const SET_HELP: &str =
    "Set any key of the file: cpu.theta=50ms, network.device.eth0=900Mbit, memory=off";

impl clap::Args for Thresholds {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE|shared")
            .value_parser(value_parser!(PathBuf))
            .help(CONFIG_HELP);
        let names = sections().filter(|section| section.is_optional());
        let names: Vec<_> = names.map(|section| section.name).collect();
        let only = Arg::new("only")
            .long("only")
            .value_name("CRITERION,...")
            .action(ArgAction::Append)
            .help(format!(
                "Watch only these resources: {}, application",
                names.join(", ")
            ));
        let flags = sections().flat_map(|section| {
            let keys = section.keys.iter();
            let keys = keys.filter_map(|key| Some(arg(key.flag?, key.help, is_named(key.kind))));
            keys.chain(
                section
                    .pair
                    .map(|flag| arg(flag, section.keys[0].help, false)),
            )
        });
        command
            .next_help_heading("Thresholds")
            .args([file, arg(SET, SET_HELP, true), only])
            .args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(flag: Flag, help: &'static str, many: bool) -> Arg {
    let action = match many {
        true => ArgAction::Append,
        false => ArgAction::Set,
    };
    Arg::new(flag.name)
        .long(flag.name)
        .value_name(flag.value)
        .action(action)
        .help(help.trim_start())
}

fn is_named(kind: Kind) -> bool {
    matches!(kind, Kind::Named(..))
}

impl FromArgMatches for Thresholds {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name| {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            values.map(String::as_str)
        };
        let mut arguments: Vec<_> = given(SET.name).map(Argument::set).collect();
        for section in sections() {
            for key in section.keys {
                let Some(flag) = key.flag else { continue };
                let (name, path) = (format!("--{}", flag.name), (section.name, key.name));
                arguments.extend(given(flag.name).map(|value| match is_named(key.kind) {
                    true => Argument::named(&name, path, value),
                    false => Argument::key(&name, path, value),
                }));
            }
            let pair = section.pair.into_iter();
            arguments.extend(pair.flat_map(|flag| given(flag.name)).map(Argument::psi));
        }
        arguments.extend(given("only").map(Argument::only));
        Ok(Self {
            config: matches.get_one("config").cloned(),
            arguments,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Thresholds {
    /// Returns the configuration: the defaults, the file over them, the flags over both.
    ///
    /// # Errors
    /// Every mistake at once; 64 if all are on the command line, 65 if some are in the file, 66
    /// without it.
    pub fn config(&self) -> Result<Config, Failure> {
        watch::config(self.config.as_deref(), &self.arguments).map_err(|error| {
            let code = match &error {
                TextError::Mistakes(m) if m.iter().all(|one| m.origin(one) == COMMAND_LINE) => {
                    EX_USAGE
                }
                other => other.exit_code(),
            };
            Failure::new(code, error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use emud_monitor::criteria::table::Of;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        thresholds: Thresholds,
    }

    fn config(line: &str) -> Result<Config, Failure> {
        let words = ["emud"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().thresholds.config()
    }

    /// Each flag sets its key and nothing else.
    #[test]
    fn every_flag_is_its_key() {
        for section in sections() {
            let (mut line, mut toml) = (String::new(), String::new());
            for (n, key) in section.keys.iter().enumerate() {
                let Some(flag) = key.flag else { continue };
                let value = match key.kind {
                    Kind::Time(..) | Kind::Named(_, Of::Time(..) | Of::Window(..)) => {
                        format!("{}ms", 150 + n)
                    }
                    Kind::Rate | Kind::Named(_, Of::Rate) => format!("{}Gbit", n + 2),
                    Kind::Word(words) => words[words.len() - 1].to_owned(),
                    Kind::Named(_, Of::Word(words)) => words[0].to_owned(),
                    Kind::Share(..) => format!("{}%", n + 2),
                    Kind::Count(..) => (n + 5).to_string(),
                };
                let [of, below] = if is_named(key.kind) {
                    ["a=", ".a"]
                } else {
                    ["", ""]
                };
                line += &format!("--{} {of}{value} ", flag.name);
                toml += &format!("{}.{}{below} = \"{value}\"\n", section.name, key.name);
            }
            assert_eq!(
                config(&line).unwrap(),
                watch::parse(&toml, "").unwrap(),
                "{line}"
            );
            let said = config(&line).unwrap() != Config::default();
            assert_eq!(said, !line.is_empty(), "{line}");
        }
    }

    #[test]
    fn flags_that_are_more_than_a_key() {
        for (flags, toml) in [
            ("--psi 5ms/1s", "psi = { stall = \"5ms\", window = \"1s\" }"),
            (
                "--set cpu.theta=5ms --set disk=off",
                "cpu.theta = \"5ms\"\ndisk = \"off\"",
            ),
            (
                "--only cpu,memory --only cpu,memory",
                "network = \"off\"\ndisk = \"off\"\nemulator = \"off\"",
            ),
        ] {
            let expected = watch::parse(toml, "").unwrap();
            assert_ne!(expected, Config::default());
            assert_eq!(config(flags).unwrap(), expected, "{flags}");
        }
    }

    #[test]
    fn exit_codes() {
        assert_eq!(config("--cpu-theta 0ms").unwrap_err().code, 64);
        assert_eq!(config("--config /no/such").unwrap_err().code, 66);
        let file = std::env::temp_dir().join(format!("emud-thresholds-{}", std::process::id()));
        std::fs::write(&file, "[gpu]").unwrap();
        let line = format!("--config {} --limit 0", file.display());
        assert_eq!(config(&line).unwrap_err().code, 65);
        std::fs::remove_file(&file).unwrap();
    }
}
