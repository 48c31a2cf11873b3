// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a link repeatedly.

use std::thread;
use std::time::Duration;

use super::attachment::Attachment;
use super::{LinkError, attachment, pieces};
use crate::netlink::{Changes, Netlink, NetlinkError};

/// Two checks this far apart must agree: `set` and `detach` change one object after the other.
const CONFIRM: Duration = Duration::from_millis(20);

/// Message of [`Watch::look`] for an interface that does not exist any more.
pub const GONE: &str = "the interface was deleted or moved to another network namespace";

/// The state that an interface's link is compared with.
pub struct Watch {
    ifindex: u32,
    /// Whether the interface existed at a previous check.
    seen: bool,
    /// Read once per generation of the link: reading takes most of the time.
    there: Option<There>,
}

/// A link, with what does not change in a generation.
struct There {
    generation: u32,
    link: Attachment,
    /// Index and name of emud's devices that packets pass.
    devices: Vec<(u32, String)>,
}

impl There {
    fn read(nl: &mut Netlink, link: Attachment) -> Result<Self, LinkError> {
        let mut devices = vec![];
        for name in pieces::devices(&link.saved) {
            let device = nl.find_link(&name)?;
            devices.extend(device.map(|device| (device.index, name)));
        }
        Ok(Self {
            generation: link.maps.control()?.generation,
            link,
            devices,
        })
    }

    fn is_current(&self) -> Result<bool, LinkError> {
        Ok(self.link.maps.control()?.generation == self.generation)
    }
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
        let devices = self.there.iter().flat_map(|there| &there.devices);
        let devices = devices.map(|(index, _)| *index);
        [self.ifindex].into_iter().chain(devices).collect()
    }

    /// Returns which parts of the link are missing or changed, one sentence each. Empty if there is
    /// no link or while an attach or detach is in progress.
    pub fn look(&mut self, nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
        let first = self.once(nl, false)?;
        if first.is_empty() {
            return Ok(first);
        }
        thread::sleep(CONFIRM);
        let second = self.once(nl, true)?;
        Ok(first
            .into_iter()
            .filter(|one| second.contains(one))
            .collect())
    }

    /// As [`Self::look`], after notifications: also returns what lost packets of emud's devices and was
    /// undone since.
    pub fn look_after(
        &mut self,
        nl: &mut Netlink,
        changes: &Changes,
    ) -> Result<Vec<String>, LinkError> {
        let undone = self.done_to_devices(changes)?;
        let mut found = self.look(nl)?;
        // Unless it is still so, or the devices end with their interface.
        let undone = undone.into_iter().filter(|(name, _)| {
            let is_about_it = |one: &String| one.contains(name) || one == GONE;
            !found.iter().any(is_about_it)
        });
        let undone: Vec<String> = undone.map(|(_, what)| what).collect();
        found.extend(undone);
        Ok(found)
    }

    /// Returns the names of the devices, too. emud turns a link off before it removes a part, and
    /// afterwards it only adds some.
    fn done_to_devices(&self, changes: &Changes) -> Result<Vec<(String, String)>, LinkError> {
        let Some(there) = &self.there else {
            return Ok(vec![]);
        };
        let what = |(index, name): &(u32, String)| {
            let what = if changes.set_down.contains(index) {
                format!("device {name} was down for a moment")
            } else if changes.lost_qdisc.contains(index) {
                format!("a qdisc of {name} was deleted, and another one added")
            } else {
                return None;
            };
            Some((name.clone(), what))
        };
        let found: Vec<_> = there.devices.iter().filter_map(what).collect();
        Ok(match found.is_empty() || there.link.is_in_force()? {
            true => found,
            false => vec![],
        })
    }

    fn once(&mut self, nl: &mut Netlink, again: bool) -> Result<Vec<String>, LinkError> {
        let interface = match nl.link_by_index(self.ifindex) {
            Ok(interface) => interface,
            // Deleted before the first check: the device left its remains behind.
            Err(NetlinkError::NoInterface(_)) if !self.seen => return Ok(vec![]),
            Err(NetlinkError::NoInterface(_)) => return Ok(vec![GONE.to_owned()]),
            Err(e) => return Err(e.into()),
        };
        self.seen = true;
        let is_current = match &self.there {
            Some(there) => there.is_current()?,
            None => false,
        };
        // If everything that leads to the link was deleted, what is known of it remains.
        if (again || !is_current)
            && let Some(link) = attachment::find(nl, self.ifindex)?
        {
            self.there = Some(There::read(nl, link)?);
        }
        let Some(there) = &self.there else {
            return Ok(vec![]);
        };
        // A detach turns it off before it removes anything.
        if !there.link.is_in_force()? {
            return Ok(vec![]);
        }
        let found = pieces::tampering(nl, &interface, &there.link)?;
        let found = found.into_iter().map(|one| one.what);
        Ok(found.filter(|what| what != pieces::UNFINISHED).collect())
    }
}
