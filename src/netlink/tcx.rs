// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs at a device by tcx (Linux 6.6). They stay until they are detached or the device is
//! deleted, as filters do; aya attaches them to a file descriptor only.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{io, mem, result};

use super::{Hook, NetlinkError, OsFailure, Result};

type Called<T> = result::Result<T, OsFailure>;

/// Of enum bpf_cmd and enum bpf_attach_type, include/uapi/linux/bpf.h.
const BPF_PROG_ATTACH: libc::c_long = 8;
const BPF_PROG_DETACH: libc::c_long = 9;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_F_REPLACE: u32 = 1 << 2;
const BPF_F_BEFORE: u32 = 1 << 3;

/// Programs at a hook, of all users (BPF_MPROG_MAX, kernel/bpf/mprog.c).
const MOST: usize = 64;

/// The part of union bpf_attr for attach and detach.
#[repr(C)]
#[derive(Default)]
struct Attr {
    ifindex: u32,
    program: u32,
    attach_type: u32,
    flags: u32,
    replaced: u32,
    /// Before or behind which other program; 0: before all.
    relative: u32,
    revision: u64,
}

/// The same for BPF_PROG_QUERY.
#[repr(C)]
#[derive(Default)]
struct Query {
    ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    unused: u32,
    /// Arrays that are not wanted.
    others: [u64; 3],
    revision: u64,
}

/// The same for BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct GetInfo {
    program: u32,
    length: u32,
    info: u64,
}

/// The begin of struct bpf_prog_info.
#[repr(C)]
#[derive(Default)]
struct Info {
    before: [u64; 8],
    name: [u8; 16],
}

/// Attaches a program before all others at this hook of a device.
pub fn attach_tcx(ifindex: u32, hook: Hook, program: BorrowedFd<'_>) -> Result<()> {
    let mut attr = Attr {
        program: number(program),
        flags: BPF_F_BEFORE,
        ..of(ifindex, hook)
    };
    let attempted = || {
        format!(
            "attach to the {} of interface {ifindex} by tcx",
            hook.name()
        )
    };
    done(call(BPF_PROG_ATTACH, &mut attr, attempted))
}

/// Replaces a program by another one at its position: every packet sees one of them.
pub fn replace_tcx(ifindex: u32, hook: Hook, id: u32, program: BorrowedFd<'_>) -> Result<()> {
    let attempted = || {
        format!(
            "replace the tcx program {id} at the {} of interface {ifindex}",
            hook.name()
        )
    };
    let replaced = by_id(id, attempted).map_err(NetlinkError::of)?;
    let mut attr = Attr {
        program: number(program),
        flags: BPF_F_REPLACE,
        replaced: number(replaced.as_fd()),
        ..of(ifindex, hook)
    };
    done(call(BPF_PROG_ATTACH, &mut attr, attempted))
}

/// Detaches a program.
pub fn detach_tcx(ifindex: u32, hook: Hook, id: u32) -> Result<()> {
    let attempted = || {
        format!(
            "detach the tcx program {id} from the {} of interface {ifindex}",
            hook.name()
        )
    };
    let program = by_id(id, attempted).map_err(NetlinkError::of)?;
    let mut attr = Attr {
        program: number(program.as_fd()),
        ..of(ifindex, hook)
    };
    done(call(BPF_PROG_DETACH, &mut attr, attempted))
}

fn done(called: Called<i32>) -> Result<()> {
    called.map(drop).map_err(NetlinkError::of)
}

fn of(ifindex: u32, hook: Hook) -> Attr {
    Attr {
        ifindex,
        attach_type: attach_type(hook),
        ..Attr::default()
    }
}

fn attach_type(hook: Hook) -> u32 {
    match hook {
        Hook::Egress => BPF_TCX_EGRESS,
        Hook::Ingress => BPF_TCX_INGRESS,
    }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn by_id(id: u32, attempted: impl Fn() -> String) -> Called<OwnedFd> {
    // The command's first field is the id.
    let mut attr = Attr {
        ifindex: id,
        ..Attr::default()
    };
    let fd = call(BPF_PROG_GET_FD_BY_ID, &mut attr, attempted)?;
    // SAFETY: the kernel has just opened it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: libc::c_long, attr: &mut T, attempted: impl Fn() -> String) -> Called<i32> {
    // SAFETY: the attributes are those of the command, and outlive the call as what they point to.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, mem::size_of::<T>()) };
    match done {
        0.. => Ok(done as i32),
        _ => {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            Err(failure(attempted(), errno))
        }
    }
}

fn failure(attempted: String, errno: i32) -> OsFailure {
    OsFailure {
        attempted,
        errno,
        message: String::new(),
    }
}

/// A program attached by tcx: it runs before every filter of clsact and may consume packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcxProgram {
    /// Id of the program.
    pub id: u32,
    /// Name of the program.
    pub name: String,
}

/// Times that a program may go while the list is read.
const ATTEMPTS: usize = 10;

/// Returns the programs in their order of execution; empty on kernels before 6.6, which have no
/// tcx, and if the device has gone.
///
/// By index: aya lists by name, and a device that is being renamed has neither name for some milliseconds
/// (`netif_change_name`).
pub fn tcx_programs(ifindex: u32, hook: Hook) -> Result<Vec<TcxProgram>> {
    let mut found = listed(ifindex, hook);
    for _ in 1..ATTEMPTS {
        if !found.as_ref().is_err_and(|e| e.errno == libc::ENOENT) {
            break;
        }
        found = listed(ifindex, hook);
    }
    found.map_err(NetlinkError::of)
}

fn listed(ifindex: u32, hook: Hook) -> Called<Vec<TcxProgram>> {
    let attempted = || format!("list tcx programs on interface {ifindex}");
    let mut ids = [0u32; MOST];
    let mut query = Query {
        ifindex,
        attach_type: attach_type(hook),
        ids: ids.as_mut_ptr() as u64,
        count: MOST as u32,
        ..Query::default()
    };
    match call(BPF_PROG_QUERY, &mut query, attempted) {
        Ok(_) => {}
        // A kernel that does not know the attach type; no such device, or nothing at it.
        Err(e) if [libc::EINVAL, libc::ENODEV, libc::ENOENT].contains(&e.errno) => {
            return Ok(vec![]);
        }
        Err(e) => return Err(e),
    }
    let ids = ids.iter().take(query.count as usize);
    ids.map(|id| named(*id, attempted)).collect()
}

fn named(id: u32, attempted: impl Fn() -> String) -> Called<TcxProgram> {
    let program = by_id(id, &attempted)?;
    let mut info = Info::default();
    let mut attr = GetInfo {
        program: number(program.as_fd()),
        length: mem::size_of::<Info>() as u32,
        info: (&raw mut info) as u64,
    };
    call(BPF_OBJ_GET_INFO_BY_FD, &mut attr, attempted)?;
    let name = info.name.split(|byte| *byte == 0).next();
    Ok(TcxProgram {
        id,
        name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
    })
}
