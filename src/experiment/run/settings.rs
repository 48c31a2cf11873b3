// SPDX-License-Identifier: MIT OR Apache-2.0
use std::path::PathBuf;
use std::time::Duration;

use emud_monitor::Config;

use super::User;
use crate::datapath::engine::EngineChoice;

/// What determines emud's exit code first; the other one if that is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    Program,
    Verdict,
}

/// How a plan is carried out.
#[derive(Debug, Clone)]
pub struct Settings {
    /// emud's command line, for the log.
    pub argv: Vec<String>,
    /// Of every random decision of every link.
    pub seed: u64,
    pub engine: EngineChoice,
    /// What counts as contention.
    pub config: Config,
    /// Between two samples of the links' counters; none: no samples.
    pub sample: Option<Duration>,
    /// The programs' lines are kept in the log.
    pub log_output: bool,
    /// Where artefacts are kept; a folder of each node is made in it.
    pub artefacts: Option<PathBuf>,
    /// End at the first alarm.
    pub abort_on_contention: bool,
    pub exit_code: ExitCode,
    /// Programs run as this user; none: as root.
    pub user: Option<User>,
    /// Commands of the preparation and the clean-up run as root all the same.
    pub root_prepares: bool,
    /// Who called emud, and owns what it leaves behind; none: root.
    pub caller: Option<User>,
    /// An interface of the caller's namespace, in place of a network.
    pub in_place: Option<String>,
    /// For the log and the user.
    pub notes: Vec<String>,
    /// Number of this run, and of all.
    pub repeat: (u32, u32),
}
