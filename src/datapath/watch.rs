// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a link repeatedly.

use std::thread;
use std::time::Duration;

use super::attachment::Attachment;
use super::{LinkError, attachment, pieces};
use crate::abi::DIRECTIONS;
use crate::netlink::{Netlink, NetlinkError};

/// Two checks this far apart must agree: `set` and `detach` change one object after the other.
const CONFIRM: Duration = Duration::from_millis(20);

/// What [`Watch::look`] returns of an interface that is no longer there.
pub const GONE: &str = "the interface was deleted or moved to another network namespace";

/// What an interface's link is compared with.
pub struct Watch {
    ifindex: u32,
    /// Whether the interface existed at a previous check.
    seen: bool,
    /// Read once per generation of the link: reading takes most of the time.
    there: Option<(u32, Attachment)>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("ifindex", &self.ifindex)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Returns a watch of the interface with this index.
    pub fn new(ifindex: u32) -> Self {
        Self {
            ifindex,
            seen: false,
            there: None,
        }
    }

    /// Returns the interfaces whose changes affect the link: its interface and emud's devices.
    pub fn interfaces(&self) -> Vec<u32> {
        let mut all = vec![self.ifindex];
        if let Some((_, there)) = &self.there {
            let device = |direction| there.maps.link(direction).ok().map(|link| link.ifindex);
            all.extend(DIRECTIONS.into_iter().filter_map(device));
        }
        all
    }

    /// Returns which parts of the link are missing or changed, one sentence each. Empty if there is
    /// no link or while an attach or detach is in progress.
    pub fn look(&mut self, nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
        let first = self.once(nl)?;
        if first.is_empty() {
            return Ok(first);
        }
        thread::sleep(CONFIRM);
        self.there = None;
        let second = self.once(nl)?;
        Ok(first
            .into_iter()
            .filter(|one| second.contains(one))
            .collect())
    }

    fn once(&mut self, nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
        let link = match nl.link_by_index(self.ifindex) {
            Ok(link) => link,
            // Deleted before the first check: the device left its remains behind.
            Err(NetlinkError::NoInterface(_)) if !self.seen => return Ok(vec![]),
            Err(NetlinkError::NoInterface(_)) => return Ok(vec![GONE.to_owned()]),
            Err(e) => return Err(e.into()),
        };
        self.seen = true;
        if let Some((generation, there)) = &self.there
            && there.maps.control()?.generation != *generation
        {
            self.there = None;
        }
        let there = match &self.there {
            Some((_, there)) => there,
            None => match attachment::find(nl, self.ifindex)? {
                Some(there) => {
                    let generation = there.maps.control()?.generation;
                    &self.there.insert((generation, there)).1
                }
                None => return Ok(vec![]),
            },
        };
        if !pieces::in_force(there)? {
            return Ok(vec![]);
        }
        let found = pieces::tampering(nl, &link, there)?;
        let found = found.into_iter().map(|one| one.what);
        Ok(found.filter(|what| what != pieces::UNFINISHED).collect())
    }
}
