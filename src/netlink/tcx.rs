// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs at a device by tcx (Linux 6.6). They stay until they are detached or the device is
//! deleted, as filters do; aya attaches them to a file descriptor only.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{io, mem};

use aya::programs::tc::TcAttachType;
use aya::programs::{ProgramError, SchedClassifier};

use super::{Hook, NetlinkError, OsFailure, Result};

/// Of enum bpf_cmd and enum bpf_attach_type, include/uapi/linux/bpf.h.
const BPF_PROG_ATTACH: libc::c_long = 8;
const BPF_PROG_DETACH: libc::c_long = 9;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_F_REPLACE: u32 = 1 << 2;
const BPF_F_BEFORE: u32 = 1 << 3;

/// The part of union bpf_attr for both commands.
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

/// Attaches a program before all others at this hook of a device.
pub fn attach_tcx(ifindex: u32, hook: Hook, program: BorrowedFd<'_>) -> Result<()> {
    let attr = Attr {
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
    call(BPF_PROG_ATTACH, attr, attempted).map(drop)
}

/// Replaces a program by another one at its position: every packet sees one of them.
pub fn replace_tcx(ifindex: u32, hook: Hook, id: u32, program: BorrowedFd<'_>) -> Result<()> {
    let attempted = || {
        format!(
            "replace the tcx program {id} at the {} of interface {ifindex}",
            hook.name()
        )
    };
    let replaced = by_id(id, attempted)?;
    let attr = Attr {
        program: number(program),
        flags: BPF_F_REPLACE,
        replaced: number(replaced.as_fd()),
        ..of(ifindex, hook)
    };
    call(BPF_PROG_ATTACH, attr, attempted).map(drop)
}

/// Detaches a program.
pub fn detach_tcx(ifindex: u32, hook: Hook, id: u32) -> Result<()> {
    let attempted = || {
        format!(
            "detach the tcx program {id} from the {} of interface {ifindex}",
            hook.name()
        )
    };
    let program = by_id(id, attempted)?;
    let attr = Attr {
        program: number(program.as_fd()),
        ..of(ifindex, hook)
    };
    call(BPF_PROG_DETACH, attr, attempted).map(drop)
}

fn of(ifindex: u32, hook: Hook) -> Attr {
    Attr {
        ifindex,
        attach_type: match hook {
            Hook::Egress => BPF_TCX_EGRESS,
            Hook::Ingress => BPF_TCX_INGRESS,
        },
        ..Attr::default()
    }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn by_id(id: u32, attempted: impl Fn() -> String) -> Result<OwnedFd> {
    // The command's first field is the id.
    let attr = Attr {
        ifindex: id,
        ..Attr::default()
    };
    let fd = call(BPF_PROG_GET_FD_BY_ID, attr, attempted)?;
    // SAFETY: the kernel has just opened it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call(command: libc::c_long, mut attr: Attr, attempted: impl Fn() -> String) -> Result<i32> {
    // SAFETY: the attributes outlive the call, and contain no pointer.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw mut attr,
            mem::size_of::<Attr>(),
        )
    };
    match done {
        0.. => Ok(done as i32),
        _ => Err(NetlinkError::of(OsFailure {
            attempted: attempted(),
            errno: io::Error::last_os_error().raw_os_error().unwrap_or(0),
            message: String::new(),
        })),
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
/// tcx, and if the device has gone meanwhile.
pub fn tcx_programs(ifname: &str, hook: Hook) -> Result<Vec<TcxProgram>> {
    let attach_type = match hook {
        Hook::Egress => TcAttachType::Egress,
        Hook::Ingress => TcAttachType::Ingress,
    };
    let query = || SchedClassifier::query_tcx(ifname, attach_type);
    let has_gone = |e: &ProgramError| errno(e) == libc::ENOENT;
    let mut found = query();
    for _ in 1..ATTEMPTS {
        if !found.as_ref().is_err_and(has_gone) {
            break;
        }
        found = query();
    }
    match found {
        Ok((_revision, programs)) => Ok(programs
            .iter()
            .map(|p| TcxProgram {
                id: p.id(),
                name: String::from_utf8_lossy(p.name()).into_owned(),
            })
            .collect()),
        Err(err) => match errno(&err) {
            // The kernel does not support the attach type.
            libc::EINVAL | libc::ENODEV => Ok(Vec::new()),
            number => Err(NetlinkError::of(OsFailure {
                attempted: format!("list tcx programs on {ifname}"),
                errno: number,
                message: if number == 0 {
                    err.to_string()
                } else {
                    String::new()
                },
            })),
        },
    }
}

fn errno(err: &ProgramError) -> i32 {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(err);
    while let Some(e) = source {
        if let Some(number) = e
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
        {
            return number;
        }
        source = e.source();
    }
    0
}
