// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of running monitors.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::Value;

use super::ObserveError;
use super::control::{is_apart, sockets};
use crate::host::runtime::{FOLDER, ROOT_FOLDER};

/// Time limit for the answer of a monitor.
const PATIENCE: Duration = Duration::from_secs(5);

/// The variable with the path of the monitor of a run, in the environment of its programs.
pub const OF_RUN: &str = "EMUD_MONITOR_SOCKET";

/// Sends `message` to the monitor at `socket`, or of the run to which this process belongs: other
/// runs on this host have nothing to do with it. Without both, to all monitors that run without
/// `--socket`. Returns how many accepted it.
///
/// # Errors
/// As [`tell`].
pub fn report(socket: Option<&Path>, message: &Value) -> Result<usize, ObserveError> {
    let of_run = std::env::var_os(OF_RUN).map(PathBuf::from);
    tell(socket.or(of_run.as_deref()), message)
}

/// Sends `message` to the monitor at `socket`, or to all that run without `--socket`. Returns how
/// many accepted it.
///
/// # Errors
/// [`ObserveError::NoMonitor`], [`ObserveError::Refused`], [`ObserveError::NotAllowed`],
/// [`ObserveError::Talk`]; all monitors got the message, the first failure is returned.
pub fn tell(socket: Option<&Path>, message: &Value) -> Result<usize, ObserveError> {
    if let Some(path) = socket {
        return match tell_one(path, message)? {
            true => Ok(1),
            false => Err(ObserveError::NoMonitor(path.display().to_string())),
        };
    }
    // Only root can create sockets in those folders.
    let folder = match geteuid().is_root() {
        true => Path::new(ROOT_FOLDER),
        false => Path::new(FOLDER),
    };
    let mut paths = sockets(folder).map_err(|error| ObserveError::Talk {
        path: folder.to_owned(),
        error,
    })?;
    paths.retain(|path| !is_apart(path));
    let results: Vec<_> = paths.iter().map(|path| tell_one(path, message)).collect();
    let told: Vec<bool> = results.into_iter().collect::<Result<_, _>>()?;
    match told.into_iter().filter(|told| *told).count() {
        0 => Err(ObserveError::NoMonitor(FOLDER.into())),
        told => Ok(told),
    }
}

/// Returns false if no process listens there.
fn tell_one(path: &Path, message: &Value) -> Result<bool, ObserveError> {
    let talk = |error| ObserveError::Talk {
        path: path.to_owned(),
        error,
    };
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
            return Ok(false);
        }
        Err(e) => return Err(talk(e)),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(talk)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(talk)?;
    let sent = stream.write_all(format!("{message}\n").as_bytes());
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer);
    // The monitor may have rejected the connection before it read the line.
    if answer.is_empty() {
        sent.and(read).map_err(talk)?;
    }
    let answer: Value = serde_json::from_str(&answer).map_err(|e| talk(e.into()))?;
    match answer["error"].as_str() {
        None => Ok(true),
        Some(error) if answer["denied"] == Value::Bool(true) => {
            Err(ObserveError::NotAllowed(error.into()))
        }
        Some(error) => Err(ObserveError::Refused(error.into())),
    }
}
