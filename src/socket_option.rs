// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of sockets that rustix does not have.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option, whose value is of the kernel's type.
pub(crate) fn set<T>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value lives until the call returns, and its size is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
