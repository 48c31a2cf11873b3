// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifiers among all loaded programs. A program is opened once: of one that is known, its id
//! in the kernel's list is enough. Each link has five programs.

use std::collections::{HashMap, HashSet};

use super::{DatapathError, Program};
use crate::bpf::by_id;

/// Lists the classifiers repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Classifiers {
    /// With the first of their maps, which those of one link have in common.
    known: HashMap<u32, u32>,
    /// Programs of a different kind. The kernel gives an id again after 2^31 programs.
    others: HashSet<u32>,
}

impl Classifiers {
    /// Returns the ids of all classifiers of the host, in rising order, the newest of each link: with engine
    /// qdisc each direction may have its own, and one that another has replaced is freed a little later,
    /// perhaps before the caller reads it.
    ///
    /// # Errors
    /// [`DatapathError::Search`]: this process may not see the BPF programs.
    pub fn list(&mut self) -> Result<Vec<u32>, DatapathError> {
        let mut newest = HashMap::new();
        let (mut known, mut others) = (HashMap::new(), HashSet::new());
        let mut last = 0;
        while let Some(id) = by_id::after(last).map_err(search)? {
            last = id;
            if self.others.contains(&id) {
                others.insert(id);
                continue;
            }
            let first_map = match self.known.get(&id) {
                Some(first_map) => *first_map,
                None => match by_id::program(id) {
                    Ok(program) if Program::emulates(Some(&program.name)) => {
                        program.map_ids.into_iter().min().unwrap_or_default()
                    }
                    Ok(_) => {
                        others.insert(id);
                        continue;
                    }
                    // Unloaded in the meantime.
                    Err(e) if e.io_error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(search(e)),
                },
            };
            known.insert(id, first_map);
            newest.insert(first_map, id);
        }
        (self.known, self.others) = (known, others);
        let mut list: Vec<u32> = newest.into_values().collect();
        list.sort_unstable();
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
