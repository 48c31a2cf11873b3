// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the holder in the background and waits for its report.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{HoldError, orphan, signal};

/// First byte through the pipe from a holder that is ready; otherwise an exit code.
const READY: u8 = 0;

/// The holder's end of the pipe. Dropping it unused signals the parent that the holder died.
#[derive(Debug)]
pub struct ReadyPipe(File);

impl ReadyPipe {
    /// Takes over a descriptor whose number is on the command line.
    ///
    /// # Errors
    /// [`HoldError::System`] if it is not open.
    ///
    /// # Safety
    /// Nothing else in this process may own `fd`.
    pub unsafe fn from_raw_fd(fd: RawFd) -> Result<Self, HoldError> {
        // SAFETY: the caller's promise.
        let fd = unsafe { inherited(fd) }?;
        Ok(Self(fd.into()))
    }

    /// Reports that the first lease is written.
    ///
    /// # Errors
    /// The parent no longer waits.
    pub fn ready(mut self) -> io::Result<()> {
        self.0.write_all(&[READY])
    }

    /// Reports that the holder cannot start; `exit_code` (not 0) and `message` become those of the
    /// parent.
    ///
    /// # Errors
    /// The parent no longer waits.
    pub fn failed(mut self, exit_code: u8, message: &str) -> io::Result<()> {
        self.0
            .write_all(&[&[exit_code.max(1)], message.as_bytes()].concat())
    }
}

/// Takes over a descriptor whose number is on the command line.
///
/// # Errors
/// [`HoldError::System`] if it is not open.
///
/// # Safety
/// Nothing else in this process may own `fd`.
pub unsafe fn inherited(fd: RawFd) -> Result<OwnedFd, HoldError> {
    let failed = |error| HoldError::system(format!("inherited descriptor {fd}"), error);
    if fd < 0 {
        return Err(failed(Errno::BADF));
    }
    // SAFETY: fd is not -1, and the caller promises that nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    match fcntl_setfd(&fd, FdFlags::CLOEXEC) {
        Ok(()) => Ok(fd),
        Err(error) => {
            // OwnedFd must never close a descriptor that is not open.
            std::mem::forget(fd);
            Err(failed(error))
        }
    }
}

/// Returns a command that runs this program.
pub fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("emud");
    command
}

/// Starts `command` as a process in a new session without a terminal, and waits for its report
/// through [`ReadyPipe`].
///
/// `command` gets the number of the pipe's descriptor for its arguments. Apart from that, only
/// `inherit` is open in the new process, with the same numbers.
///
/// # Errors
/// [`HoldError::Refused`] with its message, [`HoldError::Died`], [`HoldError::NotReady`] after
/// `timeout`; in every case the process has ended.
pub fn spawn(
    command: impl FnOnce(RawFd) -> Command,
    inherit: &[BorrowedFd<'_>],
    timeout: Duration,
) -> Result<Child, HoldError> {
    let (read, write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| HoldError::system("pipe", error))?;
    let mut command = command(write.as_raw_fd());
    orphan::record(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/");
    let mut keep: Vec<RawFd> = inherit.iter().map(|fd| fd.as_raw_fd()).collect();
    keep.push(write.as_raw_fd());
    // SAFETY: detach() makes system calls only, no allocation, no lock.
    unsafe { command.pre_exec(move || detach(&keep)) };
    let child = command
        .spawn()
        .map_err(|error| HoldError::system("starting the holder", error))?;
    drop(write);
    wait_ready(child, read.into(), timeout)
}

fn detach(keep: &[RawFd]) -> io::Result<()> {
    rustix::process::setsid()?;
    // Blocked while emud attaches; this process must end by SIGTERM.
    signal::unblock()?;
    // Descriptors of emud's caller (a lock, a pipe) must not stay open as long as the link exists.
    // Only marked: std's own pipe is needed until exec. SAFETY: marks descriptors, closes none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    for &fd in keep {
        // SAFETY: the parent holds it open across the fork.
        fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::empty())?;
    }
    Ok(())
}

fn wait_ready(mut child: Child, mut pipe: File, timeout: Duration) -> Result<Child, HoldError> {
    match read_answer(&mut pipe, timeout) {
        Ok(Some(answer)) => match answer.split_first() {
            Some((&READY, _)) => Ok(child),
            Some((&exit_code, message)) => {
                // It has sent its report, but may take a moment to end.
                end(&mut child)?;
                let message = String::from_utf8_lossy(message).trim_end().to_owned();
                Err(HoldError::Refused { exit_code, message })
            }
            None => {
                let status = child
                    .wait()
                    .map_err(|error| HoldError::system("holder", error))?;
                Err(HoldError::Died(status))
            }
        },
        Ok(None) => {
            end(&mut child)?;
            Err(HoldError::NotReady(timeout.as_millis()))
        }
        Err(error) => {
            end(&mut child)?;
            Err(HoldError::system("waiting for the holder", error))
        }
    }
}

fn end(child: &mut Child) -> Result<(), HoldError> {
    let failed = |error| HoldError::system("ending the holder", error);
    child.kill().map_err(failed)?;
    child.wait().map_err(failed)?;
    Ok(())
}

/// Returns the bytes from the pipe until it was closed or reported "ready"; `None` after the
/// timeout.
fn read_answer(pipe: &mut File, timeout: Duration) -> io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + timeout;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let len = pipe.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..len]);
        if len == 0 || answer.first() == Some(&READY) {
            return Ok(Some(answer));
        }
    }
}
