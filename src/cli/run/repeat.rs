// SPDX-License-Identifier: GPL-2.0-only
//! One run after the other, and what they say together.

use std::fs::File;
use std::path::{Path, PathBuf};

use emud::results::{Run, summarise};
use emud::run::{self, Outcome, Settings, derived};
use emud_monitor::log::RunVerdict;

use super::Args;
use super::what::What;
use crate::cli::failure::{EX_CANTCREAT, EX_IOERR};
use crate::cli::{Failure, hold_run};

/// Returns the exit code: with --require-clean that of the clean run, else the first that is not
/// 0.
pub fn run(args: &Args, what: &What, settings: Settings) -> Result<u8, Failure> {
    let kept = Kept::new(args)?;
    let mut codes = vec![];
    let mut logs = vec![];
    for n in 1..=args.repeat {
        let log = kept.log.as_deref().map(|log| numbered(log, n, args.repeat));
        let settings = Settings {
            repeat: (n, args.repeat),
            seed: match args.new_seeds {
                true => derived(settings.seed, n as usize - 1),
                false => settings.seed,
            },
            artefacts: folder(args, log.as_deref(), n),
            ..settings.clone()
        };
        let outcome = once(what, &settings, log.as_deref())?;
        logs.extend(log);
        let judgement = outcome.judgement();
        eprint!("emud: {}", run::text(judgement));
        codes.push(judgement.exit_code);
        if outcome.signal.is_some() {
            break;
        }
        if args.require_clean && judgement.verdict == RunVerdict::Clean {
            codes = vec![judgement.exit_code];
            break;
        }
    }
    if args.repeat > 1 {
        let runs = logs.iter().map(|log| Run::read(log));
        eprint!(
            "{}",
            summarise(&runs.collect::<Result<Vec<_>, _>>()?).text()
        );
    }
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
}

/// Where the logs are. Repeats need them for their summary, also where nobody keeps them.
struct Kept {
    log: Option<PathBuf>,
    /// A folder that goes with this value.
    folder: Option<PathBuf>,
}

impl Kept {
    fn new(args: &Args) -> Result<Self, Failure> {
        if args.log.is_some() || args.repeat == 1 {
            return Ok(Self {
                log: args.log.clone(),
                folder: None,
            });
        }
        let name = format!("emud-run-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).map_err(|e| {
            let message = format!("cannot make {}: {e}", folder.display());
            Failure::new(EX_CANTCREAT, message)
        })?;
        Ok(Self {
            log: Some(folder.join("run.log")),
            folder: Some(folder),
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // It is in the folder for temporary files; somebody else cleans that.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn once(what: &What, settings: &Settings, log: Option<&Path>) -> Result<Outcome, Failure> {
    let plan = what.plan()?;
    let file = log.map(create).transpose()?;
    let outcome = run::conduct(&plan, settings, hold_run::command, file)?;
    for note in &outcome.notes {
        eprintln!("emud: note: {note}");
    }
    if let (Some(path), Err(e)) = (log, &outcome.finished.written) {
        let message = format!("{} cannot be written: {e}", path.display());
        return Err(Failure::new(EX_IOERR, message));
    }
    if outcome.finished.lines_lost > 0 {
        let lost = outcome.finished.lines_lost;
        eprintln!("emud: note: {lost} lines of the log were lost: the disk was too slow");
    }
    Ok(outcome)
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|e| {
        let message = format!("cannot write {}: {e}", path.display());
        Failure::new(EX_CANTCREAT, message)
    })
}

/// a.log; of several a.1.log, a.2.log, ...
fn numbered(log: &Path, n: u32, of: u32) -> PathBuf {
    if of == 1 {
        return log.to_owned();
    }
    let mut name = log.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{n}"));
    if let Some(extension) = log.extension() {
        name.push(".");
        name.push(extension);
    }
    log.with_file_name(name)
}

/// A folder for each run.
fn folder(args: &Args, log: Option<&Path>, n: u32) -> Option<PathBuf> {
    match (&args.artefacts, log) {
        (Some(folder), _) if args.repeat > 1 => Some(folder.join(n.to_string())),
        (Some(folder), _) => Some(folder.clone()),
        (None, Some(log)) => {
            let mut name = log.as_os_str().to_owned();
            name.push(".artefacts");
            Some(name.into())
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_repeats_are_numbered_before_their_extension() {
        let of = |log: &str, of| numbered(Path::new(log), 2, of);
        assert_eq!(of("a/b.log", 1), Path::new("a/b.log"));
        assert_eq!(of("a/b.log", 3), Path::new("a/b.2.log"));
        assert_eq!(of("b", 3), Path::new("b.2"));
    }
}
