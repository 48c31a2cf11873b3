// SPDX-License-Identifier: GPL-2.0-only
//! Many values of an array map in one call: a call each takes seconds for a million.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya::Pod;
use aya::maps::MapError;
use aya::sys::SyscallError;

/// enum bpf_cmd (include/uapi/linux/bpf.h), Linux 5.6.
const BPF_MAP_UPDATE_BATCH: libc::c_int = 26;
/// Values a call: the keys take 4 bytes each beside them.
const MOST: usize = 1 << 16;

/// The part of union bpf_attr that this call takes.
#[repr(C)]
struct BatchAttr {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// Writes `values` at `first` and behind; the map's values must be of this type.
///
/// # Errors
/// The kernel's; some of the values may have been written then.
pub(super) fn write_all<T: Pod>(
    map: BorrowedFd<'_>,
    first: u32,
    values: &[T],
) -> Result<(), MapError> {
    let mut at = first;
    for part in values.chunks(MOST) {
        let count = part.len() as u32;
        let keys: Vec<u32> = (at..at + count).collect();
        let attr = BatchAttr {
            in_batch: 0,
            out_batch: 0,
            keys: keys.as_ptr().addr() as u64,
            values: part.as_ptr().addr() as u64,
            count,
            map_fd: map.as_raw_fd().cast_unsigned(),
            elem_flags: 0,
            flags: 0,
        };
        // SAFETY: `keys` and `part` have `count` elements each of the map's own sizes, are only
        // read, and outlive the call, as `attr` does.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_MAP_UPDATE_BATCH,
                &raw const attr,
                size_of::<BatchAttr>(),
            )
        };
        if result != 0 {
            let io_error = io::Error::last_os_error();
            let call = "bpf_map_update_batch";
            return Err(SyscallError { call, io_error }.into());
        }
        at += count;
    }
    Ok(())
}
