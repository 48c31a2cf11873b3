// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder of a link: connects the loop of `engine::hold::holder` to the
//! link's maps.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use super::engine::hold::failure::Failure;
use super::engine::hold::reports::{self, LinkName};
use super::engine::hold::servers::Classes;
use super::engine::hold::{Direction, End, HoldError, Holder, HolderStats, Tap, Tuning};
use super::listen::Listener;
use super::maps::Maps;
use super::saved::Saved;
use crate::abi;
use crate::bottleneck::Plan;
use crate::host::{now_ns, spawn};
use crate::netlink::{self, Netlink, NetlinkError};
use crate::profile::Profile;

struct Account {
    maps: Maps,
    /// Directions without a report so far.
    silent: Vec<Direction>,
}

/// Runs a holder with limits of buffered bytes by direction until `stop` is readable or the TAPs
/// or the device are gone; without TAPs it only waits for `stop`. Calls `ready` once every
/// direction has its first lease.
///
/// # Errors
/// The loop fails.
pub fn serve(
    ifindex: u32,
    maps: Maps,
    (taps, limit_bytes): (Vec<(OwnedFd, Direction)>, [u64; 2]),
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
    let socket = device_socket()?;
    let tuned = Mutex::new([(0, 0); 2]);
    let tell_tuned = |direction: Direction, tuning: &Tuning, locked: &io::Result<()>| {
        lock(&tuned)[direction as usize] = tuning.bits(locked.is_ok());
    };
    let report = |direction: Direction, stats: &HolderStats| {
        let mut stats = *stats;
        (stats.tuning, stats.cpu) = lock(&tuned)[direction as usize];
        let mut account = lock(&account);
        if account.maps.set_holder(direction as u32, &stats).is_err()
            || name_of(&socket, ifindex).is_err()
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
            // attach no longer waits: it has given up.
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let (failures, teller) = tell_monitors(ifindex)?;
    let ended = Arc::new(AtomicBool::new(false));
    let listener = listen(ifindex, ended.clone())?;
    let own = (taps.iter().map(|(fd, _)| fd.try_clone()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|e| HoldError::system("duplicating a descriptor", e))?;
    let (in_force, _) = lock(&account).in_force()?;
    let mut holder = Holder::new(taps);
    let classes = InForce(&account);
    if !in_force.bottlenecks.is_empty() {
        holder = holder.classes(&classes, in_force.joins_directions());
    }
    let end = holder
        .limit_bytes(limit_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
        .failures(failures)
        .run(stop, tell_tuned, report);
    // It ends after the last sender, which is gone; wait for its last reports.
    let _ = teller.join();
    let gone = name_of(&socket, ifindex).is_err();
    ended.store(true, Ordering::Relaxed);
    let no_tap = |ends: &Vec<(_, End)>| ends.iter().any(|(_, end)| *end == End::TapGone);
    // It finds out why.
    let moved = (gone || end.as_ref().is_ok_and(no_tap)) && listener.join().unwrap_or(false);
    if gone && !moved {
        // detach is impossible without the interface: its TAPs are deleted here.
        for fd in &own {
            Tap::persist(fd.as_fd(), false)?;
        }
    }
    end.map(drop)
}

impl Account {
    /// Returns the profile that is in the kernel, and its seed.
    fn in_force(&self) -> Result<(Profile, u64), HoldError> {
        let failed =
            |e: String| HoldError::system("the profile in the kernel", io::Error::other(e));
        let saved = self.maps.saved().map_err(|e| failed(e.to_string()))?;
        let saved: Saved = serde_json::from_slice(&saved).map_err(|e| failed(e.to_string()))?;
        let profile = Profile::parse(&saved.profile, "the profile in the kernel")
            .map_err(|e| failed(e.to_string()))?;
        Ok((profile, saved.seed))
    }
}

/// The bottlenecks of the profile in force. `emud set` writes the profile before it turns the
/// control word, so that another word means another profile, unless a change is ahead.
struct InForce<'a>(&'a Mutex<Account>);

impl Classes for InForce<'_> {
    fn plans(&self, version: &mut u64) -> Option<Vec<Plan>> {
        let account = lock(self.0);
        let word = account.maps.control().ok()?;
        let to_read = to_read(&word, *version, now_ns())?;
        let (profile, seed) = account.in_force().ok()?;
        *version = to_read;
        Some(profile.plans(seed))
    }

    fn account(&self, classes: &[(u32, abi::emud_class)]) {
        let mut account = lock(self.0);
        for (number, class) in classes {
            // A map that cannot be written ends the holder by its report.
            let _ = account.maps.set_class(*number, class);
        }
    }
}

/// Returns the version whose figures are to be read. The profile of a change that is ahead is written already: until
/// then what is known stays, if anything is.
fn to_read(word: &abi::emud_control, version: u64, now_ns: u64) -> Option<u64> {
    let in_force = u64::from(word.generation) + 1;
    let is_ahead = version != 0 && now_ns < word.turns_at;
    (in_force != version && !is_ahead).then_some(in_force)
}

/// Returns the name of an interface that is there. The kernel takes names that are no UTF-8.
fn name_of(socket: &OwnedFd, ifindex: u32) -> Result<String, Errno> {
    match netdevice::index_to_name(socket, ifindex) {
        Err(Errno::ILSEQ) => Ok(format!("interface {ifindex}")),
        named => named,
    }
}

/// Number of failures that may wait for the reporting thread.
const FAILURES: usize = 16;

/// Starts the thread that reports to the monitors.
fn tell_monitors(ifindex: u32) -> Result<(SyncSender<Failure>, JoinHandle<()>), HoldError> {
    let socket = device_socket()?;
    let netns = netlink::identity().map_err(|e| HoldError::system("netns", io::Error::other(e)))?;
    let link = move || {
        let name = name_of(&socket, ifindex).ok()?;
        Some(LinkName {
            name,
            ifindex,
            netns: netns.inode,
        })
    };
    let (sender, receiver) = sync_channel(FAILURES);
    let thread = spawn("emud-tell", move || {
        reports::pass_on(&receiver, Path::new(reports::MONITORS), link)
    })
    .map_err(|e| HoldError::system("thread", e))?;
    Ok((sender, thread))
}

/// Starts the thread that receives notifications of changes to the link.
fn listen(ifindex: u32, ended: Arc<AtomicBool>) -> Result<JoinHandle<bool>, HoldError> {
    let failed = |e: NetlinkError| HoldError::system("netlink", io::Error::other(e));
    let name = Netlink::open().and_then(|mut nl| nl.link_by_index(ifindex));
    let link = LinkName {
        name: name.map_err(failed)?.name,
        ifindex,
        netns: netlink::identity().map_err(failed)?.inode,
    };
    let listener = Listener::open(link).map_err(failed)?;
    spawn("emud-listen", move || listener.run(&ended)).map_err(|e| HoldError::system("thread", e))
}

fn device_socket() -> Result<OwnedFd, HoldError> {
    socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|e| HoldError::system("socket", e))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::to_read;
    use crate::abi::emud_control;

    #[test]
    fn figures_of_a_change_ahead_wait_for_it() {
        let word = |turns_at| emud_control {
            generation: 7,
            turns_at,
            ..emud_control::default()
        };
        assert_eq!(to_read(&word(0), 8, 100), None);
        assert_eq!(to_read(&word(0), 5, 100), Some(8));
        // Another change came just before.
        assert_eq!(to_read(&word(101), 5, 100), None);
        assert_eq!(to_read(&word(101), 5, 101), Some(8));
        // A holder that has just started has no other figures.
        assert_eq!(to_read(&word(101), 0, 100), Some(8));
    }
}
