// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use emud::datapath::radio::{ReplayError, replay};
use emud::experiment::results::Follow;
use emud::host::signals::{Noted, exit_code};
use emud::text::to_stderr;
use emud::top::{Stations, draw_stations};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::failure::EX_USAGE;
use super::top::key_of;
use super::{DONE, Failure};

/// Watch a shared medium, or repeat what happened on it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the stations of a running experiment live, from its log
    #[command(after_long_help = "\
Examples:
  emud run --scenario hidden --log hidden.log --sample 500ms
  emud medium watch hidden.log     ? explains columns and keys

docs/medium.md")]
    Watch {
        /// Log that `emud run --log` writes
        log: PathBuf,
    },

    /// Repeat the air of a record, and compare its deliveries with the run's
    #[command(after_long_help = "Example:\n  emud medium replay wlan0.record --deliveries | head")]
    Replay {
        /// File that the key `record` of a medium has written
        record: PathBuf,
        /// Print a line for each delivery: ns from the beginning, sender, receiver, bytes
        #[arg(long)]
        deliveries: bool,
    },
}

/// Exit code of a record whose deliveries are not those of the run.
const DIFFERENT: u8 = 1;

pub fn run(args: &Args) -> Result<u8, Failure> {
    match &args.verb {
        Verb::Watch { log } => watch(log),
        Verb::Replay { record, deliveries } => repeat(record, *deliveries),
    }
}

/// A sample is 100 ms or longer, and a key waits as long.
const LOOK_EVERY: Duration = Duration::from_millis(100);

fn watch(log: &Path) -> Result<u8, Failure> {
    // What is wrong with the log is said before the screen changes.
    let mut stations = Stations::new(Follow::open(log)?)?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let message = "emud medium watch needs a terminal; the log has all its figures";
        return Err(Failure::new(EX_USAGE, message));
    }
    // From now on a signal restores the terminal, too.
    let signals = Noted::default();
    signals.first()?;
    let mut terminal = ratatui::try_init()?;
    let ended = live(&mut terminal, &mut stations, &signals);
    ratatui::try_restore()?;
    ended
}

fn live(
    terminal: &mut DefaultTerminal,
    stations: &mut Stations,
    signals: &Noted,
) -> Result<u8, Failure> {
    loop {
        terminal.draw(|frame| draw_stations(stations, frame))?;
        if let Some(signal) = signals.first()? {
            return Ok(exit_code(signal));
        }
        if event::poll(LOOK_EVERY)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && let Some(key) = key_of(key.code, key.modifiers)
            && stations.key(key)
        {
            return Ok(DONE);
        }
        stations.read()?;
    }
}

fn repeat(record: &Path, deliveries: bool) -> Result<u8, Failure> {
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
