// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one repeat after the other, and summarises them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use emud::experiment::results::{Run, summarise};
use emud::experiment::run;
use emud::experiment::run::{Outcome, Settings, User, numbered, of_repeat};
use emud::host::signals::{Noted, exit_code};
use emud::host::spawn;
use emud::text::{printable, to_stderr};
use emud_monitor::log::{ExitLine, RunVerdict};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags, memfd_create, openat2};

use super::junit::{Suite, junit};
use super::what::What;
use super::{Annotations, Args};
use crate::cli::failure::{EX_CANTCREAT, EX_IOERR};
use crate::cli::{Failure, colour, hold_run};

/// How long a run that a signal ended waits for a reader of its messages.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// Interval of checks for a signal meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs all repeats and returns the exit code: with --require-clean that of the clean run,
/// otherwise the first that is not 0.
pub fn run(args: &Args, what: &What, settings: Settings) -> Result<u8, Failure> {
    let mut codes = vec![];
    let mut runs = vec![];
    let mut suites = vec![];
    let mut stopped = Ok(());
    // Also those that come between two runs, or when one has ended its clean-up.
    let signals = Noted::default();
    signals.first()?;
    untouched(args)?;
    let mut file = args
        .junit
        .as_deref()
        .map(|path| writable(path, &settings))
        .transpose()?;
    if let Some(note) = busy(
        std::fs::read_to_string("/proc/loadavg").ok().as_deref(),
        cpus(),
    ) {
        to_stderr(format_args!("emud: note: {note}"));
    }
    for n in 1..=args.repeat {
        let settings = Settings {
            repeat: (n, args.repeat),
            seed: match args.new_seeds {
                true => of_repeat(settings.seed, n as usize - 1),
                false => settings.seed,
            },
            ..settings.clone()
        };
        let ran = once(args, what, &settings, &signals);
        let (name, seed) = (what.name(), settings.seed);
        let suite = match &ran {
            Ok((outcome, _)) => Suite::of(outcome, name, settings.repeat, seed),
            Err(e) => Suite::failed(e, name, settings.repeat, seed),
        };
        if annotated(args) {
            say(suite.annotations(), &signals);
        }
        suites.push(suite);
        let (outcome, run) = match ran {
            Ok(ran) => ran,
            Err(e) => {
                // The runs before it still have results.
                stopped = Err(e);
                break;
            }
        };
        runs.extend(run);
        let judgement = outcome.judgement();
        codes.push(judgement.exit_code);
        if outcome.signal.is_some() {
            break;
        }
        if let Some(signal) = signals.first()?
            && n < args.repeat
        {
            codes.push(exit_code(signal));
            break;
        }
        let failed = outcome.exits.iter().any(ExitLine::failed);
        if args.require_clean && judgement.verdict == RunVerdict::Clean && !failed {
            codes = vec![judgement.exit_code];
            break;
        }
    }
    if args.repeat > 1 && !runs.is_empty() {
        let mark = colour::verdicts(&io::stderr());
        say(summarise(&runs).text(mark), &signals);
    }
    let written = match (&mut file, &args.junit) {
        (Some(file), Some(path)) => (file.write_all(junit(&suites).as_bytes()))
            .map_err(|e| Failure::new(EX_IOERR, format!("cannot write {}: {e}", path.display()))),
        _ => Ok(()),
    };
    stopped.and(written)?;
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
}

/// Opens a file before the run, so that a mistake in its name does not cost one.
fn writable(path: &Path, settings: &Settings) -> Result<File, Failure> {
    create(path, settings.caller.as_ref()).map_err(|e| {
        Failure::new(
            EX_CANTCREAT,
            format!("cannot write {}: {e}", path.display()),
        )
    })
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns a warning if more tasks ran in the last minute than two thirds of the CPUs can serve: a
/// run measures for a minute before its verdict says the same.
fn busy(loadavg: Option<&str>, cpus: usize) -> Option<String> {
    let load: f64 = loadavg?.split(' ').next()?.parse().ok()?;
    (load > cpus as f64 * 2.0 / 3.0).then(|| {
        format!(
            "this host is busy (load {load} on {cpus} CPU{}), so runs may be contended; \
             --monitor shared has thresholds for such a host (docs/ci.md)",
            if cpus == 1 { "" } else { "s" }
        )
    })
}

fn annotated(args: &Args) -> bool {
    match args.annotations {
        Some(annotations) => annotations == Annotations::Github,
        None => std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
    }
}

/// A log. Repeats need one for their summary, even if it is not kept: then it has no name, and ends
/// with this process.
enum Kept {
    At(PathBuf, File),
    Unnamed(File),
}

impl Kept {
    /// Opens the log; `None` if no log is needed.
    fn open(args: &Args, owner: Option<&User>, n: u32) -> Result<Option<Self>, Failure> {
        match &args.log {
            Some(log) => {
                let path = numbered(log, (n, args.repeat));
                let file = create(&path, owner).map_err(|e| {
                    let message = format!("cannot write {}: {e}", path.display());
                    Failure::new(EX_CANTCREAT, message)
                })?;
                Ok(Some(Self::At(path, file)))
            }
            None if args.repeat == 1 => Ok(None),
            None => {
                let file = memfd_create("emud-run-log", MemfdFlags::CLOEXEC)
                    .map_err(|e| Failure::os(format!("a log in memory: {e}")))?;
                Ok(Some(Self::Unnamed(file.into())))
            }
        }
    }

    fn file(&self) -> io::Result<File> {
        match self {
            Self::At(_, file) | Self::Unnamed(file) => file.try_clone(),
        }
    }

    /// Returns its name for messages.
    fn path(&self, n: u32) -> PathBuf {
        match self {
            Self::At(path, _) => path.clone(),
            Self::Unnamed(_) => format!("run {n}").into(),
        }
    }

    /// Reads what was written, whatever has its name now.
    fn read(&self, n: u32) -> Result<Run, Failure> {
        let (Self::At(_, file) | Self::Unnamed(file)) = self;
        let mut run = Run::read(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
        run.path = self.path(n);
        Ok(run)
    }
}

fn create(path: &Path, owner: Option<&User>) -> io::Result<File> {
    match owner {
        Some(owner) => owner.create(path),
        None => File::create(path),
    }
}

/// Runs one repeat, prints its result, and reads its log if there are several.
fn once(
    args: &Args,
    what: &What,
    settings: &Settings,
    signals: &Noted,
) -> Result<(Outcome, Option<Run>), Failure> {
    let plan = what.plan()?;
    let (n, _) = settings.repeat;
    let caller = settings.caller.as_ref();
    let log = Kept::open(args, caller, n)?;
    let settings = Settings {
        artefacts: folder(args, log.as_ref(), caller, n)?,
        ..settings.clone()
    };
    let file = log.as_ref().map(Kept::file).transpose()?;
    let outcome = run::conduct(&plan, &settings, hold_run::command, file)?;
    let notes = outcome
        .notes
        .iter()
        .map(|note| format!("emud: note: {}\n", printable(note)));
    let mut text: String = notes.collect();
    if outcome.finished.lines_lost > 0 {
        text += &format!(
            "emud: note: {} lines of the log were lost because the disk was too slow\n",
            outcome.finished.lines_lost
        );
    }
    text += &run::exits(&outcome.exits);
    text += "emud: ";
    text += &colour::verdicts(&io::stderr())(&run::text(&outcome.finished));
    say(text, signals);
    let Some(log) = log else {
        return Ok((outcome, None));
    };
    if let Err(e) = &outcome.finished.written {
        let message = format!("cannot write {}: {e}", log.path(n).display());
        return Err(Failure::new(EX_IOERR, message));
    }
    let run = (args.repeat > 1).then(|| log.read(n)).transpose()?;
    Ok((outcome, run))
}

/// Prints to standard error, and waits for a reader that has stopped reading; after a signal, not for long. The exit
/// code does not change if the text cannot be printed.
fn say(text: String, signals: &Noted) {
    let (tell, said) = channel::<()>();
    let print = move || {
        let _ = io::stderr().write_all(text.as_bytes());
        drop(tell);
    };
    if spawn("emud-say", print).is_err() {
        return;
    }
    while let Err(RecvTimeoutError::Timeout) = said.recv_timeout(LOOK_EVERY) {
        if let Ok(Some(_)) = signals.first() {
            let _ = said.recv_timeout(AFTER_SIGNAL);
            return;
        }
    }
}

/// Files of two runs must not mix: the user's folder must be empty before the first one.
fn untouched(args: &Args) -> Result<(), Failure> {
    let Some(folder) = &args.artefacts else {
        return Ok(());
    };
    let failed = |why: String| {
        let message = format!("--artefacts {}: {why}", folder.display());
        Failure::new(EX_CANTCREAT, message)
    };
    match std::fs::read_dir(folder).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(failed(
            "the folder is not empty (each run needs a new one)".to_owned(),
        )),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// Returns the folder for artefacts of a run: in the user's folder, otherwise beside the log.
fn folder(
    args: &Args,
    log: Option<&Kept>,
    caller: Option<&User>,
    n: u32,
) -> Result<Option<PathBuf>, Failure> {
    match (&args.artefacts, log) {
        (Some(folder), _) if args.repeat > 1 => Ok(Some(folder.join(n.to_string()))),
        (Some(folder), _) => Ok(Some(folder.clone())),
        // A pipe or a device has no folder beside it.
        (None, Some(Kept::At(log, file))) if file.metadata()?.is_file() => {
            let folder = with_suffix(&log.canonicalize()?, ".artefacts");
            let moved = match caller {
                None => move_aside(&folder),
                Some(caller) => caller.or_root(|| move_aside(&folder), || by_root(&folder)),
            };
            let moved = moved.map_err(|e| {
                let message = format!("cannot rename {}: {e}", folder.display());
                Failure::new(EX_CANTCREAT, message)
            })?;
            if let Some(aside) = moved {
                to_stderr(format_args!(
                    "emud: note: {} belongs to an earlier run, and was renamed to {}",
                    folder.display(),
                    folder.with_file_name(aside).display()
                ));
            }
            Ok(Some(folder))
        }
        (None, _) => Ok(None),
    }
}

/// Renames the artefacts of an earlier run: its log has been overwritten, so they may be its only remaining
/// data. Returns their new name.
fn move_aside(folder: &Path) -> io::Result<Option<OsString>> {
    match std::fs::remove_dir(folder) {
        Ok(()) => return Ok(None),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        // The folder is not empty.
        Err(_) => {}
    }
    let mut aside = (1..).map(|n: u32| with_suffix(folder, &format!(".{n}")));
    let aside = aside.find(|aside| aside.symlink_metadata().is_err());
    let aside = aside.unwrap_or_else(|| folder.to_owned());
    std::fs::rename(folder, &aside)?;
    Ok(aside.file_name().map(OsStr::to_owned))
}

/// Does [`move_aside`] as root, safely if the folder above is exchanged meanwhile.
fn by_root(folder: &Path) -> io::Result<Option<OsString>> {
    let above = folder.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat2(CWD, above, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let above = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    move_aside(&above.join(folder.file_name().unwrap_or_default()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_host_is_noticed_before_the_first_run() {
        let load = |load: &str| format!("{load} 0.50 0.40 2/345 6789\n");
        assert_eq!(busy(Some(&load("1.30")), 2), None);
        let note = busy(Some(&load("1.40")), 2).unwrap();
        assert!(
            note.starts_with("this host is busy (load 1.4 on 2 CPUs)"),
            "{note}"
        );
        // What cannot be read is not judged.
        assert_eq!((busy(None, 1), busy(Some("?"), 1)), (None, None));
    }
}
