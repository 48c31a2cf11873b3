// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether a root qdisc can be restored by restoring it on a device in a private network
//! namespace, which vanishes with the thread that made it.

use std::thread;

use super::{Link, Netlink, NetlinkError, OsFailure, Result, RootSnapshot};

impl RootSnapshot {
    /// Restores a copy and compares it.
    ///
    /// # Errors
    /// [`NetlinkError::CannotRestore`] if a copy cannot be made or differs.
    pub(super) fn rehearse(&self, nl: &mut Netlink, link: &Link) -> Result<()> {
        let refuse = |reason| NetlinkError::CannotRestore {
            ifname: link.name.clone(),
            reason,
        };
        // Filters may refer to interfaces: the namespace gets interfaces with the same names.
        let others = if self.names_interfaces() {
            nl.links()?
        } else {
            Vec::new()
        };
        let copied = thread::scope(|scope| {
            scope
                .spawn(|| self.copy_elsewhere(link, &others))
                .join()
                .unwrap_or_else(|_| {
                    Err(NetlinkError::Os(OsFailure {
                        attempted: "rehearse".into(),
                        errno: 0,
                        message: "the thread ended unexpectedly".into(),
                    }))
                })
        });
        match copied {
            Ok(copy) => match self.difference(copy.as_ref()) {
                None => Ok(()),
                Some(difference) => Err(refuse(format!("a copy of it differs: {difference}"))),
            },
            Err(err) => Err(refuse(format!("a copy of it cannot be made: {err}"))),
        }
    }

    fn copy_elsewhere(&self, link: &Link, others: &[Link]) -> Result<Option<Self>> {
        // SAFETY: the thread only does this and then ends, and it shares no file descriptor that
        // depends on the network namespace.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
            .map_err(|e| NetlinkError::io("create a network namespace", &e.into()))?;
        let mut nl = Netlink::open()?;
        for other in others
            .iter()
            .filter(|o| o.index != link.index && !o.loopback)
        {
            add_stand_in(
                &mut nl,
                &Link {
                    num_tx_queues: 1,
                    ..other.clone()
                },
                other.index,
            )?;
        }
        // lo exists in every namespace, with its own queues.
        let stand_in = if link.loopback {
            Link {
                name: "emud-lo".into(),
                ..link.clone()
            }
        } else {
            link.clone()
        };
        let index = if link.loopback { 0 } else { link.index };
        add_stand_in(&mut nl, &stand_in, index)?;
        let stand_in = nl.link(&stand_in.name)?;
        self.build(&mut nl, stand_in.index)?;
        Self::read(&mut nl, &stand_in)
    }
}

fn add_stand_in(nl: &mut Netlink, like: &Link, ifindex: u32) -> Result<()> {
    match nl.add_plain(c"ifb", like, ifindex) {
        Err(NetlinkError::Unavailable(_)) => nl.add_plain(c"dummy", like, ifindex),
        other => other,
    }
}
