// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run on an interface that exists: nothing of the network is emud's but the link.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::engine::hold::spawn::this_program;
use crate::link::{LinkError, detach};
use crate::profile::Profile;
use crate::scenario::{Link, Node, Plan, Program};

/// The one node.
const HERE: &str = "here";
/// What a guard is told when there is nothing left to guard. Before that, on a line each, the
/// process groups of programs.
const DISMISSED: &str = "dismissed";

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
    pipe: Mutex<Option<ChildStdin>>,
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
        let pipe = Mutex::new(child.stdin.take());
        Ok(Self { child, pipe })
    }

    /// A program that must not go on without the link.
    pub fn watch(&self, group: Pid) {
        self.tell(&group.as_raw_nonzero().to_string());
    }

    /// The link has been taken away.
    pub fn dismiss(mut self) {
        self.tell(DISMISSED);
        self.pipe = Mutex::new(None);
        let _ = self.child.wait();
    }

    fn tell(&self, line: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // It reads until the end, so it is there.
            let _ = writeln!(pipe, "{line}");
        }
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
/// As [`detach::at_end`].
pub fn guard(interface: &str) -> Result<(), LinkError> {
    let mut groups = vec![];
    for line in io::stdin().lines().map_while(Result::ok) {
        if line == DISMISSED {
            return Ok(());
        }
        groups.extend(line.parse().ok().and_then(Pid::from_raw));
    }
    for group in groups {
        // It may have ended before.
        let _ = kill_process_group(group, Signal::KILL);
    }
    detach::at_end(interface)
}
