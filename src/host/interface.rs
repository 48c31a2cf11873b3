// SPDX-License-Identifier: MIT OR Apache-2.0
//! One emud process at a time changes an interface.

use std::time::Duration;

use super::lock::{About, Lock, Range, Sharing};
use crate::netlink::{NetlinkError, OsFailure, Result};

/// Time to wait for another emud: `set` and `detach` take milliseconds, `attach` a few hundred.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Held while an emud process changes an interface; released when dropped and
/// whatever way the process ends.
#[derive(Debug)]
pub struct InterfaceLock {
    _held: Lock,
}

/// Keeps other emud processes from changing the same interface of this network
/// namespace; waits for one that does.
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
            message: "another emud is at work on it".into(),
        })
    })
}
