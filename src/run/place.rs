// SPDX-License-Identifier: GPL-2.0-only
//! Where nodes are: namespaces of their own, or the caller's.

use std::process::{Child, Command};
use std::thread;

use crate::lab::{Lab, LabError};

#[derive(Debug)]
pub enum Place {
    Lab(Box<Lab>),
    /// The namespace of this process, for `--in-place`.
    Here,
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
            Self::Here => Ok(thread::scope(|scope| match scope.spawn(work).join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })),
        }
    }

    /// Starts a command where a node is.
    ///
    /// # Errors
    /// As [`Lab::spawn`].
    pub fn spawn(&self, node: &str, command: &mut Command) -> Result<Child, LabError> {
        match self {
            Self::Lab(lab) => lab.spawn(node, command),
            Self::Here => command.spawn().map_err(LabError::from),
        }
    }
}
