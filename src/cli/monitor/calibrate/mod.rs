// SPDX-License-Identifier: MIT OR Apache-2.0

mod json;
mod plot;
mod report;
mod snippet;
mod table;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use emud_monitor::Config;
use emud_monitor::calibrate::{Findings, replay};
use emud_monitor::record::Reader;

use super::thresholds::Thresholds;
use crate::cli::Failure;
use crate::cli::failure::EX_IOERR;
use crate::cli::plot::save;
use emud::text::to_stderr;
use report::CalibrationReport;

/// Try thresholds on recordings, and suggest thresholds
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud monitor calibrate good.rec
  emud monitor calibrate good.rec --cpu-theta 50ms     number of alarms with this threshold
  emud monitor calibrate good-*.rec --contended bad.rec --plot thresholds.svg
  emud monitor calibrate good.rec --toml > lab.toml; emud monitor --config lab.toml

How a threshold is suggested. The load of the recordings is known to be good, so
the largest value in them is no contention: the threshold is that value and a margin, rounded up
to two digits. With recordings that are known to be contended it is the geometric mean of the
largest good value and of the largest value of that contended recording which stays lowest among
those above all good ones. Contended recordings without a larger value overlap: this criterion
alone does not detect them, and calibrate reports it.

Exit codes: 0 done, 64 usage, 65 a damaged recording or a mistake in --config, 66 no such file,
73 the plot cannot be written, 74 a file cannot be read or written.")]
pub struct Args {
    /// Recordings of load that is known to be good
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Recording of load that is known to be too high; may be repeated
    #[arg(long, value_name = "FILE")]
    contended: Vec<PathBuf>,

    /// Margin above the largest good value, if no contended recording gives a better bound
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = percent)]
    margin: f64,

    /// Plot the distributions and thresholds to an SVG file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,

    /// Print JSON (docs/json.md)
    #[arg(long, conflicts_with = "toml")]
    json: bool,

    /// Print the suggested thresholds as TOML, for `emud monitor --config`
    #[arg(long)]
    toml: bool,

    // Last: its heading applies to all options after it.
    #[command(flatten)]
    thresholds: Thresholds,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let config = args.thresholds.config()?;
    let good = args.files.iter().map(|file| (file, false));
    let contended = args.contended.iter().map(|file| (file, true));
    let mut recordings = vec![];
    for (file, contended) in good.chain(contended) {
        recordings.push(report::Recording {
            file: file.display().to_string(),
            contended,
            findings: findings(file, &config)?,
        });
    }
    let report = CalibrationReport::new(&config, recordings, args.margin);
    if let Some(file) = &args.plot {
        save(file, plot::draw(&report))?;
    }
    let text = match (args.json, args.toml) {
        (true, _) => crate::cli::json(&json::of(&report))?,
        (_, true) => snippet::of(&report),
        _ => table::of(&report),
    };
    if args.json || args.toml {
        for warning in &report.warnings {
            to_stderr(format_args!("emud: {warning}"));
        }
    }
    crate::cli::out(&text)
}

/// As a share.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let percent = number.parse::<f64>().ok();
    percent
        .filter(|p| (0.0..=1000.0).contains(p))
        .map(|p| p / 100.0)
        .ok_or_else(|| "percent look like \"25%\", from 0% to 1000%".into())
}

fn findings(path: &Path, config: &Config) -> Result<Findings, Failure> {
    const EX_NOINPUT: u8 = 66;
    let name = path.display();
    let file = File::open(path).map_err(|e| {
        let code = if e.kind() == io::ErrorKind::NotFound {
            EX_NOINPUT
        } else {
            EX_IOERR
        };
        Failure::new(code, format!("{name}: {e}"))
    })?;
    let reader = Reader::new(BufReader::with_capacity(1 << 20, file))
        .map_err(|e| Failure::new(e.exit_code(), format!("{name}: {e}")))?;
    replay(reader, config).map_err(|e| Failure::new(e.exit_code(), format!("{name}: {e}")))
}
