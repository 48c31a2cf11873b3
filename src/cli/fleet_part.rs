// SPDX-License-Identifier: MIT OR Apache-2.0
//! One host's part of an experiment; only `emud agent` starts it.

use std::fs::File;
use std::io::{BufReader, stdin, stdout};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use emud::experiment::run::User;
use emud::fleet::part;
use emud::monitor::settings;
use emud_monitor::Config;
use emud_monitor::config::GroupBy;

use super::failure::EX_NOUSER;
use super::{Failure, hold_run, run};

/// Carry out a part of an experiment (started by `emud agent`)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the log is written
    #[arg(long)]
    log_fd: RawFd,
    #[arg(long, required_unless_present = "root")]
    user: Option<String>,
    #[arg(long)]
    root: bool,
}

/// Returns a user by name; `None` for root.
pub fn user(name: &str) -> Result<Option<User>, Failure> {
    let failed = |why| Failure::new(EX_NOUSER, format!("--user {name}: {why}"));
    User::named(name).map_err(failed)
}

pub fn run(args: &Args) -> Result<(), Failure> {
    rustix::thread::set_name(c"emud-part").map_err(std::io::Error::from)?;
    // SAFETY: the agent passed it to this process, and nothing else in it uses it.
    let log = unsafe { OwnedFd::from_raw_fd(args.log_fd) };
    rustix::io::fcntl_setfd(&log, rustix::io::FdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let user = match (&args.user, args.root) {
        (Some(name), false) => user(name)?,
        _ => None,
    };
    let setup = part::Setup {
        user,
        log: File::from(log),
        holder: hold_run::command,
        config,
    };
    part::run(BufReader::new(stdin()), stdout(), setup)?;
    Ok(())
}

/// Returns the thresholds of a text, or those of `emud run`. By control group, as the reader of the verdict does not
/// know what else runs on a host: all programs of the experiment are in that of the agent.
fn config(text: Option<&str>) -> Result<Config, String> {
    match text {
        None => {
            let mut config = run::config(None).map_err(|failure| failure.message)?;
            config.alarms.group_by = GroupBy::Cgroup;
            Ok(config)
        }
        Some(text) => settings::parse(text, "--monitor").map_err(|e| e.to_string()),
    }
}
