// SPDX-License-Identifier: GPL-2.0-only
//! The holder in its place: the loop of [`super::holder`] tied to the link's maps.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use super::{Direction, HoldError, Holder, HolderStats, Tuning};
use crate::link::datapath::Maps;

struct Account {
    maps: Maps,
    /// Directions that have not reported yet.
    silent: Vec<Direction>,
}

/// Holds frames until `stop` is readable, the TAPs are gone or the device is;
/// without TAPs it only waits for `stop`. Calls `ready` once every direction
/// has its first lease.
///
/// # Errors
/// The loop fails.
pub fn serve(
    ifindex: u32,
    maps: Maps,
    taps: Vec<(OwnedFd, Direction)>,
    stop: BorrowedFd<'_>,
    ready: impl FnOnce() -> io::Result<()> + Send,
) -> Result<(), HoldError> {
    if taps.is_empty() {
        let wait = poll(&mut [PollFd::from_borrowed_fd(stop, PollFlags::IN)], None);
        return wait
            .map(drop)
            .map_err(|e| HoldError::system("waiting for a signal", e));
    }
    let account = Mutex::new(Account {
        maps,
        silent: taps.iter().map(|(_, direction)| *direction).collect(),
    });
    let ready = Mutex::new(Some(ready));
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|e| HoldError::system("socket", e))?;
    let tuned = Mutex::new([(0, 0); 2]);
    let tell_tuned = |direction: Direction, tuning: &Tuning, locked: &io::Result<()>| {
        lock(&tuned)[direction as usize] = tuning.bits(locked.is_ok());
    };
    let report = |direction: Direction, stats: &HolderStats| {
        let mut stats = *stats;
        (stats.tuning, stats.cpu) = lock(&tuned)[direction as usize];
        let mut account = lock(&account);
        if account.maps.set_holder(direction as u32, &stats).is_err()
            || netdevice::index_to_name(&socket, ifindex).is_err()
        {
            return ControlFlow::Break(());
        }
        account.silent.retain(|silent| *silent != direction);
        let tell = account
            .silent
            .is_empty()
            .then(|| lock(&ready).take())
            .flatten();
        if tell.is_some_and(|tell| tell().is_err()) {
            // attach does not wait any more: it has given up.
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    Holder::new(taps).run(stop, tell_tuned, report).map(drop)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
