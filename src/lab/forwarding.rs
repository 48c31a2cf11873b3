// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forwarding on a device of the host: switched on while somebody needs it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::LabError;
use crate::engine::hold::spawn::this_program;

/// A keeper whom no other emud keeps waiting needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(1);

fn setting(device: &str) -> PathBuf {
    Path::new("/proc/sys/net/ipv4/conf")
        .join(device)
        .join("forwarding")
}

/// Switches it on for a device that goes when emud does.
pub(super) fn switch_on_own(device: &str) -> Result<(), LabError> {
    let file = setting(device);
    fs::write(&file, "1").map_err(|e| LabError::system(format!("write {}", file.display()), e))
}

/// Every emud that needs forwarding on a device shares a lock on its setting.
/// The one that found it off has a process that switches it off again when
/// emud has gone, in whatever way, and nobody shares the lock any more.
#[derive(Debug)]
pub(super) struct Forwarding {
    shared: File,
    keeper: Option<(Child, UnixStream)>,
}

impl Forwarding {
    pub(super) fn switch_on(device: &str) -> Result<Self, LabError> {
        let path = setting(device);
        let failed = |e| LabError::system(format!("switch on {}", path.display()), e);
        let mut file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        flock(&file, FlockOperation::LockShared).map_err(|e| failed(e.into()))?;
        let mut was = String::new();
        file.read_to_string(&mut was).map_err(failed)?;
        if was.trim() != "0" {
            return Ok(Self {
                shared: file,
                keeper: None,
            });
        }
        let keeper = Some(start_keeper(&file).map_err(failed)?);
        // From here on it is put back.
        let made = Self {
            shared: file,
            keeper,
        };
        write(&made.shared, "1").map_err(failed)?;
        Ok(made)
    }

    /// Waits until it is as before, unless another emud still needs it: then
    /// the keeper outlives this process.
    pub(super) fn restore(self) -> Result<(), LabError> {
        let Self { shared, keeper } = self;
        drop(shared);
        let Some((mut process, control)) = keeper else {
            return Ok(());
        };
        drop(control);
        let give_up = Instant::now() + PATIENCE;
        let failed = |e| LabError::system("put forwarding back", e);
        while Instant::now() < give_up {
            match process.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(failed(io::Error::other(status.to_string()))),
                None => thread::sleep(LOOK_EVERY),
            }
        }
        Ok(())
    }
}

fn start_keeper(setting: &File) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let process = this_program()
        .args(["node-run", "--keep-forwarding"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(setting.try_clone()?))
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()?;
    Ok((process, ours))
}

fn write(mut setting: &File, value: &str) -> io::Result<()> {
    setting.rewind()?;
    setting.write_all(value.as_bytes())
}

/// The keeper: waits for the end of standard input, then for all others that
/// share the lock on standard output, the setting, and switches it off.
///
/// # Errors
/// [`LabError::System`], if the setting could not be written.
pub fn keep() -> Result<(), LabError> {
    let failed = |e: io::Error| LabError::system("put forwarding back", e);
    rustix::thread::set_name(c"emud-host").map_err(|e| failed(e.into()))?;
    // Whoever ends emud and its children politely must not leave forwarding on.
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let before = for_all().map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(failed)?;
    let setting = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    flock(&setting, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
    // Meanwhile somebody may have made the host a router: then it is theirs.
    if before != for_all().map_err(failed)? {
        return Ok(());
    }
    match write(&setting, "0") {
        // The device has gone, and its setting with it.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written.map_err(failed),
    }
}

fn for_all() -> io::Result<String> {
    fs::read_to_string("/proc/sys/net/ipv4/ip_forward")
}
