// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run needs besides the monitor: a socket for reports, and pressure stall information.

use std::os::unix::net::UnixListener;
use std::path::Path;

use emud_monitor::event::Hook;
use emud_monitor::psi::Psi;
use emud_monitor::{Config, Monitor, MonitorError};

use super::control::{BoundSocket, place, root_place};
use super::{ObserveError, StartError};
use crate::datapath::emulated::Search;
use crate::host::runtime::{FOLDER, ROOT_FOLDER};

/// A socket and its listener.
pub type Socket = (BoundSocket, UnixListener);

/// Opens the socket for programs, and the one for root: holders of emulated links. If the default
/// sockets cannot be opened, a note is added and the kernel is watched nevertheless.
///
/// # Errors
/// [`ObserveError::Taken`], [`ObserveError::Listen`] for a socket that the user requested.
pub fn sockets(
    asked: Option<&Path>,
    notes: &mut Vec<String>,
) -> Result<[Option<Socket>; 2], ObserveError> {
    let programs = match place(asked, Path::new(FOLDER)) {
        Err(e) if asked.is_some() => return Err(e),
        programs => said(programs, "programs cannot report", notes),
    };
    let root = root_place(Path::new(ROOT_FOLDER), asked.is_some());
    let what = "links of engine hold cannot report late and dropped packets";
    Ok([programs, said(root, what, notes)])
}

fn said(
    socket: Result<Socket, ObserveError>,
    without: &str,
    notes: &mut Vec<String>,
) -> Option<Socket> {
    socket
        .map_err(|e| notes.push(format!("{without}: {e}")))
        .ok()
}

/// Loads the monitor's programs; also those for emulated links if there are any, so that the start
/// line has their hooks.
///
/// # Errors
/// As [`Monitor::start`] and [`Search::run`].
pub fn monitor(config: &Config) -> Result<Monitor, StartError> {
    let mut monitor = Monitor::start(config)?;
    if config.emulator.is_some() {
        let found = Search::default().run()?;
        monitor.set_emulated(&found.released_by_kernel())?;
    }
    Ok(monitor)
}

/// Arms the configured triggers; a rejected one results in a note.
///
/// # Errors
/// [`MonitorError::Blind`]: nothing else is configured, and all are rejected.
pub fn pressure(
    config: &Config,
    notes: &mut Vec<String>,
) -> Result<Option<(Psi, Vec<Hook>)>, MonitorError> {
    let Some(psi) = config.psi.map(Psi::open) else {
        return Ok(None);
    };
    let refused: Vec<String> = psi.1.iter().filter_map(refusal).collect();
    let other = Config {
        psi: None,
        ..config.clone()
    };
    if !other.is_anything_on() && refused.len() == psi.1.len() {
        return Err(MonitorError::Blind(refused.join("\n")));
    }
    notes.extend(refused);
    Ok(Some(psi))
}

/// Returns the error of a hook that was requested explicitly; no resource becomes unknown without it.
fn refusal(hook: &Hook) -> Option<String> {
    let refused = hook.refused.as_ref()?;
    Some(format!("the kernel rejected {}: {refused}", hook.hook))
}
