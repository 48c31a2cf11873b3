// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to many values of a map in one system call, which aya does not support.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya::maps::MapError;

use crate::bpf::bpf;

/// enum bpf_cmd (include/uapi/linux/bpf.h).
const BPF_MAP_LOOKUP_BATCH: libc::c_int = 24;
const BPF_MAP_UPDATE_BATCH: libc::c_int = 26;
const BPF_MAP_DELETE_BATCH: libc::c_int = 27;

/// The part of union bpf_attr that these calls use.
#[repr(C)]
#[derive(Default)]
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

/// Writes the values of an array from index `first` on.
pub(crate) fn write_all<T: aya::Pod>(
    map: BorrowedFd<'_>,
    first: u32,
    values: &[T],
) -> Result<(), MapError> {
    let keys: Vec<u32> = (first..).take(values.len()).collect();
    insert_all(map, &keys, values)
}

/// Writes values at keys.
///
/// # Errors
/// The kernel returns an error; the values before the failed one are written.
pub(crate) fn insert_all<K: aya::Pod, T: aya::Pod>(
    map: BorrowedFd<'_>,
    keys: &[K],
    values: &[T],
) -> Result<(), MapError> {
    let count = keys.len().min(values.len());
    if count == 0 {
        return Ok(());
    }
    let mut attr = BatchAttr {
        keys: keys.as_ptr().addr() as u64,
        values: values.as_ptr().addr() as u64,
        count: count as u32,
        map_fd: map.as_raw_fd().cast_unsigned(),
        ..BatchAttr::default()
    };
    // SAFETY: keys and values have room for `count` of the map's, which are as long as K
    // and T (the callers' maps are typed); the kernel only reads them, and they and `attr`
    // outlive the call.
    unsafe { bpf(BPF_MAP_UPDATE_BATCH, "bpf_map_update_batch", &mut attr) }?;
    Ok(())
}

/// Deletes keys, all of which exist.
///
/// # Errors
/// The kernel returns an error; the keys before the failed one are deleted.
pub(crate) fn delete_all<K: aya::Pod>(map: BorrowedFd<'_>, keys: &[K]) -> Result<(), MapError> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut attr = BatchAttr {
        keys: keys.as_ptr().addr() as u64,
        count: keys.len() as u32,
        map_fd: map.as_raw_fd().cast_unsigned(),
        ..BatchAttr::default()
    };
    // SAFETY: there are `count` keys of the map's length (the callers' maps are typed); the
    // kernel only reads them, and they and `attr` outlive the call.
    unsafe { bpf(BPF_MAP_DELETE_BATCH, "bpf_map_delete_batch", &mut attr) }?;
    Ok(())
}

/// Reads `count` values of an array from its start.
pub(crate) fn read_all<T: aya::Pod + Default>(
    map: BorrowedFd<'_>,
    count: u32,
) -> Result<Vec<T>, MapError> {
    let mut keys = vec![0u32; count as usize];
    let mut values = vec![T::default(); count as usize];
    let mut next = 0u32;
    if count == 0 {
        return Ok(values);
    }
    let mut attr = BatchAttr {
        out_batch: (&raw mut next).addr() as u64,
        keys: keys.as_mut_ptr().addr() as u64,
        values: values.as_mut_ptr().addr() as u64,
        count,
        map_fd: map.as_raw_fd().cast_unsigned(),
        ..BatchAttr::default()
    };
    // SAFETY: the buffers have room for `count` keys and values of the map, whose lengths
    // are those of u32 and T (the callers' maps are typed arrays); all outlive the call.
    match unsafe { bpf(BPF_MAP_LOOKUP_BATCH, "bpf_map_lookup_batch", &mut attr) } {
        // Not found: there are no further entries.
        Err(e) if e.io_error.kind() != io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(values),
    }
}
