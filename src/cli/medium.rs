// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Subcommand;
use emud::datapath::radio::{ReplayError, replay};
use emud::text::to_stderr;

use super::Failure;

/// Repeat what happened on a shared medium
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Repeat the air of a record, without root, and compare its deliveries with those of the run
    #[command(after_long_help = "Example:\n  emud medium replay wlan0.record --deliveries | head")]
    Replay {
        /// File that the key `record` of a medium has written
        record: PathBuf,
        /// Print a line for each delivery: ns from the begin, sender, receiver, bytes
        #[arg(long)]
        deliveries: bool,
    },
}

/// Exit code of a record whose deliveries are not those of the run.
const DIFFERENT: u8 = 1;

pub fn run(args: &Args) -> Result<u8, Failure> {
    let Verb::Replay { record, deliveries } = &args.verb;
    let mut out = BufWriter::new(io::stdout().lock());
    let repeated = replay(record, |at_ns, from, to, bytes| match deliveries {
        true => writeln!(out, "{at_ns} {from} {to} {bytes}"),
        false => Ok(()),
    });
    let flushed = out.flush().map_err(ReplayError::from);
    drop(out);
    let repeated = match repeated.and_then(|repeated| flushed.map(|()| repeated)) {
        Err(ReplayError::Delivery(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(0);
        }
        Err(error) => {
            let text = format!("{}: {error}", record.display());
            return Err(Failure::new(error.exit_code(), text));
        }
        Ok(repeated) => repeated,
    };
    let (text, code) = match repeated.same {
        Some(true) => ("the same as in the run", 0),
        Some(false) => ("not those of the run", DIFFERENT),
        None => ("the record has no end: nothing to compare with", 0),
    };
    let line = format!(
        "{} arrivals, {} deliveries, digest {:016x}: {text}",
        repeated.arrivals, repeated.deliveries, repeated.digest
    );
    match deliveries {
        true => to_stderr(line),
        false => super::out(&format!("{line}\n"))?,
    }
    Ok(code)
}
