// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder's thread that receives notifications of changes to the link and reports them to
//! the monitors.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::engine::hold::reports::{self, LinkName};
use super::watch::{GONE, Watch};
use crate::host::now_ns;
use crate::netlink::{Changes, Netlink, NetlinkError, Notices};

/// Minimum time between two checks.
const REST: Duration = Duration::from_millis(100);
/// Maximum time from the end of an interface until the kernel's notification of it. The holder misses the
/// interface within 50 ms; the notification follows RCU grace periods later (`__dev_change_net_namespace()`):
/// 18 ms in the median, at most 49 ms in 60 moves beside two spinning processes. With a limit of 100 ms one
/// of 20 runs of the tests, with a copy of gigabytes beside it, saw no alarm.
const NOTIFIED: Duration = Duration::from_secs(10);
/// How often the thread checks whether it has to end.
const ASK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Receives notifications from its creation on.
pub(crate) struct Listener {
    notices: Notices,
    nl: Netlink,
    link: LinkName,
    watch: Watch,
    /// The interfaces that it is notified of; empty: all.
    heard: Vec<u32>,
    /// Parts that were missing or changed at the last check.
    told: Vec<String>,
}

impl Listener {
    /// Opens the listener in the network namespace of the calling thread.
    pub(crate) fn open(link: LinkName) -> Result<Self, NetlinkError> {
        Ok(Self {
            notices: Notices::open()?,
            nl: Netlink::open()?,
            watch: Watch::new(link.ifindex),
            link,
            heard: vec![],
            told: vec![],
        })
    }

    /// Runs until the kernel has notified that the interface is gone, or `end` is set and the interface
    /// exists. Returns true if it was moved to another network namespace, so what attach created can
    /// still be removed.
    pub(crate) fn run(mut self, end: &AtomicBool) -> bool {
        let index = self.link.ifindex;
        let mut ends_at = None;
        // Not active yet; from here on the devices of the link are known.
        self.told = self.look(&Changes::default());
        loop {
            let mut fds = [PollFd::new(&self.notices, PollFlags::IN)];
            // The next call returns the failure again.
            let _ = poll(&mut fds, Some(&ASK));
            let changes = self.notices.take();
            let moved = changes.moved.contains(&index);
            if !moved && changes.deleted.contains(&index) {
                return false;
            }
            if !moved && end.load(Ordering::Relaxed) {
                let ends_at = *ends_at.get_or_insert_with(|| Instant::now() + NOTIFIED);
                let is_there = self.nl.link_by_index(index).is_ok();
                if is_there {
                    // Also its TAPs may have been deleted.
                    self.check(&changes, false);
                }
                if is_there || Instant::now() >= ends_at {
                    return false;
                }
            }
            // What is undone later can happen again.
            if self.concerns(&changes) || !self.told.is_empty() {
                self.check(&changes, moved);
                thread::sleep(REST);
            }
            if moved {
                return true;
            }
        }
    }

    /// Reports what is missing or changed, if it is something else than at the last check.
    fn check(&mut self, changes: &Changes, moved: bool) {
        let found = self.look(changes);
        // The notification that follows shows whether it was moved, or just ended, as a node does. An
        // overflow may have lost it.
        let known = moved || changes.lost || found != [GONE];
        if known && !found.is_empty() && found != self.told {
            let line = reports::tampered_line(&self.link, &found, now_ns());
            reports::send_all(Path::new(reports::MONITORS), &line);
        }
        if known {
            self.told = found;
        }
    }

    /// Returns what is missing or changed.
    fn look(&mut self, changes: &Changes) -> Vec<String> {
        loop {
            // `show` reports what cannot be read.
            let found = self.watch.look_after(&mut self.nl, changes);
            let found = found.unwrap_or_default();
            let interfaces = self.watch.interfaces();
            if interfaces == self.heard {
                return found;
            }
            // Without the filter it hears of all. What changed before it was set is seen by the next look.
            let _ = self.notices.only(&interfaces);
            self.heard = interfaces;
        }
    }

    fn concerns(&self, changes: &Changes) -> bool {
        *changes != Changes::default() && changes.concern(&self.watch.interfaces())
    }
}
