// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first process of a node: it keeps the namespaces alive, and everything in them ends with it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::process::getpid;

use super::control::{Answer, Control, Order};
use super::{LabError, mounts};

/// Serves the socket in standard input until emud has ended in any way: only emud has the other
/// end, so a `kill -9` of emud ends this process, and the kernel then ends everything else in the
/// process namespace.
///
/// # Errors
/// [`LabError::Node`] if it is not the first process of a namespace: started by hand.
pub fn run() -> Result<(), LabError> {
    // The order EndAll would end every process of the machine.
    if !getpid().is_init() {
        return Err(LabError::Node {
            node: "node-run".into(),
            message: "must be started by emud".into(),
        });
    }
    let failed = |error: io::Error| LabError::system("serving a node", error);
    rustix::thread::set_name(c"emud-node").map_err(|e| failed(e.into()))?;
    // Processes whose parent has ended become children of this one: ignoring SIGCHLD makes the
    // kernel reap them. SAFETY: no handler, and nothing in this process waits for a child.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut control = Control::new(UnixStream::from(stdin));
    while let Some(order) = control.receive().map_err(failed)? {
        control.send(&carry_out(&order)).map_err(failed)?;
    }
    Ok(())
}

fn carry_out(order: &Order) -> Answer {
    match order {
        Order::SetUp(files) => mounts::set_up(files).map_err(|e| e.to_string()),
        Order::EndAll => end_all().map_err(|e| format!("end all processes: {e}")),
    }
}

fn end_all() -> io::Result<()> {
    // SAFETY: a plain system call. In the first process of a namespace, -1 means all other
    // processes of that namespace.
    if unsafe { libc::kill(-1, libc::SIGKILL) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        e => Err(e),
    }
}
