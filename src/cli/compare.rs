// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::experiment::results;
use emud::experiment::results::Run;

use super::failure::EX_USAGE;
use super::{CONTENTION_SEEN, DONE, Failure};

/// Put two experiments, or repeats of two, side by side
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud compare A.log B.log
  emud compare A.*.log --against B.*.log      repeats: means, and whether they differ

Figures are of the measured phase, over the runs of a side that count (docs/report.md).

Exit codes: 0 all runs are clean, 3 at least one is contended, invalid, unwatched or without an
end, or a program of it failed, 64 usage, 65 not an experiment's log or damaged, 66 no such file.")]
pub struct Args {
    /// Two logs; with --against as many as there are repeats
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// Logs of the other experiment
    #[arg(long, value_name = "LOG", num_args = 1..)]
    against: Vec<PathBuf>,

    /// Print JSON instead (docs/compare.schema.json)
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let (a, b) = match (&args.logs[..], &args.against[..]) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        (a, b) if !b.is_empty() => (a, b),
        (logs, _) => {
            let message = format!(
                "{} logs: give two, or the repeats of one experiment, --against, and those of the other",
                logs.len()
            );
            return Err(Failure::new(EX_USAGE, message));
        }
    };
    let read = |logs: &[PathBuf]| {
        logs.iter()
            .map(|log| Run::read(log))
            .collect::<Result<Vec<_>, _>>()
    };
    let comparison = results::compare(&read(a)?, &read(b)?);
    match args.json {
        true => super::out(&super::json(&comparison)?)?,
        false => super::out(&comparison.text())?,
    }
    Ok(match comparison.clean {
        true => DONE,
        false => CONTENTION_SEEN,
    })
}
