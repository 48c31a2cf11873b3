// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::{Duration, Instant};

use super::{NetlinkError, OsFailure, Result};

/// `set` and `detach` take milliseconds, `attach` a few hundred.
const WAIT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(5);

/// Held while an emud process changes an interface; released when dropped and
/// whatever way the process ends.
#[derive(Debug)]
pub struct InterfaceLock {
    _bound: UnixDatagram,
}

/// Keeps other emud processes from changing the same interface of this network
/// namespace; waits a little for one that does. An abstract socket name belongs
/// to one namespace and vanishes with the process, so there is nothing to clean
/// up after a kill -9.
///
/// # Errors
/// [`NetlinkError::Busy`] if another process holds it for two seconds.
pub fn lock(ifindex: u32) -> Result<InterfaceLock> {
    let attempted = || format!("change interface {ifindex}");
    let address = SocketAddr::from_abstract_name(format!("emud/{ifindex}"))
        .map_err(|e| NetlinkError::io(attempted(), &e))?;
    let give_up = Instant::now() + WAIT;
    loop {
        match UnixDatagram::bind_addr(&address) {
            Ok(bound) => return Ok(InterfaceLock { _bound: bound }),
            Err(e) if e.kind() != ErrorKind::AddrInUse => {
                return Err(NetlinkError::io(attempted(), &e));
            }
            Err(_) if Instant::now() < give_up => thread::sleep(RETRY),
            Err(_) => {
                return Err(NetlinkError::Busy(OsFailure {
                    attempted: attempted(),
                    errno: libc::EBUSY,
                    message: "another emud is at work on it".into(),
                }));
            }
        }
    }
}
