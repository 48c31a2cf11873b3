// SPDX-License-Identifier: GPL-2.0-only
//! A run on an interface that exists: nothing of the network is emud's but the link.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::setsid;

use crate::engine::hold::spawn::this_program;
use crate::link::{LinkError, detach};
use crate::netlink::NetlinkError;
use crate::profile::Profile;
use crate::scenario::{Link, Node, Plan, Program};

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
        measure_for: None,
    }
}

/// A process that takes the link away should emud be killed: the interface is not emud's, so it
/// does not go with anything.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// For an interface of this network namespace.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(interface: &str) -> io::Result<Self> {
        let mut command = this_program();
        command.args(["guard", interface]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        apart(&mut command);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// The link has been taken away.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // It reads until the end, so it is there.
            let _ = pipe.write_all(DISMISSED);
        }
        let _ = self.child.wait();
    }
}

/// Ctrl-C at emud's terminal is not for it.
fn apart(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
}

/// The guard's own work: waits until emud has gone, and detaches unless it was dismissed.
///
/// # Errors
/// As [`detach::detach`]; that the link or the interface has gone, too, is none.
pub fn guard(interface: &str) -> Result<(), LinkError> {
    let mut told = vec![];
    let dismissed = io::stdin().read_to_end(&mut told).is_ok() && told == DISMISSED;
    if dismissed {
        return Ok(());
    }
    match detach::detach(interface) {
        Ok(_)
        | Err(LinkError::NotAttached { .. })
        | Err(LinkError::Netlink(NetlinkError::NoInterface(_))) => Ok(()),
        Err(e) => Err(e),
    }
}
