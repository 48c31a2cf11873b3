// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::{Path, PathBuf};

use emud::page;
use emud::results::Run;

use super::Failure;
use super::failure::EX_CANTCREAT;

/// Make a page of an experiment's log that a browser shows by itself
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud report run.log -o run.html
  emud report run.log --svg plots/        plots alone, a file for each direction of a link

The page needs neither scripts nor a network. It has the verdict, what was asked for and what was
measured, plots with contention shaded, alarms, and what programs said (docs/report.md).

Exit codes: 0 written, whatever the verdict is, 65 not an experiment's log or damaged, 66 no such file,
73 the page or a plot cannot be written.")]
pub struct Args {
    /// What `emud run --log` wrote
    log: PathBuf,

    /// The page to write; - for standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "svg")]
    output: Option<PathBuf>,

    /// Write the plots into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let run = Run::read(&args.log)?;
    if let Some(output) = &args.output {
        let page = page::html(&run)?;
        match output.as_os_str() == "-" {
            true => super::out(&page)?,
            false => write(output, &page)?,
        }
    }
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory).map_err(|e| cannot(directory, &e))?;
        let plots = page::plots(&run)?;
        if plots.is_empty() {
            eprintln!(
                "emud: {} has no samples: there is nothing to plot",
                args.log.display()
            );
        }
        for plot in plots {
            write(&directory.join(plot.file), &plot.svg)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| cannot(path, &e))
}

fn cannot(path: &Path, e: &std::io::Error) -> Failure {
    Failure::new(
        EX_CANTCREAT,
        format!("cannot write {}: {e}", path.display()),
    )
}
