// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run on an existing interface: emud creates only the link.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::setsid;

use super::RunError;
use super::group::Group;
use crate::datapath::LinkError;
use crate::datapath::detach::{self, Own};
use crate::datapath::engine::hold::spawn::this_program;
use crate::experiment::scenario::{Link, Node, Plan, Program};
use crate::host::now_ns;
use crate::profile::Profile;

/// The one node.
const HERE: &str = "here";
/// The message to a guard that is no longer needed.
const DISMISSED: &[u8] = b"dismissed";

/// Returns a plan with the program in the caller's namespace and the profile on the caller's
/// interface.
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
        media: vec![],
        links: vec![Link {
            name: "link".to_owned(),
            node: HERE.to_owned(),
            interface: interface.to_owned(),
            profile,
            asked: asked.to_owned(),
            reversed: false,
            number: 0,
        }],
        ready_within: std::time::Duration::ZERO,
        clean_up_within: std::time::Duration::ZERO,
        measure_for: None,
        elsewhere: String::new(),
        mtu: None,
    }
}

/// A process that ends the programs and removes the link if emud is killed: the interface does not
/// belong to emud, so neither ends with a namespace.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: ChildStdin,
    ifindex: u32,
    /// The link of this run, once it is attached.
    own: Option<Own>,
}

impl Guard {
    /// Starts a guard for an interface of this network namespace, and a group of programs.
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
        Ok(Self {
            child,
            pipe,
            ifindex,
            own: None,
        })
    }

    /// Says that a link with this seed is about to be attached.
    pub fn begin(&mut self, seed: u64) {
        let since_ns = now_ns();
        self.say(Own::Begun { seed, since_ns });
    }

    /// Says which link has been attached.
    pub fn attached(&mut self, id: u32) {
        let own = Own::Id(id);
        self.say(own);
        self.own = Some(own);
    }

    fn say(&mut self, own: Own) {
        // A guard that was killed is not missed as long as this process lives.
        let _ = self.pipe.write_all(line(own).as_bytes());
    }

    /// Removes the link of this run, if it was attached; another one stays.
    ///
    /// # Errors
    /// As [`detach::at_end`].
    pub fn detach(&self) -> Result<(), LinkError> {
        match self.own {
            Some(own) => detach::at_end(self.ifindex, own),
            None => Ok(()),
        }
    }

    /// Ends the guard after the link was removed and the programs have ended.
    pub fn dismiss(mut self) {
        // It reads until the end, so it still exists.
        let _ = self.pipe.write_all(DISMISSED);
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// Keeps Ctrl-C at emud's terminal from reaching it.
fn apart(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
}

fn line(own: Own) -> String {
    match own {
        Own::Id(id) => format!("attached {id}\n"),
        Own::Begun { seed, since_ns } => format!("begin {seed} {since_ns}\n"),
    }
}

/// Returns the link of the last complete line.
fn last(said: &str) -> Option<Own> {
    let complete = said.rsplit_once('\n')?.0;
    let mut words = complete.lines().next_back()?.split(' ');
    let (what, mut number) = (words.next()?, || words.next()?.parse().ok());
    match what {
        "attached" => Some(Own::Id(u32::try_from(number()?).ok()?)),
        "begin" => Some(Own::Begun {
            seed: number()?,
            since_ns: number()?,
        }),
        _ => None,
    }
}

/// Runs the guard: waits until emud has ended, ends its programs and removes its link, unless it was
/// dismissed.
///
/// # Errors
/// As [`detach::at_end`], or the programs do not end; the link is removed nevertheless.
pub fn guard(ifindex: u32, programs: &Path) -> Result<(), RunError> {
    let opened = Group::open(programs);
    let mut said = vec![];
    // A read error counts as the end, too.
    let _ = io::stdin().read_to_end(&mut said);
    if said.ends_with(DISMISSED) {
        return Ok(());
    }
    let ended = opened.and_then(|programs| programs.end());
    // Killed before its attach: a link that is there is another's.
    if let Some(own) = last(&String::from_utf8_lossy(&said)) {
        detach::at_end(ifindex, own)?;
    }
    ended.map_err(|error| RunError::System {
        what: "ending the programs",
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_knows_the_link_of_the_last_line() {
        let begun = Own::Begun {
            seed: u64::MAX,
            since_ns: 5,
        };
        let attached = Own::Id(7);
        assert_eq!(last(""), None);
        assert_eq!(last(&line(begun)), Some(begun));
        assert_eq!(last(&(line(begun) + &line(attached))), Some(attached));
        // A line that was cut.
        assert_eq!(last("begin 18"), None);
        assert_eq!(last(&(line(begun) + "attached 1")), Some(begun));
    }
}
