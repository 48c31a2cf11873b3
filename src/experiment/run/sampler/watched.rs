// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether another process deleted or changed a part of a link.

use std::thread;
use std::time::{Duration, Instant};

use emud_monitor::log::{Line, LinkEvent, LinkLine};

use super::Work;
use crate::datapath::LinkError;
use crate::datapath::watch::Watch;
use crate::experiment::run::network::Network;
use crate::experiment::run::{RunError, links};
use crate::experiment::scenario::Link;
use crate::host::now_ns;
use crate::netlink::{Changes, Netlink, Notices};

/// Interval of checks for changes without a notification: a stopped holder, gso_max_segs.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// The same per link, whose check takes up to 1 ms: 5 % of a CPU.
const WATCH_EACH: Duration = Duration::from_millis(20);
/// Time until a check that has failed is repeated.
const AGAIN: Duration = Duration::from_millis(20);

/// A link, and its notifications.
pub(super) struct Watched {
    link: Link,
    nl: Netlink,
    notices: Notices,
    watch: Watch,
    /// The missing parts at the last check.
    told: Vec<String>,
    /// Whether a check has failed.
    failed: bool,
}

fn unwatched(link: &Link, error: &RunError) -> String {
    format!("link {} is not watched for tampering: {error}", link.name)
}

impl Watched {
    fn new(network: &Network, link: &Link) -> Result<Self, RunError> {
        let failed = |error: LinkError| links::failed(link, error);
        let opened = network.place.within(&link.node, || {
            let mut nl = Netlink::open()?;
            let notices = Notices::open()?;
            let ifindex = nl.link(&link.interface)?.index;
            let mut watch = Watch::new(ifindex);
            // From here on the devices of the link are known.
            let found = watch.look(&mut nl)?;
            Ok::<_, LinkError>((nl, notices, watch, found))
        })?;
        // The first check that counts reports what is already missing.
        let (nl, notices, watch, _) = opened.map_err(failed)?;
        Ok(Self {
            link: link.clone(),
            nl,
            notices,
            watch,
            told: vec![],
            failed: false,
        })
    }

    /// Returns what is missing or changed; `None`: the same as at the last check. Unless `always`,
    /// it only checks after a notification.
    ///
    /// # Errors
    /// The link cannot be checked.
    fn look(&mut self, network: &Network, always: bool) -> Result<Option<Vec<String>>, RunError> {
        let changes = self.notices.take();
        let concerned = || changes.concern(&self.watch.interfaces());
        if !always && (changes == Changes::default() || !concerned()) {
            return Ok(None);
        }
        // In the node: the kernel finds the programs of tcx by the namespace of the thread.
        let (watch, nl) = (&mut self.watch, &mut self.nl);
        let found = network.place.within(&self.link.node, || {
            watch.look_after(nl, &changes).or_else(|_| {
                // `set` and `detach` change one object after the other.
                thread::sleep(AGAIN);
                watch.look_after(nl, &changes)
            })
        })?;
        let found = found.map_err(|error| links::failed(&self.link, error))?;
        Ok((found != self.told).then(|| {
            self.told.clone_from(&found);
            found
        }))
    }
}

impl Work {
    pub(super) fn begin(&mut self) {
        let network = self.parts.network.clone();
        for (link, _) in &network.links {
            match Watched::new(&network, link) {
                Ok(watched) => self.watched.push(watched),
                Err(e) => self.found.gone.push(unwatched(link, &e)),
            }
        }
    }

    /// Checks whether another process has deleted or changed a part of a link.
    pub(super) fn watch(&mut self, always: bool) {
        let now = Instant::now();
        let due = always || now >= self.next_watch;
        if due {
            let each = WATCH_EACH * u32::try_from(self.watched.len()).unwrap_or(u32::MAX);
            self.next_watch = now + WATCH_EVERY.max(each);
        }
        let network = self.parts.network.clone();
        for watched in &mut self.watched {
            let before = watched.told.clone();
            let what = match watched.look(&network, due) {
                Ok(Some(what)) => what,
                Ok(None) => continue,
                Err(e) => {
                    // A link without a check is not known to be whole.
                    if !std::mem::replace(&mut watched.failed, true) {
                        self.found.gone.push(unwatched(&watched.link, &e));
                    }
                    continue;
                }
            };
            let Link {
                name,
                node,
                interface,
                ..
            } = &watched.link;
            let new = what.iter().filter(|one| !before.contains(one));
            self.found.gone.extend(new.map(|one| {
                format!("link {name} ({interface} of {node}) was tampered with: {one}")
            }));
            self.parts.log.line(Line::Link(LinkLine {
                mono_ns: now_ns(),
                link: name.clone(),
                event: LinkEvent::Tampered,
                what,
                toml: None,
                phase: None,
            }));
        }
    }
}
