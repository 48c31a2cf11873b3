// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals as a descriptor, for the holder to wait on.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Blocks SIGTERM, SIGINT and SIGHUP and returns a descriptor that becomes and stays readable when
/// one of them arrives: every thread sees it.
///
/// Call it before any thread is started.
pub fn stop_signals() -> io::Result<OwnedFd> {
    let set = mask(libc::SIG_BLOCK)?;
    // SAFETY: the set is initialised, and nothing else owns the new descriptor.
    unsafe {
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Lets this thread have them again, as a process that a thread after [`stop_signals`] has started: it
/// inherits what is blocked. Makes system calls only, so it may be called between fork and exec.
pub(super) fn unblock() -> io::Result<()> {
    mask(libc::SIG_UNBLOCK).map(drop)
}

fn mask(how: libc::c_int) -> io::Result<libc::sigset_t> {
    // SAFETY: the set is initialised by sigemptyset before anything reads it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        match libc::pthread_sigmask(how, &set, std::ptr::null_mut()) {
            0 => Ok(set),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
