// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that netlink does not have, below /proc/sys/net and in sysfs.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};

use rustix::fs::{Mode, OFlags, openat};

use crate::mount;

/// Writes a setting of the calling thread's network namespace, such as `ipv6/conf/eth0/accept_ra`.
///
/// # Errors
/// The kernel does not have it (a kernel without IPv6), this is not root, or the kernel rejects the value.
pub(crate) fn write(name: &str, value: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/{name}"), value) {
        // A container that is not privileged has a /proc/sys for reading only, even with all rights on its networks.
        Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => write_anew(name, value).or(Err(e)),
        written => written,
    }
}

/// Writes the value by a new mount of proc.
fn write_anew(name: &str, value: &str) -> io::Result<()> {
    let proc = mount::detached("proc")?;
    let name = format!("sys/net/{name}");
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(openat(&proc, name, flags, Mode::empty())?);
    file.write_all(value.as_bytes())
}

/// Disables IPv6 on an interface: it would send packets by itself. Returns whether the kernel and the
/// interface have it.
///
/// # Errors
/// As [`write()`], otherwise.
pub(crate) fn disable_ipv6(interface: &str) -> io::Result<bool> {
    match write(&format!("ipv6/conf/{interface}/disable_ipv6"), "1") {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        written => written.map(|()| true),
    }
}

/// Returns whether a receive queue of an interface has a table of flows (RFS); not, if sysfs cannot be mounted.
pub fn steers_flows(interface: &str) -> bool {
    let Ok(sysfs) = mount::detached("sysfs") else {
        return false;
    };
    let flows = |queue: u32| {
        let name = format!("class/net/{interface}/queues/rx-{queue}/rps_flow_cnt");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut count = String::new();
        let mut file = File::from(openat(&sysfs, name, flags, Mode::empty()).ok()?);
        file.read_to_string(&mut count).ok()?;
        Some(count)
    };
    (0..).map_while(flows).any(|count| count.trim() != "0")
}
