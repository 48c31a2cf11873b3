// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where nodes run: in separate namespaces, or in the caller's.

use std::process::{Child, Command};
use std::{io, thread};

use super::group::Group;
use crate::experiment::lab::{Lab, LabError};

pub enum RunLocation {
    Lab(Box<Lab>),
    /// The namespaces of this process, for `--in-place`; programs are in a control group.
    Here(Group),
}

impl RunLocation {
    /// Runs `work` in a node, in a separate thread: attaching blocks signals for the rest of a
    /// thread's life.
    ///
    /// # Errors
    /// As [`Lab::within`].
    pub fn within<T: Send>(
        &self,
        node: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        match self {
            Self::Lab(lab) => lab.within(node, work),
            Self::Here(_) => Ok(thread::scope(|scope| match scope.spawn(work).join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })),
        }
    }

    /// Returns whether a node is here, and not on another host.
    pub fn has(&self, node: &str) -> bool {
        match self {
            Self::Lab(lab) => lab.has(node),
            Self::Here(_) => true,
        }
    }

    /// Starts a command in a node.
    ///
    /// # Errors
    /// The error of the command; NotFound if there is no such program.
    pub fn spawn(&self, node: &str, command: &mut Command) -> io::Result<Child> {
        match self {
            // The caller has set the process group.
            Self::Lab(lab) => lab
                .spawn_foreground(node, command)
                .map_err(|error| match error {
                    LabError::System { error, .. } => error,
                    other => io::Error::other(other.to_string()),
                }),
            Self::Here(group) => {
                group.takes(command);
                command.spawn()
            }
        }
    }
}
