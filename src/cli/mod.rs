// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one file per verb.

mod agent;
mod alarm;
mod apply;
mod attach;
mod collect;
mod colour;
mod compare;
mod detach;
mod doctor;
mod export;
mod failure;
mod fleet;
mod fleet_part;
mod generate;
mod guard;
mod hold_run;
mod import;
mod list;
mod load;
mod man_pages;
mod medium;
mod metric;
mod metrics;
mod monitor;
mod node_run;
mod packets;
mod plot;
mod plot_runs;
mod plot_time;
mod profile;
mod progress;
mod renew;
mod report;
mod reproduce;
mod run;
mod scenario;
mod set;
mod show;
mod spare;
mod store;
mod target;
mod top;
mod traffic;
mod verify;
mod watch;

use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::{Parser, Subcommand};
use emud::experiment::results::VerdictMark;
use emud::host::clock_ahead_ns;
use emud::text::{printable, printable_json};
use serde::Serialize;

pub use failure::Failure;
use target::CliTarget;

/// Exit codes that are not failures.
pub const DONE: u8 = 0;
/// The monitor detected contention: the result of a script's experiment is invalid.
pub const CONTENTION_SEEN: u8 = 3;
/// A link is not as configured.
pub const OTHERWISE: u8 = 1;
/// Some property of a link could not be measured; the others are as configured.
pub const INCOMPLETE: u8 = 2;

/// Make a real network interface behave like a described link.
#[derive(Debug, Parser)]
#[command(name = "emud", version, max_term_width = 100, after_long_help = AFTER_HELP)]
pub struct Cli {
    /// Act in this network namespace: a name of `ip netns`, a process id, or a path
    #[arg(long, global = true, value_name = "NAME|PID|PATH")]
    netns: Option<String>,

    /// Act in the network namespace of this container, by name or ID [IFACE: the container's only
    /// interface]
    #[arg(long, global = true, value_name = "NAME[:IFACE]")]
    container: Option<String>,

    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
Examples:
  emud attach eth0 --profile hsdpa           both directions, a shipped profile
  emud attach eth0 --profile ./dsl.toml      a file of yours
  emud set eth0 up.delay=80ms loss=1%        change the running link
  emud apply pairs.csv eth0                  change a matrix of pairs, all at once
  emud show eth0                             what the kernel runs, counters
  emud verify eth0 --peer 192.0.2.7          does the link behave as configured?
  emud detach eth0                           restore the previous state
  emud run --profile lte -- curl ...          a program behind a link, and a verdict
  emud reproduce --quick t-tree              a published experiment, and its figures
  emud monitor -o log.json                   was the host itself the bottleneck?

Exit codes: 0 done, 1 and 2 a link is not as configured, a figure deviates, or not all measured (verify, reproduce), 1 other
deliveries than in the run (medium replay), 3 contention was seen (monitor, run, compare, reproduce), 4 the emulation was late
(run, reproduce), 64 usage, 65 bad profile, 66 no such interface, file or attachment, 67 no such user (run), 68 a host of a rule
cannot be resolved, 69 the kernel lacks something, 70 internal error, 71 the kernel returned an error, 73 already attached or a
qdisc configured by hand is in the way, 74 output could not be written, 75 another emud process is changing it, 76 etcd rejected a
request (fleet, agent), 77 no permission, 78 a certificate cannot be used (fleet, agent).";

/// Returns whether two paths lead to one file, by a link or another name; `-` is standard input.
fn is_same(a: &Path, b: &Path) -> bool {
    let id = |path: &Path| {
        let path = if path == Path::new("-") {
            Path::new("/dev/stdin")
        } else {
            path
        };
        path.metadata().map(|meta| (meta.dev(), meta.ino())).ok()
    };
    id(a).is_some() && id(a) == id(b)
}

/// Returns the output of a verb with `--json`: keys in alphabetical order.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    let json = format!("{:#}\n", serde_json::to_value(value)?);
    Ok(printable_json(&json).into_owned())
}

/// Checks all of them; the first failure determines the exit code.
fn check_all<T, E: Into<Failure> + Display>(
    names: &[String],
    check: impl Fn(&str) -> Result<T, E>,
) -> Result<(), Failure> {
    let mut first: Option<Failure> = None;
    for name in names {
        match check(name) {
            Ok(_) => out(&format!("{name}: good\n"))?,
            Err(e) if first.is_none() => first = Some(e.into()),
            Err(e) => emud::text::to_stderr(format_args!("emud: {e}")),
        }
    }
    first.map_or(Ok(()), Err)
}

/// Writes to standard output. A reader that closes the pipe early (`| head`) is not a failure.
fn out(text: &str) -> Result<(), Failure> {
    put(&printable(text))
}

/// Writes a report whose verdicts have a colour at a terminal; the rest of it is printable.
fn out_report(text: impl FnOnce(VerdictMark) -> String) -> Result<(), Failure> {
    put(&text(colour::verdicts(&io::stdout())))
}

fn put(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let text = match colour::is_wanted(&stdout) {
        true => colour::marked(text),
        false => text.into(),
    };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            failure::EX_IOERR,
            format!("cannot write the output: {e}"),
        )),
        _ => Ok(()),
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Attach(attach::Args),
    Detach(detach::Args),
    Show(show::Args),
    Set(set::Args),
    Apply(apply::Args),
    List(list::Args),
    Watch(watch::Args),
    Doctor(doctor::Args),
    Monitor(Box<monitor::Args>),
    Alarm(alarm::Args),
    Metric(metric::Args),
    Top(top::Args),
    Metrics(metrics::Args),
    Run(Box<run::Args>),
    Report(report::Args),
    Compare(compare::Args),
    Reproduce(reproduce::Args),
    Profile(profile::Args),
    Scenario(scenario::Args),
    Fleet(fleet::Args),
    Agent(agent::Args),
    Medium(medium::Args),
    Import(import::Args),
    Export(export::Args),
    Verify(verify::Args),
    Packets(packets::Args),
    Traffic(traffic::Args),
    Load(load::Args),
    Completions(generate::CompletionArgs),
    Man(generate::ManArgs),
    #[command(hide = true)]
    Collect(collect::Args),
    #[command(hide = true)]
    FleetPart(fleet_part::Args),
    #[command(hide = true)]
    Guard(guard::Args),
    #[command(hide = true)]
    HoldRun(hold_run::Args),
    #[command(hide = true)]
    NodeRun(node_run::Args),
    #[command(hide = true)]
    Renew(renew::Args),
}

impl Verb {
    /// Returns whether the verb acts on the interface of `--container NAME:IFACE`.
    fn takes_interface(&self) -> bool {
        match self {
            Self::Attach(_) | Self::Show(_) | Self::Set(_) | Self::Apply(_) | Self::Verify(_) => {
                true
            }
            Self::Detach(args) => !args.all,
            Self::Run(args) => args.in_place.is_some(),
            _ => false,
        }
    }

    /// Returns whether the verb acts on all network namespaces of the host.
    fn is_for_all(&self) -> bool {
        match self {
            Self::Detach(args) => args.all,
            Self::List(args) => args.all,
            _ => false,
        }
    }

    /// Returns whether the verb, or a process that it starts, compares its clock with the kernel's.
    fn needs_clock(&self) -> bool {
        !matches!(
            self,
            Self::Detach(_)
                | Self::List(_)
                | Self::Report(_)
                | Self::Compare(_)
                | Self::Profile(_)
                | Self::Scenario(_)
                | Self::Fleet(_)
                | Self::Import(_)
                | Self::Export(_)
                | Self::Packets(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

/// Times in BPF maps, and those at which packets leave, would be wrong by the offset.
fn has_clock_of_kernel() -> Result<(), Failure> {
    let ahead_ns = clock_ahead_ns();
    if ahead_ns == 0 {
        return Ok(());
    }
    Err(Failure::new(
        failure::EX_UNAVAILABLE,
        format!(
            "CLOCK_MONOTONIC is {} s ahead of the kernel's in this time namespace, and packets leave by the \
             kernel's: start emud outside of it (nsenter --target 1 --time)",
            ahead_ns as f64 / 1e9
        ),
    ))
}

impl Cli {
    /// Runs the verb and returns the exit code.
    ///
    /// # Errors
    /// The failure, with its exit code.
    pub fn run(self) -> Result<u8, Failure> {
        if self.verb.needs_clock() {
            has_clock_of_kernel()?;
        }
        // A user who names a namespace does not mean the links of all others.
        if self.verb.is_for_all() && (self.netns.is_some() || self.container.is_some()) {
            let message = "--all means all network namespaces of this host: leave out --netns and \
                           --container, or name an interface";
            return Err(Failure::new(failure::EX_USAGE, message));
        }
        let place = CliTarget::enter(self.netns.as_deref(), self.container.as_deref())?;
        if !self.verb.takes_interface() {
            place.without_interface()?;
        }
        match self.verb {
            Verb::Attach(args) => attach::run(args, &place),
            Verb::Detach(args) => return detach::run(&args, &place),
            Verb::Show(args) => show::run(&args, &place),
            Verb::Set(args) => set::run(&args, &place),
            Verb::Apply(args) => apply::run(&args, &place),
            Verb::List(args) => return list::run(&args),
            Verb::Watch(args) => watch::run(&args),
            Verb::Doctor(args) => doctor::run(&args),
            Verb::Report(args) => report::run(&args),
            Verb::Compare(args) => return compare::run(&args),
            Verb::Reproduce(args) => return reproduce::run(&args),
            Verb::Profile(args) => profile::run(args),
            Verb::Scenario(args) => scenario::run(args),
            Verb::Fleet(args) => return fleet::run(args),
            Verb::Agent(args) => agent::run(args),
            Verb::FleetPart(args) => fleet_part::run(&args),
            Verb::Import(args) => import::run(args),
            Verb::Export(args) => export::run(&args),
            Verb::Verify(args) => return verify::run(args, &place),
            Verb::Packets(args) => packets::run(&args),
            Verb::Traffic(args) => traffic::run(args),
            Verb::Load(args) => load::run(args),
            Verb::Completions(args) => generate::completions(&args),
            Verb::Man(args) => generate::man(&args),
            Verb::Monitor(args) => return monitor::run(*args),
            Verb::Alarm(args) => alarm::run(&args),
            Verb::Metric(args) => metric::run(&args),
            Verb::Top(args) => return top::run(&args),
            Verb::Metrics(args) => metrics::run(&args),
            Verb::Medium(args) => return medium::run(&args),
            Verb::Run(args) => return run::run(*args, &place),
            Verb::Collect(args) => collect::run(&args),
            Verb::Guard(args) => guard::run(&args),
            Verb::HoldRun(args) => hold_run::run(args),
            Verb::NodeRun(args) => node_run::run(&args),
            Verb::Renew(args) => renew::run(&args),
        }?;
        Ok(DONE)
    }
}
