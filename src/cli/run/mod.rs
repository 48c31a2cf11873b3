// SPDX-License-Identifier: MIT OR Apache-2.0

mod repeat;
mod what;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use emud::datapath::engine::EngineChoice;
use emud::experiment::lab::LabError;
use emud::experiment::run::{ExitCode, Settings, User, drawn};
use emud::monitor::settings as watch;
use emud_monitor::Config;
use emud_monitor::config::GroupBy;

use rustix::process::geteuid;

use super::Failure;
use super::monitor::duration;

/// Run a program behind an emulated link, watch the host, and report whether the result is valid
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// The link: a shipped profile's name (see `emud profile list`) or a file
    #[arg(long, short, value_name = "PROFILE")]
    profile: Option<String>,

    /// A network of several nodes: a shipped scenario's name (see `emud scenario list`) or a file
    #[arg(long, short, value_name = "SCENARIO", conflicts_with_all = ["profile", "in_place", "reverse"])]
    scenario: Option<String>,

    /// How many nodes a scenario's topology has (see `emud scenario plan`)
    #[arg(long, value_name = "N", conflicts_with_all = ["profile", "in_place"])]
    nodes: Option<u32>,

    /// Longest measured phase of a scenario
    #[arg(long, value_name = "TIME", conflicts_with_all = ["profile", "in_place"], value_parser = duration)]
    measure: Option<Duration>,

    /// What counts as contention: a file as of `emud monitor --config` (docs/monitor.md)
    #[arg(long, value_name = "FILE")]
    monitor: Option<PathBuf>,

    /// Write everything into one log of JSON lines (docs/log-format.md); of several runs the
    /// n-th into NAME.n.EXT
    #[arg(long, short = 'o', value_name = "FILE")]
    log: Option<PathBuf>,

    /// Run it so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// Repeat only until a run is clean and no program of it failed, up to --repeat times
    #[arg(long, requires = "repeat")]
    require_clean: bool,

    /// Each repeat has another seed, which follows from the first one's: other losses and
    /// delays, for statistics. Else all have the same one: does the network repeat?
    #[arg(long)]
    new_seeds: bool,

    /// Seed of every random decision of every link [default: that of the profile, else random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Emulate on this interface, which exists, and run the program here
    #[arg(long, value_name = "IFACE")]
    in_place: Option<String>,

    /// Exchange up and down: the program is at the other end of the described link
    #[arg(long)]
    reverse: bool,

    /// Where packets wait: fq (in the kernel), hold (in user space), auto (fq where it can be had)
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    engine: Engine,

    /// Counters of the links go to the log this often, or `off`
    #[arg(long, value_name = "TIME", default_value = "1s")]
    sample: String,

    /// Whether what programs print goes to the log, too
    #[arg(long, value_name = "on|off", value_enum, default_value_t = Switch::On)]
    log_output: Switch,

    /// Folder for the files that a scenario keeps [default: beside the log, LOG.artefacts]
    #[arg(long, value_name = "FOLDER")]
    artefacts: Option<PathBuf>,

    /// End the run at the first alarm
    #[arg(long)]
    abort_on_contention: bool,

    /// What determines the exit code first; if that is 0, the other one does: the programs (that of
    /// the first one that failed), or the verdict (3 contended, 4 invalid)
    #[arg(long, value_name = "program|verdict", value_enum, default_value_t = First::Program, hide_possible_values = true)]
    exit_code: First,

    /// Run programs as this user [default: who called sudo, else root]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Run programs as root, also under sudo; `--root=prepare`: only the `prepare` and `clean_up`
    /// commands of a scenario
    #[arg(long, value_name = "all|prepare", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true)]
    root: Option<AsRoot>,

    /// The program and its arguments [default: a shell]; of a scenario in place of its first
    /// node's
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
this host at $EMUD_HOST, and the outside by NAT where the host has a way there.

Exit codes: the program's own (of several that of the first that failed); if that is 0, 3 the host
was contended, 4 the emulation itself was late or dropped packets (--exit-code verdict: those
first); 127 and 126 the program cannot be found or started; 64 and above as for `emud`, when the run
could not take place. docs/run.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Auto,
    Fq,
    Hold,
}

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
enum Switch {
    On,
    Off,
}

/// Returns the exit code.
pub fn run(args: Args) -> Result<u8, Failure> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot.into());
    }
    let what = what::What::new(&args)?;
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
        argv: std::env::args().collect(),
        seed: match args.seed.or(what.seed()) {
            Some(seed) => seed,
            None => drawn()?,
        },
        engine: match args.engine {
            Engine::Auto => EngineChoice::Auto,
            Engine::Fq => EngineChoice::Fq,
            Engine::Hold => EngineChoice::Hold,
        },
        config: config(args)?,
        sample: sample.filter(|_| args.log.is_some() || args.repeat > 1),
        log_output: args.log_output == Switch::On,
        artefacts: args.artefacts.clone(),
        abort_on_contention: args.abort_on_contention,
        exit_code: match args.exit_code {
            First::Program => ExitCode::Program,
            First::Verdict => ExitCode::Verdict,
        },
        in_place: args.in_place.clone(),
        notes: what.note().into_iter().collect(),
        repeat: (1, args.repeat),
    })
}

/// As whom programs run; none: root.
fn user(args: &Args, caller: Option<&User>) -> Result<Option<User>, Failure> {
    match (&args.user, args.root) {
        (Some(_), Some(AsRoot::All)) => Err(Failure::new(
            super::failure::EX_USAGE,
            "give --user or --root, not both",
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

/// A sample takes about 100 us for each link: shorter intervals would cost too much.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(10);

fn sample_interval(text: &str) -> Result<Duration, Failure> {
    let usage = |problem: String| {
        Failure::new(
            super::failure::EX_USAGE,
            format!("--sample {text}: {problem}"),
        )
    };
    let every = duration(text).map_err(usage)?;
    match every < SHORTEST_SAMPLE {
        true => Err(usage("at least 10ms, or `off`".to_owned())),
        false => Ok(every),
    }
}

/// A single packet that a busy scheduler made 2 ms late does not make a run worthless: with
/// engine hold on an idle machine with two CPUs it was one run in five that had one above 1 ms.
const LATE: Duration = Duration::from_millis(5);

/// Without a file the monitor's defaults, but for three of them. Who took the CPU is told by
/// command, because all nodes of a run are one experiment. And traffic between interfaces of
/// this host is what is measured here, not what disturbs it: a chain of eleven routers at
/// 100 Mbit/s moves more than the 1 Gbit/s that are an alarm elsewhere.
fn config(args: &Args) -> Result<Config, Failure> {
    let read = |file: Option<&std::path::Path>| {
        watch::config(file, &[]).map_err(|error| Failure::new(error.exit_code(), error.to_string()))
    };
    match &args.monitor {
        Some(file) => read(Some(file)),
        None => {
            let mut config = read(None)?;
            config.alarms.group_by = GroupBy::Command;
            if let Some(emulator) = &mut config.emulator {
                emulator.late = LATE;
            }
            if let Some(network) = &mut config.network {
                network.internal_bit_s = None;
            }
            Ok(config)
        }
    }
}
