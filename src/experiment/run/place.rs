// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where nodes are: namespaces of their own, or the caller's.

use std::process::{Child, Command};
use std::{io, thread};

use super::group::Group;
use crate::experiment::lab::{Lab, LabError};

pub enum Place {
    Lab(Box<Lab>),
    /// The namespaces of this process, for `--in-place`; programs are in a group.
    Here(Group),
}

impl Place {
    /// Runs `work` where a node is, in a thread of its own: attaching blocks signals for the
    /// rest of a thread's life.
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

    /// Starts a command where a node is.
    ///
    /// # Errors
    /// That of the command itself; of kind NotFound, there is no such program.
    pub fn spawn(&self, node: &str, command: &mut Command) -> io::Result<Child> {
        match self {
            // Its caller has decided on the process group.
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
