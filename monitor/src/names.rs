// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the kernel's numbers of groups and devices to names.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::abi::{self, emud_slot, text};
use crate::config::GroupBy;

/// `FILEID_KERNFS` of include/linux/exportfs.h: a handle that is a 64-bit id.
const FILEID_KERNFS: libc::c_int = 0xfe;

/// Names of groups, with a cache of lookups.
pub struct Names {
    group_by: GroupBy,
    /// Mount points of the cgroup hierarchies by number (0: the unified one), with the prefix of
    /// their paths ("cpu:" as in cgroups(7); empty for the unified one).
    hierarchies: HashMap<u32, (PathBuf, String)>,
    known: HashMap<(u32, u64), String>,
}

impl Names {
    pub fn new(group_by: GroupBy) -> Self {
        let hierarchies = match group_by {
            GroupBy::Cgroup => hierarchies(),
            _ => HashMap::new(),
        };
        Self {
            group_by,
            hierarchies,
            known: HashMap::new(),
        }
    }

    /// Returns the name of the group in a slot of a table.
    pub fn group(&mut self, slot: &emud_slot) -> String {
        match slot.key {
            key if key == u64::from(abi::EMUD_KEY_INTERRUPTS) => return "(interrupts)".into(),
            key if key == u64::from(abi::EMUD_KEY_EXITING) => return "(exiting)".into(),
            _ => {}
        }
        match self.group_by {
            GroupBy::Command => match text(&slot.name) {
                name if name.is_empty() => "(no name)".into(),
                name => name,
            },
            GroupBy::Netns => self.netns(slot.id),
            GroupBy::Cgroup => self.cgroup(slot),
        }
    }

    /// Returns the name in `ip netns`, "host" for the namespace of init, "own" for that of the
    /// monitor, and otherwise the link text of /proc/PID/ns/net. Names change, so there is no
    /// cache.
    fn netns(&self, inode: u64) -> String {
        let is = |path: &Path| fs::metadata(path).is_ok_and(|m| m.ino() == inode);
        if is(Path::new("/proc/1/ns/net")) {
            return "host".into();
        }
        let named = fs::read_dir("/run/netns").ok().and_then(|entries| {
            let mut entries = entries.filter_map(Result::ok);
            entries.find(|entry| is(&entry.path()))
        });
        match named {
            Some(entry) => entry.file_name().to_string_lossy().into_owned(),
            None if is(Path::new("/proc/self/ns/net")) => "own".into(),
            None => format!("net:[{inode}]"),
        }
    }

    /// Returns the path of a cgroup; for a deleted one, the last name that the kernel reported.
    fn cgroup(&mut self, slot: &emud_slot) -> String {
        let key = (u32::from(slot.hierarchy), slot.id);
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let (root, prefix) = match self.hierarchies.get(&key.0) {
            Some((root, prefix)) => (Some(root), prefix.as_str()),
            None => (None, ""),
        };
        let Some(path) = root.and_then(|root| path_of(root, slot.id)) else {
            return format!("{prefix}.../{}", text(&slot.name));
        };
        let name = format!("{prefix}{path}");
        // Bounded: a run may see any number of cgroups.
        if self.known.len() >= 4096 {
            self.known.clear();
        }
        self.known.insert(key, name.clone());
        name
    }
}

/// Reads /proc/self/cgroup (number and controllers) and /proc/self/mountinfo (mount points).
fn hierarchies() -> HashMap<u32, (PathBuf, String)> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = HashMap::new();
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers)) = (fields.next(), fields.next()) else {
            continue;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let Some(root) = mounts.lines().find_map(|m| mounted(m, controllers)) else {
            continue;
        };
        let prefix = match controllers {
            "" => String::new(),
            controllers => format!("{}:", controllers.trim_start_matches("name=")),
        };
        found.insert(number, (root, prefix));
    }
    found
}

/// Returns the mount point in a line of mountinfo if it belongs to this hierarchy.
fn mounted(line: &str, controllers: &str) -> Option<PathBuf> {
    let (mount, super_block) = line.split_once(" - ")?;
    let mut super_block = super_block.split(' ');
    let (kind, options) = (super_block.next()?, super_block.nth(1)?);
    let fits = match controllers {
        "" => kind == "cgroup2",
        // All of "cpu,cpuacct" are options of that mount.
        all => {
            kind == "cgroup"
                && all
                    .split(',')
                    .all(|one| options.split(',').any(|o| o == one))
        }
    };
    fits.then(|| PathBuf::from(mount.split(' ').nth(4).unwrap_or("/")))
}

/// Returns the path below the root of the hierarchy for an id of kernfs.
fn path_of(root: &Path, id: u64) -> Option<String> {
    #[repr(C)]
    struct Handle {
        bytes: libc::c_uint,
        kind: libc::c_int,
        id: [u8; 8],
    }
    let mount = File::open(root).ok()?;
    let mut handle = Handle {
        bytes: 8,
        kind: FILEID_KERNFS,
        id: id.to_ne_bytes(),
    };
    // SAFETY: `Handle` is a struct file_handle with room for `bytes` bytes.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            &raw mut handle,
            libc::O_PATH,
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: just opened, and owned by nothing else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let below = path.strip_prefix(root).ok()?;
    Some(format!("/{}", below.display()))
}
