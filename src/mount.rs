// SPDX-License-Identifier: MIT OR Apache-2.0
//! File systems without a mount point: they end with their descriptor.

use std::io;
use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Returns the root of a file system of this type; nothing in it can be executed or is a device.
///
/// # Errors
/// This is not root, a security module forbids the mount, or the kernel lacks the type.
pub(crate) fn detached(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}
