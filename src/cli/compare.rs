// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use emud::experiment::results;
use emud::experiment::results::{MOST_GROUPS, Run, VerdictMark};
use serde::Serialize;

use super::failure::EX_USAGE;
use super::{CONTENTION_SEEN, DONE, Failure};

/// Put two or more experiments, or repeats of them, side by side
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud compare A.log B.log
  emud compare A.*.log --against B.*.log      repeats: means, and whether they differ
  emud compare A.*.log --against B.*.log --against C.*.log
                                              three: analysis of variance

Figures are of the measured phase, over the runs of a side that count (docs/report.md).

Exit codes: 0 all runs are clean, 3 at least one is contended, invalid, unwatched or without an
end, or a program of it failed, 64 usage, 65 not an experiment's log or damaged, 66 no such file.")]
pub struct Args {
    /// Two logs; with --against as many as there are repeats
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    #[command(flatten)]
    against: Against,

    /// Print JSON instead (docs/compare.schema.json; of three or more experiments
    /// docs/compare-groups.schema.json)
    #[arg(long)]
    json: bool,
}

/// `--against LOG...`, any number of times: an experiment each. clap's derive would put the logs of all of
/// them into one list.
#[derive(Debug)]
struct Against(Vec<Vec<PathBuf>>);

impl FromArgMatches for Against {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let groups = matches.get_occurrences::<PathBuf>("against");
        let groups = groups.into_iter().flatten();
        Ok(Self(groups.map(|logs| logs.cloned().collect()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Against {
    fn augment_args(command: Command) -> Command {
        let against = Arg::new("against").long("against").value_name("LOG");
        let against = against
            .num_args(1..)
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf));
        command
            .arg(against.help("Logs of another experiment; may be repeated, for more experiments"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the exit code.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let read = |logs: &[PathBuf]| {
        logs.iter()
            .map(|log| Run::read(log))
            .collect::<Result<Vec<_>, _>>()
    };
    let usage = |message| Err(Failure::new(EX_USAGE, message));
    let (a, b) = match (&args.logs[..], &args.against.0[..]) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        (a, [b]) => (a, &b[..]),
        (logs, []) => {
            return usage(format!(
                "{} logs: give two, or the repeats of one experiment, --against, and those of the other",
                logs.len()
            ));
        }
        (_, others) if others.len() >= MOST_GROUPS => {
            let experiments = others.len() + 1;
            return usage(format!(
                "{experiments} experiments: the limit is {MOST_GROUPS}"
            ));
        }
        (a, others) => {
            let groups = std::iter::once(a).chain(others.iter().map(|logs| &logs[..]));
            let groups = groups.map(read).collect::<Result<Vec<_>, _>>()?;
            let groups = results::compare_groups(&groups);
            return printed(args, &groups, |mark| groups.text(mark), groups.clean);
        }
    };
    let comparison = results::compare(&read(a)?, &read(b)?);
    printed(
        args,
        &comparison,
        |mark| comparison.text(mark),
        comparison.clean,
    )
}

fn printed<T: Serialize>(
    args: &Args,
    json: &T,
    text: impl FnOnce(VerdictMark) -> String,
    clean: bool,
) -> Result<u8, Failure> {
    match args.json {
        true => super::out(&super::json(json)?)?,
        false => super::out_report(text)?,
    }
    Ok(match clean {
        true => DONE,
        false => CONTENTION_SEEN,
    })
}
