// SPDX-License-Identifier: MIT OR Apache-2.0
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::Config;

use super::{Together, User};
use crate::datapath::engine::EngineChoice;

/// Which exit code has priority for emud's exit code; the other one applies if it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// That of the first program that failed.
    Program,
    /// That of the verdict: 3 contended, 4 invalid.
    Verdict,
}

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// emud's command line, for the log.
    pub argv: Vec<String>,
    /// Seed of every random decision of every link.
    pub seed: u64,
    /// The engine requested.
    pub engine: EngineChoice,
    /// The definition of contention.
    pub config: Config,
    /// Interval of samples of the links' counters; `None`: no samples.
    pub sample: Option<Duration>,
    /// Where metrics are served during the run.
    pub metrics: Option<Arc<TcpListener>>,
    /// Whether the programs' output is logged.
    pub log_output: bool,
    /// Whether nothing is printed: output and the description of links are only logged.
    pub quiet: bool,
    /// Folder for artefacts, with a folder per node.
    pub artefacts: Option<PathBuf>,
    /// Whether to end at the first alarm.
    pub abort_on_contention: bool,
    /// Which exit code has priority.
    pub exit_code: ExitCode,
    /// The user that programs run as; `None`: root.
    pub user: Option<User>,
    /// Whether commands of the preparation and the clean-up still run as root.
    pub root_prepares: bool,
    /// The user who called emud and owns its files; `None`: root.
    pub caller: Option<User>,
    /// An interface of the caller's namespace, instead of a network.
    pub in_place: Option<String>,
    /// Notes for the log and the user.
    pub notes: Vec<String>,
    /// Number of this run, and number of runs.
    pub repeat: (u32, u32),
    /// The other hosts, if this is a part of an experiment.
    pub together: Option<Together>,
}

impl Settings {
    /// Returns the arguments of this process.
    pub fn arguments() -> Vec<String> {
        let given = std::env::args_os();
        given
            .map(|one| one.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the settings of a run of which nothing is printed, with programs as root.
    pub fn quiet(seed: u64, config: Config) -> Self {
        Self {
            argv: Self::arguments(),
            seed,
            engine: EngineChoice::Auto,
            config,
            sample: None,
            metrics: None,
            log_output: true,
            quiet: true,
            artefacts: None,
            abort_on_contention: false,
            exit_code: ExitCode::Program,
            user: None,
            root_prepares: true,
            caller: None,
            in_place: None,
            notes: vec![],
            repeat: (1, 1),
            together: None,
        }
    }
}

/// Returns the name of a file of one of several runs: of a.log a.1.log, a.2.log, ...
pub fn numbered(path: &Path, (n, of): (u32, u32)) -> PathBuf {
    if of == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{n}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_repeats_are_numbered_before_their_extension() {
        let of = |path: &str, of| numbered(Path::new(path), (2, of));
        assert_eq!(of("a/b.log", 1), Path::new("a/b.log"));
        assert_eq!(of("a/b.log", 3), Path::new("a/b.2.log"));
        assert_eq!(of("b", 3), Path::new("b.2"));
    }
}
