// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs at a device by tcx (Linux 6.6). They stay until they are detached or the device is
//! deleted, as filters do; aya attaches them to a file descriptor only.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::result;

use aya::sys::SyscallError;

use super::{Hook, NetlinkError, OsFailure, Result};
use crate::bpf::{bpf, by_id};

type Called<T> = result::Result<T, SyscallError>;

/// Of enum bpf_cmd and enum bpf_attach_type, include/uapi/linux/bpf.h.
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_DETACH: libc::c_int = 9;
const BPF_PROG_QUERY: libc::c_int = 16;
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
    /// Before or after which other program; 0: before all.
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

/// Attaches a program before all others at this hook of a device.
pub fn attach_tcx(ifindex: u32, hook: Hook, program: BorrowedFd<'_>) -> Result<()> {
    let mut attr = Attr {
        program: number(program),
        flags: BPF_F_BEFORE,
        ..of(ifindex, hook)
    };
    let attached = call(BPF_PROG_ATTACH, "bpf_prog_attach", &mut attr);
    attached.map_err(|e| {
        let hook = hook.name();
        failure(
            format!("attach to the {hook} of interface {ifindex} by tcx"),
            &e,
        )
    })
}

/// Replaces a program by another one at its position: every packet sees one of them.
pub fn replace_tcx(ifindex: u32, hook: Hook, id: u32, program: BorrowedFd<'_>) -> Result<()> {
    let replaced = by_id::open(id).and_then(|replaced| {
        let mut attr = Attr {
            program: number(program),
            flags: BPF_F_REPLACE,
            replaced: number(replaced.as_fd()),
            ..of(ifindex, hook)
        };
        call(BPF_PROG_ATTACH, "bpf_prog_attach", &mut attr)
    });
    replaced.map_err(|e| {
        let hook = hook.name();
        failure(
            format!("replace the tcx program {id} at the {hook} of interface {ifindex}"),
            &e,
        )
    })
}

/// Detaches a program.
pub fn detach_tcx(ifindex: u32, hook: Hook, id: u32) -> Result<()> {
    let detached = by_id::open(id).and_then(|program| {
        let mut attr = Attr {
            program: number(program.as_fd()),
            ..of(ifindex, hook)
        };
        call(BPF_PROG_DETACH, "bpf_prog_detach", &mut attr)
    });
    detached.map_err(|e| {
        let hook = hook.name();
        failure(
            format!("detach the tcx program {id} from the {hook} of interface {ifindex}"),
            &e,
        )
    })
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

/// Calls bpf(2) with the part of its attributes that these commands have.
fn call(command: libc::c_int, name: &'static str, attr: &mut Attr) -> Called<()> {
    // SAFETY: numbers only.
    unsafe { bpf(command, name, attr) }.map(drop)
}

fn failure(attempted: String, e: &SyscallError) -> NetlinkError {
    NetlinkError::of(OsFailure {
        attempted,
        errno: errno(e),
        message: String::new(),
    })
}

fn errno(e: &SyscallError) -> i32 {
    e.io_error.raw_os_error().unwrap_or(0)
}

/// A program attached by tcx: it runs before every filter of clsact and may consume packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcxProgram {
    /// Id of the program.
    pub id: u32,
    /// Name of the program.
    pub name: String,
}

/// Checks that the kernel has tcx.
///
/// # Errors
/// It does not know the attach type.
pub fn tcx_is_known(ifindex: u32) -> Result<()> {
    match query(ifindex, Hook::Egress) {
        Err(e) if errno(&e) == libc::EINVAL => Err(failure(
            format!("list tcx programs on interface {ifindex}"),
            &e,
        )),
        _ => Ok(()),
    }
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
        if !found.as_ref().is_err_and(|e| errno(e) == libc::ENOENT) {
            break;
        }
        found = listed(ifindex, hook);
    }
    found.map_err(|e| failure(format!("list tcx programs on interface {ifindex}"), &e))
}

fn listed(ifindex: u32, hook: Hook) -> Called<Vec<TcxProgram>> {
    let ids = match query(ifindex, hook) {
        Ok(ids) => ids,
        // A kernel that does not know the attach type; no such device, or nothing at it.
        Err(e) if [libc::EINVAL, libc::ENODEV, libc::ENOENT].contains(&errno(&e)) => vec![],
        Err(e) => return Err(e),
    };
    let program = |id| {
        let name = by_id::program(id)?.name;
        Ok(TcxProgram { id, name })
    };
    ids.into_iter().map(program).collect()
}

/// Returns the ids of the programs at a hook.
fn query(ifindex: u32, hook: Hook) -> Called<Vec<u32>> {
    let mut ids = vec![0u32; MOST];
    let mut query = Query {
        ifindex,
        attach_type: attach_type(hook),
        ids: ids.as_mut_ptr().addr() as u64,
        count: MOST as u32,
        ..Query::default()
    };
    // SAFETY: `ids`, whose length it has, outlives the call.
    unsafe { bpf(BPF_PROG_QUERY, "bpf_prog_query", &mut query) }?;
    ids.truncate(query.count as usize);
    Ok(ids)
}
