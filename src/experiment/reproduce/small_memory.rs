// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group with less memory than the host: what is in it swaps, and nothing else does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::random;

/// Mount points of the memory controller, and its limit: of cgroup v2, alone or beside v1, and of v1.
const CONTROLLERS: [(&str, &str); 3] = [
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/unified", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];
/// How long the kernel may take to end the processes in it.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Such a group. It goes with this value, after the processes in it.
#[derive(Debug)]
pub(super) struct SmallMemory {
    folder: PathBuf,
}

impl SmallMemory {
    /// Creates a group with at most this much memory; `None`: no hierarchy of control groups here limits memory.
    ///
    /// # Errors
    /// The kernel does not create it.
    pub fn create(bytes: u64) -> io::Result<Option<Self>> {
        for (root, limit) in CONTROLLERS {
            if let Some(group) = Self::below(Path::new(root), limit, bytes)? {
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    fn below(root: &Path, limit: &str, bytes: u64) -> io::Result<Option<Self>> {
        // A root group has no limit of v2, but shows what its groups may have.
        let controllers = fs::read_to_string(root.join("cgroup.subtree_control"));
        let is_v2 = controllers.is_ok_and(|all| all.split_whitespace().any(|one| one == "memory"));
        if !is_v2 && !root.join(limit).is_file() {
            return Ok(None);
        }
        let name = format!("emud-reproduce-{:016x}", u64::from_ne_bytes(random()?));
        let folder = root.join(name);
        fs::create_dir(&folder)?;
        let group = Self { folder };
        fs::write(group.folder.join(limit), bytes.to_string())?;
        Ok(Some(group))
    }

    /// Returns the file to which a process writes 0 to be in it.
    pub fn procs(&self) -> String {
        self.folder.join("cgroup.procs").display().to_string()
    }
}

impl Drop for SmallMemory {
    fn drop(&mut self) {
        let start = Instant::now();
        // Until the last process has ended, EBUSY.
        while fs::remove_dir(&self.folder).is_err() && start.elapsed() < ENDS_WITHIN {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_without_the_controller_has_no_group() {
        let root = std::env::temp_dir().join(format!("emud-small-memory-{}", std::process::id()));
        let of = |limit| SmallMemory::below(&root, limit, 1 << 20).unwrap();
        assert!(of("memory.max").is_none());
        fs::create_dir(&root).unwrap();
        fs::write(root.join("cgroup.subtree_control"), "cpu pids\n").unwrap();
        assert!(of("memory.max").is_none());
        fs::write(root.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        let group = of("memory.max").unwrap();
        let limit = group.folder.join("memory.max");
        assert_eq!(fs::read_to_string(&limit).unwrap(), "1048576");
        // A real one has its files until its folder is removed.
        fs::remove_file(limit).unwrap();
        drop(group);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
