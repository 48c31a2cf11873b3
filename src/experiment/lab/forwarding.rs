// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forwarding on a device of the host: enabled while a process needs it.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::LabError;
use crate::datapath::engine::hold::spawn::this_program;
use crate::host::lock::{About, Lock, Range, Sharing};
use crate::netlink::{Link, Netlink, NetlinkError, setting};

/// Another emud process that restores the setting needs milliseconds.
const OTHERS: Duration = Duration::from_secs(5);
/// A keeper that does not wait for another emud process needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Below /proc/sys/net.
fn of(device: &str) -> String {
    format!("ipv4/conf/{device}/forwarding")
}

/// Enables it for a device that is deleted when emud ends.
pub(crate) fn switch_on_own(device: &str) -> Result<(), LabError> {
    let name = of(device);
    let failed = |e| LabError::system(format!("write /proc/sys/net/{name}"), e);
    setting::write(&name, "1").map_err(failed)
}

/// Every emud process that needs forwarding on a device shares a lock on it. The first one, which
/// found it disabled, starts a process that disables it again when emud has ended in any way and no
/// process shares the lock any more.
#[derive(Debug)]
pub(crate) struct Forwarding {
    shared: Lock,
    keeper: Option<(Child, UnixStream)>,
}

impl Forwarding {
    pub(crate) fn switch_on(device: &Link) -> Result<Self, LabError> {
        let name = of(&device.name);
        let path = format!("/proc/sys/net/{name}");
        let failed = |e| LabError::system(format!("enable {path}"), e);
        let shared = Lock::open(About::Forwarding).map_err(failed)?;
        let range = Range::here(device.index, 1).map_err(failed)?;
        if !(shared.take(range, Sharing::Shared, OTHERS)).map_err(failed)? {
            return Err(LabError::Busy(device.name.clone()));
        }
        if fs::read_to_string(&path).map_err(failed)?.trim() != "0" {
            return Ok(Self {
                shared,
                keeper: None,
            });
        }
        let keeper = Some(start_keeper(device, &shared).map_err(failed)?);
        // From here on it is restored.
        let made = Self { shared, keeper };
        setting::write(&name, "1").map_err(failed)?;
        Ok(made)
    }

    /// Waits until the setting is restored, unless another emud process still needs it: then the
    /// keeper outlives this process.
    pub(crate) fn restore(self) -> Result<(), LabError> {
        let Self { shared, keeper } = self;
        drop(shared);
        let Some((mut process, control)) = keeper else {
            return Ok(());
        };
        drop(control);
        let give_up = Instant::now() + PATIENCE;
        let failed = |e| LabError::system("restore forwarding", e);
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

fn start_keeper(device: &Link, lock: &Lock) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let process = this_program()
        .args(["node-run", "--keep-forwarding", &device.index.to_string()])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(lock.for_another()?))
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()?;
    Ok((process, ours))
}

/// Runs the keeper of a device: waits for the end of standard input, then for all others that share
/// the lock in standard output, and disables forwarding.
///
/// # Errors
/// [`LabError::System`], if the setting could not be written.
pub fn keep(ifindex: u32) -> Result<(), LabError> {
    let failed = |e: io::Error| LabError::system("restore forwarding", e);
    rustix::thread::set_name(c"emud-host").map_err(|e| failed(e.into()))?;
    // A signal to emud and its children must not leave forwarding enabled.
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let before = for_all().map_err(failed)?;
    let range = Range::here(ifindex, 1).map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(failed)?;
    let lock = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let lock = Lock::of(File::from(lock));
    // The keepers of two emud processes that started at the same time would wait for each other. Who
    // shares the lock from here on needs no share of this one: it finds forwarding enabled, and this
    // keeper waits for it, or disabled by another keeper, and starts one.
    lock.release(range).map_err(failed)?;
    // As long as others need it, without a limit: only root can hold a share.
    while !lock
        .take(range, Sharing::Exclusive, OTHERS)
        .map_err(failed)?
    {}
    // In the meantime the administrator may have made the host a router: then the setting stays.
    if before != for_all().map_err(failed)? {
        return Ok(());
    }
    let device = match Netlink::open()?.link_by_index(ifindex) {
        // The device was deleted, and its setting with it.
        Err(NetlinkError::NoInterface(_)) => return Ok(()),
        device => device?,
    };
    setting::write(&of(&device.name), "0").map_err(failed)
}

fn for_all() -> io::Result<String> {
    fs::read_to_string("/proc/sys/net/ipv4/ip_forward")
}
