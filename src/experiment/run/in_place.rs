// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run on an interface that exists: nothing of the network is emud's but the link.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::setsid;

use super::RunError;
use super::group::Group;
use crate::datapath::engine::hold::spawn::this_program;
use crate::datapath::{LinkError, detach};
use crate::experiment::scenario::{Link, Node, Plan, Program};
use crate::netlink::{Netlink, NetlinkError};
use crate::profile::Profile;

/// The one node.
const HERE: &str = "here";
/// What a guard is told when there is nothing left to guard.
const DISMISSED: &[u8] = b"dismissed";

/// The program in the caller's namespace, the profile on the caller's interface.
pub fn plan(profile: Profile, asked: &str, program: Program, interface: &str) -> Plan {
    Plan {
        name: profile.name.clone(),
        text: None,
        nodes: vec![Node {
            name: HERE.to_owned(),
            command: Some(program),
            ..Node::default()
        }],
        wires: vec![],
        links: vec![Link {
            name: "link".to_owned(),
            node: HERE.to_owned(),
            interface: interface.to_owned(),
            profile,
            asked: asked.to_owned(),
            reversed: false,
        }],
        ready_within: std::time::Duration::ZERO,
        clean_up_within: std::time::Duration::ZERO,
        measure_for: None,
    }
}

/// A process that ends the programs and takes the link away should emud be killed: the interface
/// is not emud's, so neither goes with anything.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// For an interface of this network namespace, and a group of programs.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(ifindex: u32, programs: &Group) -> io::Result<Self> {
        let mut command = this_program();
        command
            .args(["guard", &ifindex.to_string()])
            .arg(&programs.path);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        apart(&mut command);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, pipe })
    }

    /// The link has been taken away, and the programs have ended.
    pub fn dismiss(mut self) {
        // It reads until the end, so it is there.
        let _ = self.pipe.write_all(DISMISSED);
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// Ctrl-C at emud's terminal is not for it.
fn apart(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
}

/// The guard's own work: waits until emud has gone, ends its programs and detaches, unless it was
/// dismissed.
///
/// # Errors
/// As [`detach()`], or the programs do not end; then the link is taken away all the same.
pub fn guard(ifindex: u32, programs: &Path) -> Result<(), RunError> {
    let opened = Group::open(programs);
    let mut said = vec![];
    // What cannot be read is the end, too.
    let _ = io::stdin().read_to_end(&mut said);
    if said == DISMISSED {
        return Ok(());
    }
    let ended = opened.and_then(|programs| programs.end());
    detach(ifindex)?;
    ended.map_err(|error| RunError::System {
        what: "ending the programs",
        error,
    })
}

/// Takes the link away from an interface, whatever it is called by now: another one may have its
/// name. That the link or the interface has gone is none.
///
/// # Errors
/// As [`detach::at_end`].
pub fn detach(ifindex: u32) -> Result<(), RunError> {
    let link = Netlink::open()
        .and_then(|mut host| host.link_by_index(ifindex))
        .map_err(LinkError::from);
    match link {
        Ok(link) => Ok(detach::at_end(&link.name)?),
        Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
