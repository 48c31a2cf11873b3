// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a node sees instead of the host's: /proc, /sys, /etc/hosts, /etc/resolv.conf.

use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind, mount_change, move_mount, open_tree, unmount,
};

use super::{Files, LabError};

/// A process of the host answers lookups through these sockets, bypassing the emulated link.
const RESOLVERS: [&str; 2] = [
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/nscd/socket",
];

/// Memory without an owner: a file that fills it must not use up the memory of the host.
const SCRATCH: &CStr = c"mode=1777,size=10%";

/// Prepares the mount namespace of the calling process. The host's is not changed.
pub(crate) fn set_up(files: &Files) -> Result<(), LabError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)
        .map_err(|e| LabError::system("separate from the host's mounts", e))?;
    replace_files(files)?;
    if let Some(scratch) = &files.scratch {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"tmpfs", scratch, c"tmpfs", flags, SCRATCH)
            .map_err(|e| LabError::system(format!("mount {scratch}"), e))?;
    }
    fresh(c"proc", "/proc")?;
    let below = below_sys()?;
    fresh(c"sysfs", "/sys")?;
    for (path, tree) in below {
        match move_mount(
            &tree,
            "",
            CWD,
            &path,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        ) {
            // A directory of interfaces of the other namespace.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(LabError::system(format!("carry {path} over"), e)),
        }
    }
    Ok(())
}

fn fresh(kind: &CStr, at: &str) -> Result<(), LabError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(kind, at, kind, flags, None).map_err(|e| LabError::system(format!("mount {at}"), e))
}

/// The files are in a tmpfs that exists as long as a file is bound from it; it is temporarily
/// mounted at /proc, which is covered afterwards.
fn replace_files(files: &Files) -> Result<(), LabError> {
    fresh(c"tmpfs", "/proc")?;
    bind("hosts", &files.hosts, "/etc/hosts")?;
    if let Some(text) = &files.resolv_conf {
        bind("resolv.conf", text, "/etc/resolv.conf")?;
    }
    for socket in RESOLVERS.iter().filter(|path| Path::new(path).exists()) {
        bind("nobody", "", socket)?;
    }
    unmount("/proc", UnmountFlags::DETACH).map_err(|e| LabError::system("unmount a tmpfs", e))
}

fn bind(name: &str, text: &str, over: &str) -> Result<(), LabError> {
    let file = Path::new("/proc").join(name);
    fs::write(&file, text).map_err(|e| LabError::system(format!("write {name}"), e))?;
    mount_bind(&file, over).map_err(|e| {
        let attempted = if e == Errno::NOENT {
            format!("replace {over}, which must exist (it may be empty)")
        } else {
            format!("replace {over}")
        };
        LabError::system(attempted, e)
    })
}

/// Collects the mounts below /sys (control groups, bpf, tracing), which a new sysfs would hide.
fn below_sys() -> Result<Vec<(String, OwnedFd)>, LabError> {
    let list = "/proc/self/mountinfo";
    let text = fs::read_to_string(list).map_err(|e| LabError::system(format!("read {list}"), e))?;
    let mut trees: Vec<(String, OwnedFd)> = Vec::new();
    for path in text.lines().filter_map(|line| line.split(' ').nth(4)) {
        let held = |(above, _): &(String, OwnedFd)| Path::new(path).starts_with(above);
        if !path.starts_with("/sys/") || trees.iter().any(held) {
            continue;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, path, flags)
            .map_err(|e| LabError::system(format!("take {path} along"), e))?;
        trees.push((path.to_owned(), tree));
    }
    Ok(trees)
}
