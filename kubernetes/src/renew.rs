// SPDX-License-Identifier: Apache-2.0
//! When the kernel ends a link: with its lease, or at the end of the duration of its Link.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;

use crate::agent::{Agent, Held, Key, RETRY};
use crate::cgroup::Network;
use crate::emud::Shown;
use crate::link::{Link, PodLink};
use crate::plan;

/// The kernel's clock and the one of `since` may differ by this much.
pub(crate) const SLACK: Duration = Duration::from_secs(2);

impl Agent {
    /// The time until the kernel ends the link.
    pub(crate) fn lasts(
        &self,
        before: &PodLink,
        duration: Option<Duration>,
        now: Timestamp,
    ) -> Duration {
        let since = before.since.as_ref().map_or(now, |time| time.0);
        match duration {
            None => self.lease,
            Some(duration) => plan::left(since, duration, now).unwrap_or_default(),
        }
    }

    /// A link that ends meanwhile is attached again in the next round.
    pub(crate) async fn renew(
        &self,
        network: &Network,
        duration: Option<Duration>,
        shown: &Shown,
        lasts: Duration,
    ) {
        let left = shown.ends_in_s.unwrap_or_default();
        let due = match duration {
            None => left < lasts.as_secs_f64() * 0.75,
            Some(_) => (left - lasts.as_secs_f64()).abs() > SLACK.as_secs_f64(),
        };
        if due && let Err(e) = self.emud.renew(network, &shown.interface, lasts).await {
            eprintln!("emud-k8s: cannot renew a link: {e}");
        }
    }

    /// Renews the link of an entry as long as it is not known what its Link says: the API server may not
    /// answer a new agent for longer than a lease.
    pub(crate) async fn wait(&mut self, link: &Link, key: Key, entry: Option<PodLink>) {
        let mut next = self.lease / 3;
        if let Some(entry) = &entry
            && let Err(message) = self.renew_found(link, entry).await
        {
            eprintln!("emud-k8s: {key}: {message}");
            next = RETRY;
        }
        let next_check = Instant::now() + next;
        if let Some(held) = self.held.get_mut(&key) {
            held.next_check = next_check;
            held.leaves = false;
        } else if let Some(entry) = entry {
            let held = Held {
                entry,
                written: true,
                running: None,
                wanted: None,
                pod_version: None,
                leaves: false,
                next_check,
            };
            self.held.insert(key, held);
        }
    }

    async fn renew_found(&self, link: &Link, entry: &PodLink) -> Result<(), String> {
        let Some((network, shown)) = self.found(entry).await? else {
            return Ok(());
        };
        if shown.ends_in_s != Some(0.0) {
            let duration = link.spec.duration.as_deref();
            let duration = duration.and_then(|text| plan::duration(text).ok());
            let lasts = self.lasts(entry, duration, Timestamp::now());
            self.renew(&network, duration, &shown, lasts).await;
        }
        Ok(())
    }
}
