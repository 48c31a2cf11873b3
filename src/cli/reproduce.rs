// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use emud::experiment::lab::LabError;
use emud::experiment::report as page;
use emud::experiment::reproduce::{
    Bench, Comparison, EXPERIMENTS, Experiment, ReproduceError, Reproduction,
};
use emud::experiment::run::Settings;
use emud::host::signals::Noted;
use emud::text::{columns, to_stderr};
use rustix::process::geteuid;

use super::failure::EX_USAGE;
use super::{Failure, is_same, report};

/// Carry out published experiments again, and compare the figures
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud reproduce --list
  emud reproduce --quick t-tree c-diffserv
  emud reproduce --all --json >all.json
  emud reproduce --json t-tree >t-tree.json
  emud reproduce --from all.json t-tree.json --page all.html
  emud reproduce --compare monday.json tuesday.json

Experiments with a scenario run as `emud run --scenario NAME` does, and need root. A figure of a run
whose verdict is not clean is neither within its tolerance nor outside it.

Exit codes: 0 every judged figure is within its tolerance or explained, 1 a figure deviates, 2 a figure
was not measured, 3 the host was contended, 4 the emulation was late or dropped packets; 64 and above as
for `emud run`. docs/reproduction.md")]
pub struct Args {
    /// Experiments to carry out
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "list", "from", "compare"])]
    names: Vec<String>,

    /// Carry out all experiments
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// List the experiments
    #[arg(long, conflicts_with_all = ["names", "all"])]
    list: bool,

    /// Read results that --json printed before instead of running; of an experiment in several files
    /// the last one counts
    #[arg(
        long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["names", "all", "list", "quick", "seed", "attempts", "monitor", "netem", "swap"]
    )]
    from: Vec<PathBuf>,

    /// Compare two results that --json printed: what the seed determines must be identical, the difference of the
    /// rest within the tolerance. Exit code 0 only then; 1: a figure differs, 2: one cannot be compared
    #[arg(
        long, value_name = "FILE", num_args = 2,
        conflicts_with_all = [
            "names", "all", "list", "from", "quick", "seed", "attempts", "monitor", "netem", "swap", "page", "markdown",
            "csv", "json"
        ]
    )]
    compare: Vec<PathBuf>,

    /// Shorter runs and fewer variants: up to 5 minutes per experiment, about 25 minutes for all
    #[arg(long)]
    quick: bool,

    /// Seed of every random decision of every link
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of runs of each variant until one is clean [default: 2 with --quick, otherwise 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempts: Option<u32>,

    /// Read the thresholds of contention from a file of `emud monitor --config`, or use `shared` (docs/ci.md)
    #[arg(long, value_name = "FILE|shared")]
    monitor: Option<PathBuf>,

    /// Also run s-ring and t-scale with stock netem in place of emud's links, as their sources do. The kernel needs
    /// netem, and the node tc; a guest kernel has both (docs/reproduction.md)
    #[arg(long)]
    netem: bool,

    /// With --netem, senders make no super-packets (gso_max_segs 1): netem counts the overhead of a frame once for a
    /// super-packet, so TCP is faster than on the wire
    #[arg(long, requires = "netem")]
    no_gso: bool,

    /// In m-contention, also let loads occupy 512 MiB and some swap space of the host, as table 4.1 of its source does
    #[arg(long)]
    swap: bool,

    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    page: Option<PathBuf>,

    /// Also write the tables as Markdown; if the file exists, between its two marker comments
    /// (docs/reproduction.md)
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    markdown: Option<PathBuf>,

    /// Also write each value as a row of CSV, of means of flows each flow
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    csv: Option<PathBuf>,

    /// Print JSON (docs/reproduce.schema.json)
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.list {
        list()?;
        return Ok(super::DONE);
    }
    if let [one, other] = &args.compare[..] {
        return compare(one, other);
    }
    // Before hours of measurement, not after them.
    check_outputs(args)?;
    let (all, failed) = match &args.from[..] {
        [] => measured(args)?,
        files => {
            let all = Reproduction::read(files)?;
            if !args.json {
                for one in &all.experiments {
                    super::out(&format!("{}\n", one.text()))?;
                }
            }
            (all, None)
        }
    };
    // What was measured before a failure is not lost.
    if args.json {
        super::out(&super::json(&all)?)?;
    }
    if let Some(path) = &args.page {
        report::write(path, &page::reproduction(&all)?)?;
    }
    if let Some(path) = &args.markdown {
        report::write(path, &markdown(path, &all)?)?;
    }
    if let Some(path) = &args.csv {
        let csv = all.csv().map_err(|e| report::cannot(path, &e))?;
        report::write(path, &csv)?;
    }
    failed.map_or_else(|| Ok(all.exit_code()), Err)
}

/// Prints two results beside each other, and returns whether they agree.
fn compare(one: &Path, other: &Path) -> Result<u8, Failure> {
    let [first, second] = [one, other].map(|path| Reproduction::read(&[path]));
    let comparison = Comparison::of(&first?, &second?);
    let comparison = comparison.map_err(|problem| ReproduceError::Saved {
        path: other.to_owned(),
        problem,
    })?;
    super::out(&comparison.text())?;
    Ok(comparison.exit_code())
}

/// Checks that the page and the tables have a folder, that no result would be overwritten, and that the
/// tables have their markers.
fn check_outputs(args: &Args) -> Result<(), Failure> {
    let outputs = [&args.page, &args.markdown, &args.csv];
    let outputs: Vec<_> = outputs.into_iter().flatten().collect();
    for (n, path) in outputs.iter().enumerate() {
        if outputs[..n]
            .iter()
            .any(|other| is_same(other, path) || other == path)
        {
            let message = format!("{} would be two outputs in one file", path.display());
            return Err(Failure::new(EX_USAGE, message));
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(report::cannot(path, &"not a file in a folder"));
        }
        if args.from.iter().any(|from| is_same(from, path)) {
            let message = format!("{} would overwrite its results", path.display());
            return Err(Failure::new(EX_USAGE, message));
        }
    }
    if let Some(path) = &args.markdown {
        markdown(path, &Reproduction::new(vec![]))?;
    }
    Ok(())
}

/// Returns the document with these tables.
fn markdown(path: &Path, all: &Reproduction) -> Result<String, Failure> {
    let document = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(report::cannot(path, &e)),
    };
    let written = all.markdown(document.as_deref());
    written.map_err(|why| report::cannot(path, &why))
}

/// Carries the experiments out, and returns why one of them could not take place.
fn measured(args: &Args) -> Result<(Reproduction, Option<Failure>), Failure> {
    let mut experiments = match args.all {
        true => EXPERIMENTS.to_vec(),
        false => {
            let named = args.names.iter().map(|name| Experiment::named(name));
            named.collect::<Result<_, _>>()?
        }
    };
    let is_live = |experiment: &Experiment| !experiment.scenarios.is_empty();
    // Those in virtual time first: a signal ends them, but not any more once runs catch it.
    experiments.sort_by_key(is_live);
    let mut seen = HashSet::new();
    experiments.retain(|experiment| seen.insert(experiment.name));
    if experiments.iter().any(is_live) && !geteuid().is_root() {
        return Err(LabError::NotRoot.into());
    }
    let settings = settings(args)?;
    let signals = Noted::default();
    let bench = Bench {
        quick: args.quick,
        settings: &settings,
        holder: super::hold_run::command,
        own_thresholds: args.monitor.is_some(),
        netem: args.netem,
        no_gso: args.no_gso,
        swap: args.swap,
        attempts: args.attempts.unwrap_or(if args.quick { 2 } else { 3 }),
        progress: &|step| to_stderr(format_args!("emud: {step}")),
        signal: &|| signals.take(),
    };
    let (reproduced, failed) = in_turn(&experiments, |experiment| {
        let one = match experiment.reproduce(&bench) {
            Ok(one) => one,
            Err(e) => return Ok(Err(e)),
        };
        if !args.json {
            super::out(&format!("{}\n", one.text()))?;
        }
        Ok(Ok(one))
    })?;
    Ok((Reproduction::new(reproduced), failed))
}

/// Goes on after an experiment that failed, but not after a signal; returns the signal, otherwise the
/// failure, or how many there are of several experiments, with the code of the first one.
fn in_turn<T>(
    experiments: &[Experiment],
    mut each: impl FnMut(&Experiment) -> Result<Result<T, ReproduceError>, Failure>,
) -> Result<(Vec<T>, Option<Failure>), Failure> {
    let (mut done, mut failed) = (vec![], vec![]);
    for experiment in experiments {
        match each(experiment)? {
            Ok(one) => done.push(one),
            Err(e @ ReproduceError::Interrupted(_)) => return Ok((done, Some(e.into()))),
            Err(e) if experiments.len() == 1 => return Ok((done, Some(e.into()))),
            Err(e) => {
                to_stderr(format_args!("emud: {} failed: {e}", experiment.name));
                failed.push(e.exit_code());
            }
        }
    }
    let counted = format!(
        "{} of {} experiments failed",
        failed.len(),
        experiments.len()
    );
    let failed = failed.first().map(|code| Failure::new(*code, counted));
    Ok((done, failed))
}

fn list() -> Result<(), Failure> {
    let rows = EXPERIMENTS.iter().map(|experiment| {
        let scenarios = match experiment.scenarios {
            [] => "virtual time".to_owned(),
            scenarios => format!("scenarios {}", scenarios.join(", ")),
        };
        [
            experiment.name.to_owned(),
            experiment.description.to_owned(),
            scenarios,
        ]
    });
    super::out(&columns(rows))
}

/// Lateness of a packet that makes a run invalid. The figures are means of seconds or of thousands of packets:
/// 30 ms are 0.6 % of the shortest, 5 s. A virtual machine with two CPUs and no other jobs stood still for
/// more than 5 ms about 8 times a minute, at most for 25 ms, so hardly a minute would be clean with the 5 ms
/// of `emud run`.
const LATE: Duration = Duration::from_millis(30);

/// Returns the settings of runs, whose programs are emud itself.
fn settings(args: &Args) -> Result<Settings, Failure> {
    let mut config = super::run::config(args.monitor.as_deref())?;
    if let (None, Some(emulator)) = (&args.monitor, &mut config.emulator) {
        emulator.late = LATE;
    }
    Ok(Settings::quiet(args.seed, config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_one_experiment_and_a_signal_all() {
        let run = |signal: Option<i32>| {
            let each = |experiment: &Experiment| {
                let failed = |problem: &str| ReproduceError::Program {
                    scenario: experiment.name.to_owned(),
                    problem: problem.to_owned(),
                };
                Ok(match (experiment.name, signal) {
                    (name, _) if name == EXPERIMENTS[1].name => Err(failed("first")),
                    (name, _) if name == EXPERIMENTS[2].name => Err(ReproduceError::Kernel {
                        what: "second",
                        error: String::new(),
                    }),
                    (name, Some(signal)) if name == EXPERIMENTS[3].name => {
                        Err(ReproduceError::Interrupted(signal))
                    }
                    (name, _) => Ok(name),
                })
            };
            let Ok((done, failed)) = in_turn(&EXPERIMENTS[..5], each) else {
                panic!()
            };
            (done, failed.unwrap())
        };
        let name = |n: usize| EXPERIMENTS[n].name;
        let (done, failed) = run(None);
        assert_eq!(done, [name(0), name(3), name(4)]);
        assert_eq!(failed.message, "2 of 5 experiments failed");
        assert_eq!(failed.code, 69);
        let (done, failed) = run(Some(2));
        assert_eq!((done, failed.code), (vec![name(0)], 130));
    }
}
