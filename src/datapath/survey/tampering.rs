// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another process deleted or changed of a link that was found.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Known, found};
use crate::datapath::{LinkError, pieces};
use crate::host::now_ns;
use crate::netlink::{Netlink, NetlinkError, Qdiscs};

/// A list of qdiscs is read again after this time.
const LIST: Duration = Duration::from_millis(500);

/// The qdiscs of a namespace, read once for several checks: the kernel lists those of all its interfaces.
pub(super) struct Listed {
    netns: u32,
    at: Instant,
    all: Arc<Qdiscs>,
}

impl Known {
    /// Checks the link. Two checks in a row must agree, with separate lists: `set` and `detach` change one object
    /// after the other. Returns whether another check has to follow.
    pub(super) fn check(&mut self, listed: &mut Option<Listed>) -> bool {
        let netns = self.control.netns;
        let spaces = found(HashSet::from([netns.into()]));
        let found = match spaces.get(&netns.into()) {
            Some(space) => space.within(|| self.tampering(listed)),
            None => Err(NetlinkError::NoNamespace(format!("net:[{netns}]"))),
        };
        // What cannot be checked keeps its last result, and the age of that shows it.
        let Ok(Ok(mut found)) = found else {
            return false;
        };
        let is_known = (self.tampered.as_ref()).is_some_and(|(known, _)| *known == found);
        match self.suspected.take() {
            _ if found.is_empty() || is_known => {}
            Some(before) => found.retain(|one| before.contains(one)),
            None => {
                self.suspected = Some(found);
                return true;
            }
        }
        self.tampered = Some((found, now_ns()));
        false
    }

    fn tampering(&self, listed: &mut Option<Listed>) -> Result<Vec<String>, LinkError> {
        let mut nl = Netlink::open()?;
        let list = self.listed(&mut nl, listed)?;
        nl.use_qdiscs(list);
        let link = match nl.link_by_index(self.control.ifindex) {
            Ok(link) => link,
            Err(NetlinkError::NoInterface(_)) => {
                return Ok(vec!["the interface was deleted or moved".to_owned()]);
            }
            Err(e) => return Err(e.into()),
        };
        let found = pieces::tampering(&mut nl, &link, &self.there)?;
        Ok(found.into_iter().map(|one| one.what).collect())
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
}
