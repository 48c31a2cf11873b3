// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel with less support: system calls fail (seccomp), or those of a child that attach BPF
//! programs go to this test first (user notification), which permits the first ones and rejects
//! the others.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_USER_NOTIF, seccomp_notif, seccomp_notif_resp, sock_filter,
};

use crate::lab::emud_path;

/// Commands of bpf(2) (linux/bpf.h).
const RAW_TRACEPOINT_OPEN: u32 = 17;
const LINK_CREATE: u32 = 28;
/// Offsets in struct seccomp_data.
const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;
/// _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
/// The listener's number in the child, beyond those that it uses.
const LISTENER: RawFd = 200;

pub struct Refusal {
    allowed: u32,
}

impl Refusal {
    /// Rejects all but the first `allowed` attachments.
    pub fn new(allowed: u32) -> Self {
        Self { allowed }
    }

    /// emud, whose calls are checked.
    pub fn command(&self) -> Command {
        let mut command = Command::new(emud_path());
        // SAFETY: the function makes system calls only.
        unsafe {
            command.pre_exec(ask_first);
        }
        command
    }

    /// Answers, until the process ends.
    pub fn serve(self, pid: u32) {
        // SAFETY: plain system calls with numbers; what they return is ours.
        let listener = unsafe {
            let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            assert!(process >= 0, "{}", io::Error::last_os_error());
            let process = OwnedFd::from_raw_fd(process as RawFd);
            let listener = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), LISTENER, 0);
            assert!(listener >= 0, "{}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(listener as RawFd)
        };
        std::thread::spawn(move || {
            let mut left = self.allowed;
            while let Some(id) = asked(&listener) {
                answer(&listener, id, left > 0);
                left = left.saturating_sub(1);
            }
        });
    }
}

fn load(k: u32) -> sock_filter {
    sock_filter {
        code: (BPF_LD | BPF_W | BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn equal(k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
        jt,
        jf,
        k,
    }
}

fn done(k: u32) -> sock_filter {
    sock_filter {
        code: (BPF_RET | BPF_K) as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Returns what lets system calls of the calling thread, and of what it starts, fail, each with its
/// error.
pub fn failing(calls: &[(libc::c_long, i32)]) -> impl FnMut() -> io::Result<()> + use<> {
    let mut filter = vec![load(NUMBER)];
    for (call, error) in calls {
        filter.push(equal(*call as u32, 0, 1));
        filter.push(done(SECCOMP_RET_ERRNO | *error as u32));
    }
    filter.push(done(SECCOMP_RET_ALLOW));
    move || install(&mut filter, 0).map(drop)
}

/// Puts the calling thread under a filter.
fn install(filter: &mut [sock_filter], flags: libc::c_ulong) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
    };
    match done {
        ..0 => Err(io::Error::last_os_error()),
        done => Ok(done as RawFd),
    }
}

/// Puts the calling process under the filter.
fn ask_first() -> io::Result<()> {
    let mut filter = [
        load(NUMBER),
        equal(libc::SYS_perf_event_open as u32, 5, 0),
        equal(libc::SYS_bpf as u32, 0, 3),
        load(FIRST_ARGUMENT),
        equal(RAW_TRACEPOINT_OPEN, 2, 0),
        equal(LINK_CREATE, 1, 0),
        done(SECCOMP_RET_ALLOW),
        done(SECCOMP_RET_USER_NOTIF),
    ];
    let listener = install(&mut filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: plain system call; the copy is not closed on exec.
    if unsafe { libc::dup2(listener, LISTENER) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Waits for a call; `None` if no process is left that could make one.
fn asked(listener: &OwnedFd) -> Option<u64> {
    let mut poll = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the structs outlive the calls; the kernel requires one of zeroes.
    unsafe {
        if libc::poll(&raw mut poll, 1, -1) <= 0 || poll.revents & libc::POLLIN == 0 {
            return None;
        }
        let mut call: seccomp_notif = std::mem::zeroed();
        let done = libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut call);
        (done == 0).then_some(call.id)
    }
}

fn answer(listener: &OwnedFd, id: u64, allow: bool) {
    let mut response = seccomp_notif_resp {
        id,
        val: 0,
        error: if allow { 0 } else { -libc::EPERM },
        flags: if allow {
            libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32
        } else {
            0
        },
    };
    // SAFETY: the struct outlives the call. It fails if the caller is gone, which ends the loop above.
    unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut response) };
}
