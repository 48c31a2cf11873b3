// SPDX-License-Identifier: MIT OR Apache-2.0
//! bpf(2), for what aya does not support.

pub(crate) mod by_id;

use std::io;

use aya::sys::SyscallError;

/// Calls bpf(2); `name` is that of the command.
///
/// # Safety
/// The pointers in `attr` must be valid for `command`.
pub(crate) unsafe fn bpf<T>(
    command: libc::c_int,
    name: &'static str,
    attr: &mut T,
) -> Result<libc::c_int, SyscallError> {
    let attr: *mut T = attr;
    // SAFETY: the caller guarantees it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<T>()) };
    match result {
        0.. => Ok(result as libc::c_int),
        _ => Err(SyscallError {
            call: name,
            io_error: io::Error::last_os_error(),
        }),
    }
}
