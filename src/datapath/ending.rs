// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links that end by themselves: from a time on, which is in the kernel, the classifier passes all
//! packets unchanged. No process is needed for that; the next emud removes what is left.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::maps::{Classifiers, DatapathError, control_of};
use super::{LinkError, attachment, restore};
use crate::host::{interface, nanoseconds, now_ns, timespec};
use crate::netlink::{Link, Netlink, NetlinkError, identity};

/// How long a link outlives a process that must renew it: [`renew`] may wait for another emud until
/// then.
pub const LEASE: Duration = Duration::from_secs(5);

const RENEWED_EVERY: Duration = Duration::from_secs(1);

/// Returns the time on the kernel's clock after this time.
pub(crate) fn after(time: Duration) -> u64 {
    now_ns().saturating_add(nanoseconds(time))
}

/// Removes every link of this network namespace that has ended, and returns a sentence about each.
/// One that another emud process is changing is left to it.
///
/// # Errors
/// The interfaces or programs cannot be listed.
pub(crate) fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut notes = Vec::new();
    for ifindex in ended_here()? {
        let link = match nl.link_by_index(ifindex) {
            Ok(link) => link,
            // What remains of a deleted interface is swept elsewhere.
            Err(_) => continue,
        };
        match sweep_one(nl, &link) {
            Ok(true) => notes.push(format!(
                "removed the link of {}, which had ended by itself",
                link.name
            )),
            Ok(false) => {}
            // Another emud process, or the interface was deleted in the meantime.
            Err(LinkError::Netlink(NetlinkError::Busy(_) | NetlinkError::NoInterface(_))) => {}
            Err(LinkError::Netlink(e)) if e.is_no_device() => {}
            Err(e) => notes.push(format!(
                "cannot remove the link of {}, which has ended by itself: {e}",
                link.name
            )),
        }
    }
    Ok(notes)
}

/// Returns the interfaces of this network namespace whose link has ended: from the list of programs,
/// which takes some 30 system calls for a link. The way from each interface to its program took 500 with 60 links.
fn ended_here() -> Result<BTreeSet<u32>, LinkError> {
    let (here, now) = (identity()?.inode, now_ns());
    let mut ended = BTreeSet::new();
    for program in Classifiers::default().list()? {
        // Others are of another version, or are just being loaded or detached.
        if let Ok(control) = control_of(program)
            && u64::from(control.netns) == here
            && (1..=now).contains(&control.ends_at)
        {
            ended.insert(control.ifindex);
        }
    }
    Ok(ended)
}

fn sweep_one(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    let over = |nl: &mut Netlink| match attachment::find(nl, link.index) {
        Ok(Some(there)) => Ok(there.maps.is_over()?.then_some(there)),
        // A link of another version is none of ours.
        Ok(None)
        | Err(LinkError::Datapath(DatapathError::Abi { .. } | DatapathError::OtherVersion(_))) => {
            Ok(None)
        }
        Err(e) => Err(e),
    };
    if over(nl)?.is_none() {
        return Ok(false);
    }
    let _lock = interface::lock(link.index, Duration::ZERO)?;
    let Some(mut there) = over(nl)? else {
        return Ok(false);
    };
    restore::undo_attachment(nl, link, &mut there)?;
    Ok(true)
}

/// A process whose end is the end of a link.
#[derive(Debug)]
pub struct Whose(OwnedFd);

impl Whose {
    /// Finds a process.
    ///
    /// # Errors
    /// There is none with this ID.
    pub fn find(pid: i32) -> Result<Self, LinkError> {
        // It takes no negative number, and none is that of a process.
        let found = Pid::from_raw(pid.max(0)).ok_or(rustix::io::Errno::SRCH);
        let found = found.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        found.map(Self).map_err(|e| LinkError::NoProcess {
            pid,
            cause: e.into(),
        })
    }

    /// Waits for its end; false: it still runs.
    fn ends_within(&self, time: Duration) -> bool {
        let wait = timespec(time.as_nanos() as u64);
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&wait)), Ok(1))
    }
}

impl From<OwnedFd> for Whose {
    fn from(pidfd: OwnedFd) -> Self {
        Self(pidfd)
    }
}

impl AsFd for Whose {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a running link end this time from now. It no longer ends with a process.
///
/// # Errors
/// Nothing is attached, or it has ended already, or the kernel returns an error.
pub fn end_after(interface: &str, time: Duration) -> Result<(), LinkError> {
    let mut nl = Netlink::open()?;
    let link = nl.link(interface)?;
    let _lock = interface::lock(link.index, interface::PATIENCE)?;
    let mut there = attachment::running(&mut nl, &link)?;
    Ok(there.maps.end_at(after(time))?)
}

/// Renews a link's [`LEASE`] as long as a process runs, then removes the link. Returns earlier if
/// the link is gone or replaced, or has a different end than attach gave it ([`end_after`]): one that was
/// set before this process ran, too.
///
/// # Errors
/// The kernel returns an error; the link ends with its lease then.
pub fn renew(index: u32, link_id: u32, mut end: u64, whose: &Whose) -> Result<(), LinkError> {
    let mut nl = Netlink::open()?;
    loop {
        let over = whose.ends_within(RENEWED_EVERY);
        // As long as the lease lasts: without a renewal the link is over.
        let lease = Duration::from_nanos(end.saturating_sub(now_ns()));
        let _lock = interface::lock(index, lease)?;
        // The interface may have a different name by now.
        let link = match nl.link_by_index(index) {
            Err(e) if e.is_no_device() => return Ok(()),
            found => found?,
        };
        let Some(mut there) = attachment::find(&mut nl, index)? else {
            return Ok(());
        };
        if there.maps.id != link_id || there.maps.ends_at()? != Some(end) {
            return Ok(());
        }
        if over {
            return restore::undo_attachment(&mut nl, &link, &mut there).map(drop);
        }
        if there.maps.is_over()? {
            return Ok(());
        }
        end = after(LEASE);
        there.maps.end_at(end)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_has_a_negative_number() {
        for pid in [i32::MIN, -5, 0] {
            let e = Whose::find(pid).unwrap_err();
            assert_eq!(e.exit_code(), 66, "{e}");
        }
    }
}
