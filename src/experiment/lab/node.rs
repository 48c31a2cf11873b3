// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node: its namespaces, kept alive by a process, and operations inside them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{fs, io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{
    ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe,
};

use super::control::{Answer, Control, Order};
use super::{Files, LabError, reap};
use crate::abi;
use crate::datapath::engine::hold::spawn::this_program;
use crate::netlink::{Masquerade, Netlink, Translated, setting};

/// The /proc that a thread inside a node sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// That of the node's programs.
    Node,
    /// That of emud, with only the node's network: emud is not a process of the node, so it would
    /// not find itself in the node's /proc; and a thread whose children would be in a different
    /// process namespace cannot start threads (copy_process() returns EINVAL).
    Emud,
}

pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) netlink: Netlink,
    netns: OwnedFd,
    init: Child,
    pidfd: OwnedFd,
    /// Inode number of the process namespace.
    pid_ns: u64,
    control: Mutex<Control>,
    /// Whether it forwards packets of others.
    pub(crate) forwards: bool,
    /// Its interface to the host, if its default route leads there.
    pub(crate) way_out: Option<String>,
    nat: Option<Masquerade>,
}

/// What was created while still inside.
struct Born {
    init: Child,
    netns: OwnedFd,
    netlink: Netlink,
}

impl Node {
    /// Creates the namespaces and waits until they are set up.
    pub(crate) fn start(name: &str, files: &Files) -> Result<Self, LabError> {
        let (ours, theirs) =
            UnixStream::pair().map_err(|e| LabError::system("make a socket", e))?;
        // A separate thread leaves the host's namespaces for good.
        let born = in_thread(move || bear(theirs))??;
        let pid = Pid::from_child(&born.init);
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|e| LabError::system("open a node's process", e))?;
        let pid_ns = fs::metadata(format!("/proc/{pid}/ns/pid"))
            .map_err(|e| LabError::system("read a node's process", e))?
            .ino();
        let node = Self {
            name: name.to_owned(),
            netlink: born.netlink,
            netns: born.netns,
            init: born.init,
            pidfd,
            pid_ns,
            control: Mutex::new(Control::new(ours)),
            forwards: false,
            way_out: None,
            nat: None,
        };
        node.order(&Order::SetUp(files.clone()))?;
        Ok(node)
    }

    pub(crate) fn netns(&self) -> BorrowedFd<'_> {
        self.netns.as_fd()
    }

    pub(crate) fn order(&self, order: &Order) -> Result<(), LabError> {
        let node = |message| LabError::Node {
            node: self.name.clone(),
            message,
        };
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = control
            .send(order)
            .and_then(|()| control.receive::<Answer>());
        match answer {
            Ok(Some(answer)) => answer.map_err(node),
            Ok(None) => Err(node("its first process has ended".into())),
            Err(e) => Err(node(format!("its first process does not answer: {e}"))),
        }
    }

    /// Runs `work` in a thread inside the node, in the working directory of this process.
    pub(crate) fn inside<T: Send>(
        &self,
        view: View,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        let here = std::env::current_dir()
            .map_err(|e| LabError::system("find the working directory", e))?;
        in_thread(|| {
            enter(self.pidfd.as_fd(), view, &here)
                .map_err(|e| LabError::system(format!("enter node {}", self.name), e))?;
            Ok(work())
        })?
    }

    /// Translates the address of packets that nodes behind this one send to the host: the host has
    /// no route back to them.
    pub(crate) fn translate(&mut self) -> Result<(), LabError> {
        let (true, Some(interface), None) = (self.forwards, &self.way_out, &self.nat) else {
            return Ok(());
        };
        let add = || Masquerade::add("emud", Translated::By(interface));
        self.nat = Some(self.inside(View::Emud, add)??);
        Ok(())
    }

    /// Ends it with everything in it; call [`Node::wait`] afterwards.
    pub(crate) fn kill(&mut self) {
        // Fails only if it has already ended.
        let _ = self.init.kill();
    }

    /// Waits until a killed node is completely removed.
    pub(crate) fn wait(&mut self) -> Result<(), LabError> {
        reap::wait(&mut self.init, self.pid_ns)
            .map_err(|e| LabError::system(format!("end node {}", self.name), e))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        // Lab::close() has already waited and reported errors.
        let _ = self.wait();
    }
}

/// Runs work that changes the calling thread for good in a separate thread.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    thread::scope(|scope| {
        let started = thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|e| LabError::system("start a thread", e))?;
        Ok(started
            .join()
            .unwrap_or_else(|panicked| resume_unwind(panicked)))
    })
}

fn bear(control: UnixStream) -> Result<Born, LabError> {
    let own = UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    // SAFETY: file descriptors stay shared.
    unsafe { unshare_unsafe(own) }.map_err(|error| match error {
        Errno::PERM => LabError::NotRoot,
        error => LabError::Lacking {
            what: "namespaces for network, mounts and processes",
            error: error.into(),
        },
    })?;
    set(&SETTINGS)?;
    for key in RECEIVING {
        for of in ["all", "default"] {
            set(&[(&format!("ipv4/conf/{of}/{key}"), "0")])?;
        }
    }
    let own = "/proc/thread-self/ns/net";
    let netns = fs::File::open(own).map_err(|e| LabError::system(format!("open {own}"), e))?;
    let mut netlink = Netlink::open()?;
    netlink.set_up(abi::EMUD_LOOPBACK, true)?;
    let init = this_program()
        .arg("node-run")
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // emud handles Ctrl-C.
        .process_group(0)
        .spawn()
        .map_err(|e| LabError::system("start a node's first process", e))?;
    Ok(Born {
        init,
        netns: netns.into(),
        netlink,
    })
}

/// Settings for interfaces that are created later. A new namespace copies the host's settings, on
/// which a node must not depend.
const SETTINGS: [(&str, &str); 7] = [
    ("ipv4/ip_forward", "0"),
    // Which the line above writes only if it changes something.
    ("ipv4/conf/default/forwarding", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    // Programs do not have to be root: ping, and a server at port 80.
    ("ipv4/ping_group_range", "0 2147483647"),
    ("ipv4/ip_unprivileged_port_start", "0"),
    // With IPv6 each interface sends packets by itself (neighbour discovery, multicast reports),
    // which would appear in a link's counters and losses.
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// Of which packets a node takes and which ARP requests it answers. The kernel's default is 0, but
/// distributions and orchestrators set the host's, which `devinet_init_net()` copies.
const RECEIVING: [&str; 5] = [
    "rp_filter",
    "arp_filter",
    "arp_ignore",
    "arp_announce",
    "proxy_arp",
];

/// Writes settings below /proc/sys/net of the calling thread's network namespace. A kernel without
/// IPv6 lacks those of IPv6.
pub(crate) fn set(settings: &[(&str, &str)]) -> Result<(), LabError> {
    for (name, value) in settings {
        match setting::write(name, value) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && name.starts_with("ipv6") => {}
            Err(e) => return Err(LabError::system(format!("write /proc/sys/net/{name}"), e)),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn enter(pidfd: BorrowedFd<'_>, view: View, directory: &Path) -> io::Result<()> {
    if view == View::Emud {
        return Ok(move_into_thread_name_spaces(
            pidfd,
            ThreadNameSpaceType::NETWORK,
        )?);
    }
    // The kernel only permits a change of mounts to a thread that does not share its working
    // directory. SAFETY: file descriptors stay shared.
    unsafe { unshare_unsafe(UnshareFlags::FS) }?;
    let all =
        ThreadNameSpaceType::NETWORK | ThreadNameSpaceType::MOUNT | ThreadNameSpaceType::PROCESS_ID;
    move_into_thread_name_spaces(pidfd, all)?;
    Ok(rustix::process::chdir(directory)?)
}
