// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::path::{Path, PathBuf};

use emud::experiment::report as page;
use emud::experiment::results::{Logged, Run, compare, summarise};
use emud::text::to_stderr;

use super::failure::{EX_CANTCREAT, EX_USAGE};
use super::{Failure, is_same};

/// Make a page of the logs of experiments, for a browser
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud report run.log -o run.html
  emud report run.log --text              verdict, figures and contention as text
  emud report run.log --svg plots/        plots alone, a file for each direction of a link
  emud report run.*.log -o run.html       repeats: each figure over all runs
  emud report A.*.log --against B.*.log -o ab.html

The page needs neither scripts nor a network. That of one log has the verdict, what was configured
and what was measured, plots with contention shaded, alarms, and what programs said; that of several
has means and every run (docs/report.md). The log of several hosts, of `emud fleet run`, has one page of all.

Exit codes: 0 written, whatever the verdict is, 64 the page would overwrite a log, 65 not an experiment's log or damaged, 66 no such file,
73 the page or a plot cannot be written.")]
pub struct Args {
    /// Logs that `emud run --log` wrote; several are repeats of an experiment
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// Logs of another experiment to compare with
    // Once: a second one would be another experiment, and a page compares two.
    #[arg(long, value_name = "LOG", num_args = 1.., action = clap::ArgAction::Set)]
    against: Vec<PathBuf>,

    /// Page to write; - for standard output
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["svg", "text"])]
    output: Option<PathBuf>,

    /// Print the report as text
    #[arg(long)]
    text: bool,

    /// Write the plots into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut logs = args.logs.iter().chain(&args.against);
    if let Some(output) = &args.output
        && logs.any(|log| is_same(log, output))
    {
        let message = format!("the page would overwrite its log, {}", output.display());
        return Err(Failure::new(EX_USAGE, message));
    }
    // Before anything is written.
    if args.svg.is_some() && args.logs.len() + args.against.len() > 1 {
        return Err(Failure::new(EX_USAGE, "--svg draws the plots of one log"));
    }
    let logs = Logs::read(args)?;
    if let Some(output) = &args.output {
        let page = match &logs {
            Logs::One(log) => page::html(log)?,
            Logs::Repeats(runs) => page::repeats(runs)?,
            Logs::Two(a, b) => page::compared(a, b)?,
        };
        match output.as_os_str() == "-" {
            true => super::out(&page)?,
            false => write(output, &page)?,
        }
    }
    if args.text {
        super::out_report(|mark| match &logs {
            Logs::One(log) => page::text(log, mark),
            Logs::Repeats(runs) => summarise(runs).text(mark),
            Logs::Two(a, b) => compare(a, b).text(mark),
        })?;
    }
    if let (Some(directory), Logs::One(log)) = (&args.svg, &logs) {
        std::fs::create_dir_all(directory).map_err(|e| cannot(directory, &e))?;
        let plots = page::plots(log)?;
        if plots.is_empty() {
            to_stderr(format_args!(
                "emud: {} has no samples: there is nothing to plot",
                args.logs[0].display()
            ));
        }
        for plot in plots {
            write(&directory.join(plot.file), &plot.svg)?;
        }
    }
    Ok(())
}

/// The logs of a report.
enum Logs {
    One(Logged),
    Repeats(Vec<Run>),
    Two(Vec<Run>, Vec<Run>),
}

impl Logs {
    fn read(args: &Args) -> Result<Self, Failure> {
        let runs = |logs: &[PathBuf]| -> Result<Vec<Run>, Failure> {
            Ok((logs.iter().map(|log| Run::read(log))).collect::<Result<_, _>>()?)
        };
        Ok(match (&args.logs[..], &args.against[..]) {
            ([log], []) => Self::One(Logged::read(log)?),
            (logs, []) => Self::Repeats(runs(logs)?),
            (a, b) => Self::Two(runs(a)?, runs(b)?),
        })
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| cannot(path, &e))
}

pub(super) fn cannot(path: &Path, why: &impl std::fmt::Display) -> Failure {
    Failure::new(
        EX_CANTCREAT,
        format!("cannot write {}: {why}", path.display()),
    )
}
