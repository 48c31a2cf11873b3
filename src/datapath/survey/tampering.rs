// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another process deleted or changed of a link that was found.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Known, found};
use crate::datapath::{LinkError, pieces};
use crate::host::now_ns;
use crate::netlink::{Netlink, NetlinkError, Qdiscs};

/// A list of qdiscs is read again after this time.
const LIST: Duration = Duration::from_millis(500);
/// Two checks this far apart must agree: `set` and `detach` change one object after the other.
const CONFIRM: Duration = Duration::from_millis(20);

/// The qdiscs of a namespace, read once for several checks: the kernel lists those of all its interfaces.
pub(super) struct Listed {
    netns: u32,
    at: Instant,
    all: Arc<Qdiscs>,
}

impl Known {
    pub(super) fn check(&mut self, listed: &mut Option<Listed>) {
        let netns = self.control.netns;
        let spaces = found(HashSet::from([netns.into()]));
        let found = match spaces.get(&netns.into()) {
            Some(space) => space.within(|| self.tampering(listed)),
            None => Err(NetlinkError::NoNamespace(format!("net:[{netns}]"))),
        };
        // What cannot be checked keeps its last result, and the age of that shows it.
        if let Ok(Ok(found)) = found {
            self.tampered = Some((found, now_ns()));
        }
    }

    fn tampering(&self, listed: &mut Option<Listed>) -> Result<Vec<String>, LinkError> {
        let mut nl = Netlink::open()?;
        let list = self.listed(&mut nl, listed)?;
        nl.use_qdiscs(list);
        if self.tampering_once(&mut nl)?.is_empty() {
            return Ok(vec![]);
        }
        let mut nl = Netlink::open()?;
        let first = self.tampering_once(&mut nl)?;
        if first.is_empty() {
            return Ok(first);
        }
        thread::sleep(CONFIRM);
        let second = self.tampering_once(&mut nl)?;
        let both = first.into_iter().filter(|one| second.contains(one));
        Ok(both.collect())
    }

    fn listed(
        &self,
        nl: &mut Netlink,
        listed: &mut Option<Listed>,
    ) -> Result<Arc<Qdiscs>, LinkError> {
        let netns = self.control.netns;
        let is_recent = |list: &Listed| list.netns == netns && list.at.elapsed() < LIST;
        if let Some(list) = listed.as_ref().filter(|list| is_recent(list)) {
            return Ok(list.all.clone());
        }
        let (at, all) = (Instant::now(), Arc::new(nl.all_qdiscs()?));
        let list = listed.insert(Listed { netns, at, all });
        Ok(list.all.clone())
    }

    fn tampering_once(&self, nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
        let link = match nl.link_by_index(self.control.ifindex) {
            Ok(link) => link,
            Err(NetlinkError::NoInterface(_)) => {
                return Ok(vec!["the interface was deleted or moved".to_owned()]);
            }
            Err(e) => return Err(e.into()),
        };
        let found = pieces::tampering(nl, &link, &self.there)?;
        Ok(found.into_iter().map(|one| one.what).collect())
    }
}
