// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups (version 2) by their paths.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, openat};

use crate::mount;

/// A control group that cannot be found.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open control group \"/{path}\": {cause}; paths are below the root of cgroup v2, as in \
     /proc/PID/cgroup, and the group has to exist"
)]
pub struct NoCgroup {
    /// Path without a leading slash.
    pub path: String,
    /// Error of the kernel.
    pub cause: io::Error,
}

/// An open control group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// Descriptor of its directory.
    pub folder: OwnedFd,
    /// The kernel's number, which no other group gets.
    pub id: u64,
}

/// Opens groups by their paths below the root that this process sees, without a slash at the beginning.
///
/// # Errors
/// A group does not exist, or the kernel has no cgroup v2.
pub(crate) fn open(paths: &[String]) -> Result<Vec<Cgroup>, NoCgroup> {
    let Some(first) = paths.first() else {
        return Ok(Vec::new());
    };
    let failed = |path: &String| {
        let path = path.clone();
        move |cause| NoCgroup { path, cause }
    };
    let root = mount::detached("cgroup2").map_err(failed(first))?;
    let one = |path: &String| -> io::Result<Cgroup> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = if path.is_empty() { "." } else { path };
        let folder = openat(&root, within, flags, Mode::empty())?;
        let id = fstat(&folder)?.st_ino;
        Ok(Cgroup { folder, id })
    };
    (paths.iter())
        .map(|path| one(path).map_err(failed(path)))
        .collect()
}

/// Returns the memory that the limits of this process's group, and of those above it, leave; `None`: there is no limit
/// that this process sees.
pub(crate) fn memory_left() -> Option<u64> {
    // Not /sys/fs/cgroup: that may be the host's, and the path begins at the root that this process sees.
    let root = mount::detached("cgroup2").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = format!("/proc/self/fd/{}", root.as_raw_fd());
    left_below(Path::new(&root), path)
}

fn left_below(root: &Path, path: &str) -> Option<u64> {
    let left = |group: &Path| {
        let read = |file| fs::read_to_string(root.join(group).join(file)).ok();
        let bytes = |file| read(file)?.trim().parse::<u64>().ok();
        // "max" is no limit; the root has none.
        let (most, used) = (bytes("memory.max")?, bytes("memory.current")?);
        // The kernel drops pages of files before it ends a process.
        let stat = read("memory.stat").unwrap_or_default();
        let pairs = stat.lines().filter_map(|line| line.split_once(' '));
        let files = pairs.filter(|(key, _)| matches!(*key, "active_file" | "inactive_file"));
        let files: u64 = files.filter_map(|(_, n)| n.parse::<u64>().ok()).sum();
        Some(most.saturating_sub(used.saturating_sub(files)))
    };
    Path::new(path).ancestors().filter_map(left).min()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("emud-cgroup-{}", std::process::id()));
        let group = |path: &str, most: &str, used: &str| {
            let folder = root.join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("memory.max"), most).unwrap();
            fs::write(folder.join("memory.current"), used).unwrap();
        };
        group("pod/container", "max\n", "9000\n");
        assert_eq!(left_below(&root, "pod/container"), None);
        group("pod", "10000\n", "9500\n");
        assert_eq!(left_below(&root, "pod/container"), Some(500));
        let stat = "anon 5000\nactive_file 1000\ninactive_file 300\n";
        fs::write(root.join("pod/memory.stat"), stat).unwrap();
        assert_eq!(left_below(&root, "pod/container"), Some(1800));
        group("pod/container", "9000\n", "9001\n");
        assert_eq!(left_below(&root, "pod/container"), Some(0));
        // In a namespace of control groups the own one is the root.
        group("", "7000\n", "100\n");
        assert_eq!(left_below(&root, ""), Some(6900));
        fs::remove_dir_all(&root).unwrap();
    }
}
