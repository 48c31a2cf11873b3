// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock that lets one emud process at a time change an interface.

use std::time::Duration;

use super::lock::{About, Lock, Range, Sharing};
use crate::netlink::{NetlinkError, OsFailure, Result};

/// How long to wait for another emud process: `set` and `detach` take milliseconds, `attach` a few
/// hundred.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The lock that an emud process holds while it changes an interface; dropping it or the end of the
/// process releases it.
#[derive(Debug)]
pub struct InterfaceLock {
    _held: Lock,
}

/// Locks an interface of this network namespace against changes by other emud processes; waits for
/// a process that holds the lock.
///
/// # Errors
/// [`NetlinkError::Busy`] if another process holds it for longer than `patience`,
/// [`NetlinkError::Denied`] unless this is root.
pub fn lock(ifindex: u32, patience: Duration) -> Result<InterfaceLock> {
    let attempted = || format!("change interface {ifindex}");
    let taken = || {
        let lock = Lock::open(About::Interface)?;
        let range = Range::here(ifindex, 1)?;
        let taken = lock.take(range, Sharing::Exclusive, patience)?;
        Ok(taken.then_some(InterfaceLock { _held: lock }))
    };
    let failed = |e: std::io::Error| NetlinkError::io(attempted(), &e);
    taken().map_err(failed)?.ok_or_else(|| {
        NetlinkError::Busy(OsFailure {
            attempted: attempted(),
            errno: libc::EBUSY,
            message: "another emud process is changing it; try again".into(),
        })
    })
}
