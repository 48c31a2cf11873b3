// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs by their ids, and their maps. aya finds a program in the list of all, which takes three system
//! calls for each: with 1,000 links on a host, whatever acts on one would read all of them.

use std::io::ErrorKind::NotFound;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use aya::sys::SyscallError;

use super::bpf;

/// enum bpf_cmd (include/uapi/linux/bpf.h).
const BPF_PROG_GET_NEXT_ID: libc::c_int = 11;
const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;

/// The classifier has some twenty.
const MOST: usize = 64;

/// The first fields of struct bpf_prog_info, up to the name; the kernel accepts any length.
#[repr(C)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_len: u32,
    translated_len: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; 16],
}

/// A loaded program.
pub(crate) struct ById {
    /// The first 15 characters.
    pub name: String,
    /// The maps that it uses.
    pub map_ids: Vec<u32>,
}

/// The parts of union bpf_attr.
#[repr(C)]
struct IdAttr {
    id: u32,
    next_id: u32,
    flags: u32,
}

#[repr(C)]
struct ByFd {
    fd: u32,
    len: u32,
    info: u64,
}

/// Returns the id of the loaded program after this one; `None`: that was the last.
///
/// # Errors
/// This process may not see programs.
pub(crate) fn after(program: u32) -> Result<Option<u32>, SyscallError> {
    let mut attr = IdAttr {
        id: program,
        next_id: 0,
        flags: 0,
    };
    // SAFETY: numbers only.
    let found = unsafe { bpf(BPF_PROG_GET_NEXT_ID, "bpf_prog_get_next_id", &mut attr) };
    match found {
        Ok(_) => Ok(Some(attr.next_id)),
        Err(e) if e.io_error.kind() == NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns the ids of the maps that a program uses.
///
/// # Errors
/// As [`open`].
pub(crate) fn map_ids(program: u32) -> Result<Vec<u32>, SyscallError> {
    Ok(self::program(program)?.map_ids)
}

/// Opens a loaded program.
///
/// # Errors
/// There is no such program, or this process may not see it.
pub(crate) fn open(program: u32) -> Result<OwnedFd, SyscallError> {
    let mut attr = IdAttr {
        id: program,
        next_id: 0,
        flags: 0,
    };
    // SAFETY: numbers only.
    let fd = unsafe { bpf(BPF_PROG_GET_FD_BY_ID, "bpf_prog_get_fd_by_id", &mut attr) }?;
    // SAFETY: the kernel has just returned it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns a loaded program.
///
/// # Errors
/// As [`open`].
pub(crate) fn program(program: u32) -> Result<ById, SyscallError> {
    let fd = open(program)?;
    let mut ids = vec![0u32; MOST];
    // SAFETY: numbers only.
    let mut info: ProgramInfo = unsafe { zeroed() };
    info.nr_map_ids = MOST as u32;
    info.map_ids = ids.as_mut_ptr().addr() as u64;
    let mut attr = ByFd {
        fd: fd.as_raw_fd().cast_unsigned(),
        len: size_of::<ProgramInfo>() as u32,
        info: (&raw mut info).addr() as u64,
    };
    // SAFETY: `info` and `ids`, whose length it has, outlive the call.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, "bpf_obj_get_info_by_fd", &mut attr) }?;
    ids.truncate(info.nr_map_ids as usize);
    let name = info.name.split(|byte| *byte == 0).next();
    Ok(ById {
        name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
        map_ids: ids,
    })
}
