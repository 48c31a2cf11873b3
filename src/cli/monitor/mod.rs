// SPDX-License-Identifier: MIT OR Apache-2.0

mod calibrate;
mod record;
mod reset;
pub(super) mod run;
mod thresholds;

use clap::Subcommand;
use emud::monitor::settings as watch;

use super::Failure;
pub use run::duration;
use thresholds::Thresholds;

/// Detect within milliseconds that the host runs out of a resource
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    run: run::Args,

    /// Print all thresholds as TOML, which --config reads, and exit
    #[arg(long)]
    print_config: bool,

    // Last: its heading applies to all options after it.
    #[command(flatten)]
    thresholds: Thresholds,
}

const AFTER_HELP: &str = "\
Examples:
  emud monitor                                     until Ctrl-C, then a summary
  emud monitor --duration 60s > log.json           a log for programs (docs/log-format.md)
  emud monitor -o log.json --metrics 127.0.0.1:9109
  emud monitor --on-alarm 'jq -r .resource | logger -t emud'
  emud monitor --stop-after 1 > /dev/null || kill $EXPERIMENT
  emud monitor record -o good.rec --duration 60s   to find thresholds of this machine: then
  emud monitor calibrate good.rec                  suggest thresholds

Programs under test report their own contention with `emud alarm`, or with lines of JSON into
the socket.

Exit codes: 0 nothing was seen, 3 contention was seen, 64 usage, 65 a mistake in --config, 66 no
such file or namespace, 69 the kernel supports nothing that was requested, 71 the kernel returned an error,
73 a socket or a file cannot be created, 74 the log cannot be written, 77 no permission. A resource
that cannot be watched is \"unknown\", on standard error and in the log: exit code 0 does not speak
for it.";

#[derive(Debug, Subcommand)]
enum Verb {
    Record(record::Args),
    Calibrate(Box<calibrate::Args>),
    Reset(reset::Args),
}

/// Runs the monitor and returns the exit code.
pub fn run(args: Args) -> Result<u8, Failure> {
    match args.verb {
        None => {}
        Some(Verb::Record(args)) => return record::run(&args).map(|()| super::DONE),
        Some(Verb::Calibrate(args)) => return calibrate::run(&args).map(|()| super::DONE),
        Some(Verb::Reset(args)) => return reset::run(&args).map(|()| super::DONE),
    }
    let config = args.thresholds.config()?;
    if args.print_config {
        return super::out(&watch::to_toml(&config)).map(|()| super::DONE);
    }
    run::run(args.run, config)
}
