// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifiers among all loaded programs. A program is opened once: of one that is known, its id
//! in the kernel's list is enough. Each link has five programs.

use std::collections::HashSet;

use super::{DatapathError, Program, by_id};

/// Lists the classifiers repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Classifiers {
    known: HashSet<u32>,
    /// Programs of a different kind. The kernel gives an id again after 2^31 programs.
    others: HashSet<u32>,
}

impl Classifiers {
    /// Returns the ids of all classifiers of the host, in rising order.
    ///
    /// # Errors
    /// [`DatapathError::Search`]: this process may not see the BPF programs.
    pub fn list(&mut self) -> Result<Vec<u32>, DatapathError> {
        let mut list = Vec::new();
        let mut others = HashSet::new();
        let mut last = 0;
        while let Some(id) = by_id::after(last).map_err(search)? {
            last = id;
            if self.others.contains(&id) {
                others.insert(id);
                continue;
            }
            if self.known.contains(&id) {
                list.push(id);
                continue;
            }
            match by_id::program(id) {
                Ok(program) if program.name == Program::Classify.name() => list.push(id),
                Ok(_) => {
                    others.insert(id);
                }
                // Unloaded in the meantime.
                Err(e) if e.io_error.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(search(e)),
            }
        }
        self.known = list.iter().copied().collect();
        self.others = others;
        Ok(list)
    }
}

/// Returns whether there is no such program any more.
pub(crate) fn is_gone(program: u32) -> bool {
    by_id::program(program).is_err_and(|e| e.io_error.kind() == std::io::ErrorKind::NotFound)
}

fn search(error: aya::sys::SyscallError) -> DatapathError {
    DatapathError::Search(error.into())
}
