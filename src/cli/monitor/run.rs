// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use emud::experiment::run::User;
use emud::host::runtime::invoking_user;
use emud::host::signals::Signals;
use emud::host::single_threaded;
use emud::metrics::Media;
use emud::monitor::session::{
    Allowed, Finished, MonitorSide, Observation, Setup, SideParts, Stop, Until, monitor, pressure,
    punctual, sockets,
};
use emud::text::{Time, to_stderr};
use emud_monitor::Config;
use emud_monitor::log::{Clock, EndReason, FileLog, Format, Log, Moved, Outlet};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::failure::{EX_CANTCREAT, EX_IOERR};
use crate::cli::metrics::listen;
use crate::cli::{CONTENTION_SEEN, DONE, Failure};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Print lines of JSON [default unless standard output is a terminal]
    #[arg(long, conflicts_with = "text")]
    json: bool,

    /// Print human-readable lines [default on a terminal]
    #[arg(long)]
    text: bool,

    /// Append the log to a file, as lines of JSON; SIGHUP reopens it, unless standard output is a
    /// terminal
    #[arg(long, short = 'o', value_name = "FILE")]
    log: Option<PathBuf>,

    /// Serve metrics of the monitor and of all emulated links over HTTP at this address
    /// (docs/metrics.md)
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<String>,

    /// Run a shell command once per alarm, one after the other, with the line of JSON on its
    /// standard input; its output goes to standard error
    #[arg(long, value_name = "CMD")]
    on_alarm: Option<String>,

    /// End after this number of alarms
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    stop_after: Option<u64>,

    /// End after this time: 500ms, 60s, 10min, 8h
    #[arg(long, value_name = "TIME", value_parser = watched)]
    duration: Option<Duration>,

    /// Socket for reports of programs [default: /run/emud/monitor.sock, or monitor-PID.sock beside
    /// the socket of another monitor]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Time limit for a slow reader or disk at the end.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Longest run in hours: a year.
const MAX_HOURS: f64 = 8784.0;

/// Parses a duration as in profiles, or in hours: experiments are longer than delays.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Some(hours) = text.strip_suffix('h') {
        return match hours.trim().parse::<f64>() {
            Ok(hours) if (0.0..=MAX_HOURS).contains(&hours) => {
                Ok(Duration::from_secs_f64(hours * 3600.0))
            }
            _ => Err(format!("not a number of hours up to {MAX_HOURS}")),
        };
    }
    match text.parse() {
        Ok(Time(ns)) => Ok(Duration::from_nanos(ns)),
        Err(e) => Err(format!("{}; {}", e.problem, e.help)),
    }
}

/// Parses for how long the host is watched: nothing is seen in no time, and that is not "clean".
pub fn watched(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("nothing can be seen in 0 s".to_owned()),
        time => Ok(time),
    }
}

/// Runs the monitor and returns the exit code.
pub fn run(args: Args, config: Config) -> Result<u8, Failure> {
    let runtime = single_threaded()?;
    runtime.block_on(watch(args, config))
}

async fn watch(args: Args, config: Config) -> Result<u8, Failure> {
    // A hang-up of a terminal ends the monitor; otherwise the signal comes from logrotate.
    let rotates = args.log.is_some() && !io::stdout().is_terminal();
    let moved = Moved::default();
    let mut signals = match rotates {
        true => Signals::without_hangup()?,
        false => Signals::new()?,
    };
    if rotates {
        tokio::spawn(reopen(signal(SignalKind::hangup())?, moved.clone()));
    }
    let format = format(&args);
    let beside = args
        .log
        .as_deref()
        .map(|path| append(path, moved))
        .transpose()?;
    let metrics = (args.metrics.as_deref())
        .map(|address| listen("--metrics", address))
        .transpose()?;
    let mut notes = vec![];
    let [programs, root] = sockets(args.socket.as_deref(), &mut notes)?;
    let ((place, control), (_root_place, root)) = (programs.unzip(), root.unzip());
    let path = (place.as_ref()).map(|place| place.path.display().to_string());
    let (side, (requests, commands)) = MonitorSide::start(SideParts {
        control,
        allowed: Allowed::new(
            config.alarms.reporters,
            invoking_user().into_iter().collect(),
        ),
        root,
        metrics,
        media: Media::default(),
        on_alarm: args.on_alarm,
        emulated: config.emulator.is_some(),
        tampering: config.emulator.is_some(),
    })?;
    let monitor = monitor(&config)?;
    let stdout = Outlet::new(io::stdout().as_fd().try_clone_to_owned()?)?;
    // Not earlier: the kernel's verifier works in this thread, too.
    notes.extend(punctual());
    let psi = pressure(&config, &mut notes)?;
    let setup = Setup {
        log: Log::new(Clock::now(), format, stdout, beside),
        psi,
        config,
        socket: path,
        requests,
        commands,
        notes,
        witness: None,
        patience: LAST_LINES,
    };
    let until = Until {
        duration: args.duration,
        alarms: args.stop_after,
    };
    let mut observation = Observation::new(monitor, setup);
    if format == Format::Json {
        for sentence in observation.unknown() {
            to_stderr(format_args!("emud: {sentence}"));
        }
    }
    let signal = async {
        signals.any().await;
        EndReason::Signal
    };
    let ended = observation.run(until, signal).await;
    observation.close();
    let ran = side.finish(asked(&mut signals)).await;
    exit_code(observation.finish(ended, ran, None))
}

fn format(args: &Args) -> Format {
    match io::stdout().is_terminal() {
        _ if args.json => Format::Json,
        _ if args.text => Format::Text,
        true => Format::Text,
        false => Format::Json,
    }
}

/// Reopens the file at each signal.
async fn reopen(mut hangup: Signal, moved: Moved) {
    while hangup.recv().await.is_some() {
        moved.store(true, Ordering::Relaxed);
    }
}

fn append(path: &Path, moved: Moved) -> Result<FileLog, Failure> {
    let failed = |e| {
        let message = format!("cannot write {}: {e}", path.display());
        Failure::new(EX_CANTCREAT, message)
    };
    let caller = User::invoking()?;
    let at = path.to_owned();
    let open = move || match &caller {
        Some(caller) => caller.append(&at),
        None => File::options().append(true).create(true).open(&at),
    };
    FileLog::append(open, moved).map_err(failed)
}

fn exit_code(finished: Finished) -> Result<u8, Failure> {
    let contended = finished.contended();
    let unwritten = |what: &str, e: io::Error| match e.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        io::ErrorKind::TimedOut => Err(format!("{what} did not accept the last lines in time")),
        _ => Err(format!("cannot write {what}: {e}")),
    };
    let [out, beside] = finished.written;
    match finished.stop {
        Stop::Monitor(e) => return Err(e.into()),
        Stop::Output(e) => unwritten("the output", e),
        Stop::Over(_) => Ok(()),
    }
    .and_then(|()| out.or_else(|e| unwritten("the output", e)))
    .and_then(|()| beside.or_else(|e| unwritten("the log file", e)))
    .map_err(|message| Failure::new(EX_IOERR, message))?;
    Ok(if contended { CONTENTION_SEEN } else { DONE })
}

/// Waits until a signal or a client requests the end.
async fn asked(signals: &mut Signals) {
    signals.any().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_may_take_hours() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert!(watched("0ms").is_err() && watched("0h").is_err());
        for wrong in ["5", "-1h", "h", "9000h", "NaNh"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
