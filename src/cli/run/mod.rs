// SPDX-License-Identifier: MIT OR Apache-2.0

mod junit;
mod repeat;
mod what;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use emud::datapath::engine::EngineChoice;
use emud::experiment::lab::LabError;
use emud::experiment::run::{ExitCode, Settings, User};
use emud::host::random_seed;
use emud::monitor::settings as watch;
use emud_monitor::Config;
use emud_monitor::config::GroupBy;

use rustix::process::geteuid;

use super::attach::one_of;
use super::metrics::listen;
use super::monitor::duration;
use super::{CliTarget, Failure};

/// Run a program behind an emulated link, and judge the result
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// Profile of the link: shipped name (see `emud profile list`) or path to a TOML file
    #[arg(long, short, value_name = "PROFILE")]
    profile: Option<String>,

    /// Scenario with several nodes: shipped name (see `emud scenario list`) or path to a TOML file
    #[arg(long, short, value_name = "SCENARIO", conflicts_with_all = ["profile", "in_place", "reverse"])]
    scenario: Option<String>,

    /// Size of the scenario's topology (see `emud scenario plan`)
    #[arg(long, value_name = "N", conflicts_with_all = ["profile", "in_place"])]
    nodes: Option<u32>,

    /// Longest measured phase of a scenario
    #[arg(long, value_name = "TIME", conflicts_with_all = ["profile", "in_place"], value_parser = duration)]
    measure: Option<Duration>,

    /// Read the thresholds of contention from a file of `emud monitor --config`, or use `shared` (docs/ci.md)
    #[arg(long, value_name = "FILE|shared")]
    monitor: Option<PathBuf>,

    /// Write the results as JUnit XML: a test for each program and one for the verdict
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Print annotations for this service [default: github if GITHUB_ACTIONS is `true`]
    #[arg(
        long,
        value_enum,
        value_name = "github|off",
        hide_possible_values = true
    )]
    annotations: Option<Annotations>,

    /// Write one log of JSON lines (docs/log-format.md); the n-th of several runs writes to
    /// NAME.n.EXT
    #[arg(long, short = 'o', value_name = "FILE")]
    log: Option<PathBuf>,

    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// Repeat only until a run is clean and no program of it failed, up to --repeat times
    #[arg(long, requires = "repeat")]
    require_clean: bool,

    /// Use a different seed for each run, derived from the first one, so that losses and delays
    /// differ, for statistics [default: the same seed for all, which tests repeatability]
    #[arg(long)]
    new_seeds: bool,

    /// Seed of every random decision of every link [default: that of the profile, or random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Emulate on this existing interface, and run the program here
    #[arg(long, value_name = "IFACE")]
    pub in_place: Option<String>,

    /// Traffic of --in-place that passes untouched: from and to these addresses, or `ssh`, the session
    /// in which emud was started
    #[arg(long, value_name = "CIDR|ssh", requires = "in_place")]
    spare: Vec<String>,

    /// Exchange up and down: the program is at the other end of the described link
    #[arg(long)]
    reverse: bool,

    /// Where packets wait: qdisc (in the kernel, in a BPF qdisc: Linux 6.16), fq (in the kernel), hold (in
    /// user space), auto (the first of them that is supported and right for the link)
    #[arg(long, value_parser = one_of::<EngineChoice>(), default_value = "auto")]
    engine: EngineChoice,

    /// Interval at which counters of the links are logged, or `off`
    #[arg(long, value_name = "TIME", default_value = "1s")]
    sample: String,

    /// Serve metrics of the links and of the host over HTTP at this address during the run
    /// (docs/metrics.md)
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<String>,

    /// Log the output of programs
    #[arg(long, value_name = "on|off", value_enum, default_value_t = Switch::On)]
    log_output: Switch,

    /// Folder for the files that a scenario keeps [default: beside the log, LOG.artefacts]
    #[arg(long, value_name = "FOLDER")]
    artefacts: Option<PathBuf>,

    /// End the run at the first alarm
    #[arg(long)]
    abort_on_contention: bool,

    /// Source of the exit code; the other one is used if it is 0: programs (the exit code of the
    /// first one that failed) or verdict (3 contended, 4 invalid)
    #[arg(long, value_name = "program|verdict", value_enum, default_value_t = First::Program, hide_possible_values = true)]
    exit_code: First,

    /// Run programs as this user [default: the user who called sudo, or root]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Run programs as root, even under sudo; with `--root=prepare`, only the `prepare` and
    /// `clean-up` commands of a scenario
    #[arg(long, value_name = "all|prepare", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true)]
    root: Option<AsRoot>,

    /// Program and its arguments [default: a shell]; replaces the command of a scenario's first
    /// node
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const AFTER_HELP: &str = "\
Examples:
  emud run --profile lte -- curl -o /dev/null https://example.org/
  emud run --profile hsdpa                         a shell behind the link
  emud run --profile dsl --log dsl.log -- ping -c 10 192.0.2.1
  emud run --profile lte -- sh -c 'iperf3 -c $EMUD_HOST'       a server on this host
  emud run --scenario dumbbell --log d.log --repeat 5 --new-seeds
  emud report dsl.log -o dsl.html                  configured and measured figures

The program runs in a new network namespace, whose only connection is the link, under sudo as
the user who called it. It reaches
this host at $EMUD_HOST, and the outside by NAT if the host has a default route.

Exit codes: the program's own (of several that of the first that failed); if that is 0, 3 the host
was contended, 4 the emulation itself was late or dropped packets (--exit-code verdict: those
first); 127 and 126 the program cannot be found or started; 64 and above as for `emud`, when the run
could not take place. docs/run.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AsRoot {
    All,
    Prepare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum First {
    Program,
    Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Annotations {
    Github,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Runs the experiment and returns the exit code.
pub fn run(mut args: Args, place: &CliTarget) -> Result<u8, Failure> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot.into());
    }
    if args.in_place.is_some() {
        args.in_place = place.given(args.in_place.as_deref())?;
    }
    let what = what::What::new(&args, place)?;
    let settings = settings(&args, &what)?;
    if args.require_clean && !settings.config.is_anything_on() {
        let message =
            "--require-clean: every criterion of --monitor is off, so no run can be clean";
        return Err(Failure::new(super::failure::EX_USAGE, message));
    }
    repeat::run(&args, &what, settings)
}

fn settings(args: &Args, what: &what::What) -> Result<Settings, Failure> {
    let sample = match args.sample.as_str() {
        "off" => None,
        text => Some(sample_interval(text)?),
    };
    let caller = User::invoking()?;
    Ok(Settings {
        user: user(args, caller.as_ref())?,
        root_prepares: args.root == Some(AsRoot::Prepare),
        caller,
        argv: Settings::arguments(),
        seed: match args.seed.or(what.seed()) {
            Some(seed) => seed,
            None => random_seed()?,
        },
        engine: args.engine,
        config: config(args.monitor.as_deref())?,
        sample: sample.filter(|_| args.log.is_some() || args.repeat > 1),
        metrics: match &args.metrics {
            Some(address) => Some(listen("--metrics", address)?.into()),
            None => None,
        },
        // Repeats without --log have theirs in memory, of which only the figures are read.
        log_output: args.log_output == Switch::On && args.log.is_some(),
        quiet: false,
        artefacts: args.artefacts.clone(),
        abort_on_contention: args.abort_on_contention,
        exit_code: match args.exit_code {
            First::Program => ExitCode::Program,
            First::Verdict => ExitCode::Verdict,
        },
        in_place: args.in_place.clone(),
        notes: what.note().into_iter().collect(),
        repeat: (1, args.repeat),
        together: None,
    })
}

/// Returns the user that programs run as; `None` for root.
fn user(args: &Args, caller: Option<&User>) -> Result<Option<User>, Failure> {
    match (&args.user, args.root) {
        (Some(_), Some(AsRoot::All)) => Err(Failure::new(
            super::failure::EX_USAGE,
            "use either --user or --root, not both",
        )),
        (_, Some(AsRoot::All)) => Ok(None),
        (Some(name), _) => User::named(name).map_err(|e| {
            let why = match e.kind() {
                ErrorKind::NotFound => "there is no such user".to_owned(),
                _ => e.to_string(),
            };
            Failure::new(super::failure::EX_NOUSER, format!("--user {name}: {why}"))
        }),
        (None, _) => Ok(caller.cloned()),
    }
}

/// Minimum interval: a sample takes about 100 us per link.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(10);

pub(super) fn sample_interval(text: &str) -> Result<Duration, Failure> {
    let usage = |problem: String| {
        Failure::new(
            super::failure::EX_USAGE,
            format!("--sample {text}: {problem}"),
        )
    };
    let every = duration(text).map_err(usage)?;
    match every < SHORTEST_SAMPLE {
        true => Err(usage("it must be at least 10ms, or `off`".to_owned())),
        false => Ok(every),
    }
}

/// Lateness that makes a run invalid. A single packet that a busy scheduler delays by 2 ms does
/// not: with engine hold on an idle machine with two CPUs, one run in five had a packet above 1 ms.
const LATE: Duration = Duration::from_millis(5);

/// Returns the thresholds of a file, or the monitor's defaults with three exceptions. CPU time is attributed by
/// command, because all nodes of a run are one experiment. Traffic between interfaces of this host
/// is the measured traffic here, and not contention: a chain of eleven routers at 100 Mbit/s
/// transmits more than the default threshold of 1 Gbit/s.
pub(super) fn config(file: Option<&Path>) -> Result<Config, Failure> {
    let config = watch::config(file, &[]);
    let mut config = config.map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
    if file.is_some() {
        return Ok(config);
    }
    config.alarms.group_by = GroupBy::Command;
    if let Some(emulator) = &mut config.emulator {
        emulator.late = LATE;
    }
    if let Some(network) = &mut config.network {
        network.internal_bit_s = None;
    }
    Ok(config)
}
