// SPDX-License-Identifier: GPL-2.0-only
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::{NetlinkError, OsFailure, Result};

/// Held while an emud process changes an interface; released when dropped and
/// whatever way the process ends.
#[derive(Debug)]
pub struct InterfaceLock {
    _bound: UnixDatagram,
}

/// Keeps other emud processes from changing the same interface of this network
/// namespace. An abstract socket name belongs to one namespace and vanishes
/// with the process, so there is nothing to clean up after a kill -9.
///
/// # Errors
/// [`NetlinkError::Busy`] at once if another process holds it.
pub fn lock(ifindex: u32) -> Result<InterfaceLock> {
    let attempted = || format!("lock interface {ifindex}");
    let address = SocketAddr::from_abstract_name(format!("emud/{ifindex}"))
        .map_err(|e| NetlinkError::io(attempted(), &e))?;
    match UnixDatagram::bind_addr(&address) {
        Ok(bound) => Ok(InterfaceLock { _bound: bound }),
        Err(e) if e.kind() == ErrorKind::AddrInUse => Err(NetlinkError::Busy(OsFailure {
            attempted: attempted(),
            errno: libc::EBUSY,
            message: "another emud is at work on it".into(),
        })),
        Err(e) => Err(NetlinkError::io(attempted(), &e)),
    }
}
