// SPDX-License-Identifier: MIT OR Apache-2.0

mod monitor;

use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use emud::datapath::survey::Survey;
use emud::host::signals::{Noted, exit_code};
use emud::text::printable_json;
use emud::top::{Action, Key, Top, TopLine, Watching, draw};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::failure::EX_USAGE;
use super::monitor::duration;
use super::{DONE, Failure};
use monitor::{Monitor, Said};

/// Show every emulated link of this host live, and change them
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud top                     ? explains columns and keys
  emud top --every 500ms
  emud top --json --count 2 | tail -n 1 | jq .rows

Its `emud monitor`, with default thresholds, watches the host. docs/top.md")]
pub struct Args {
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,

    /// Do not watch the host
    #[arg(long)]
    no_monitor: bool,

    /// Print a line of JSON per interval instead (docs/json.md)
    #[arg(long)]
    json: bool,

    /// End after this number of lines
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// A reading takes up to 100 us per link.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long a key may wait; between two checks of a link for tampering.
const KEYS_EVERY: Duration = Duration::from_millis(20);
/// Between two rounds of these checks.
const ROUND: Duration = Duration::from_millis(500);

/// Returns the exit code.
pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.every < SHORTEST {
        let message = format!("--every {:?}: it must be at least 100ms", args.every);
        return Err(Failure::new(EX_USAGE, message));
    }
    let mut survey = Survey::new();
    let mut top = Top::new(rustix::system::uname().nodename().to_string_lossy());
    // Who may not see the links learns it before the screen changes.
    let mut first = survey.snapshot()?;
    if args.json {
        // A link that was not checked would have no trouble.
        survey.check_all();
        first = survey.snapshot()?;
    }
    top.read(first);
    if args.json {
        return lines(args, &mut survey, &mut top).map(|()| DONE);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let message = "emud top needs a terminal; use --json, or `emud metrics`";
        return Err(Failure::new(EX_USAGE, message));
    }
    let monitor = match args.no_monitor {
        true => {
            top.watching(Watching::No("--no-monitor".to_owned()));
            None
        }
        false => Some(Monitor::start()?),
    };
    // From now on a signal restores the terminal, too.
    let signals = Noted::default();
    signals.first()?;
    let mut terminal = ratatui::try_init()?;
    let ended = live(
        args.every,
        &mut terminal,
        &mut survey,
        &mut top,
        monitor.as_ref(),
        &signals,
    );
    ratatui::try_restore()?;
    ended
}

/// Prints lines of JSON; the first one has no measured figures.
fn lines(args: &Args, survey: &mut Survey, top: &mut Top) -> Result<(), Failure> {
    let mut next = Instant::now();
    for n in 0u64.. {
        if n > 0 {
            top.read(survey.snapshot()?);
        }
        let line = serde_json::to_string(&TopLine::of(top))?;
        super::out(&format!("{}\n", printable_json(&line)))?;
        if args.count.is_some_and(|count| n + 1 >= count) {
            break;
        }
        next += args.every;
        survey.check_all();
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn live(
    every: Duration,
    terminal: &mut DefaultTerminal,
    survey: &mut Survey,
    top: &mut Top,
    monitor: Option<&Monitor>,
    signals: &Noted,
) -> Result<u8, Failure> {
    let mut next = Instant::now() + every;
    let mut check = Instant::now();
    loop {
        terminal.draw(|frame| draw(top, frame))?;
        // Draws again after a key, a size or an interval.
        loop {
            if let Some(signal) = signals.first()? {
                return Ok(exit_code(signal));
            }
            let left = next.saturating_duration_since(Instant::now());
            if event::poll(left.min(KEYS_EVERY))? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        match key_of(key.code, key.modifiers).and_then(|key| top.key(key)) {
                            Some(Action::Quit) => return Ok(DONE),
                            Some(Action::Run(arguments)) => change(top, &arguments),
                            None => {}
                        }
                    }
                    _ => {}
                }
                break;
            }
            let now = Instant::now();
            if now >= next {
                for said in monitor.into_iter().flat_map(Monitor::take) {
                    match said {
                        Said::Watches => top.watching(Watching::Yes),
                        Said::Alarm(episode, sentence) => top.alarm(episode, sentence),
                        Said::Failure(sentence) => top.failure(sentence),
                        Said::Clear(episode) => top.clear(episode),
                        Said::Missed => top.missed(),
                        Said::Unwatched(why) => top.watching(Watching::No(why)),
                    }
                }
                top.read(survey.snapshot()?);
                // Late on a busy machine, but never in a burst.
                next = (next + every).max(now);
                break;
            }
            if now >= check {
                let pause = if survey.check_next() {
                    ROUND
                } else {
                    KEYS_EVERY
                };
                check = now + pause;
            }
        }
    }
}

pub(super) fn key_of(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Char('q'),
        KeyCode::Char(_) if modifiers.contains(KeyModifiers::CONTROL) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

/// Runs emud in a separate process: it enters the link's namespace.
fn change(top: &mut Top, arguments: &[String]) {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(Stdio::null());
    let said = format!("emud {}", arguments.join(" "));
    match command.output() {
        Ok(done) if done.status.success() => top.done(said, false),
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stderr);
            // The first line names the mistake; a profile's are a picture below it.
            let first = text.lines().find(|line| !line.trim().is_empty());
            top.done(first.unwrap_or("it failed without a message"), true);
        }
        Err(e) => top.done(format!("{said}: {e}"), true),
    }
}
