// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals as a descriptor, for the holder to wait on.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Blocks SIGTERM, SIGINT and SIGHUP and returns a descriptor that becomes and stays readable when
/// one of them arrives: every thread sees it.
///
/// Call it before any thread is started.
pub fn stop_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before anything reads it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        let result = libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
