// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the episodes of an experiment for its verdict; others see them, too.

use std::time::Duration;

use emud_monitor::event::{Alarm, Clear, Share};
use tokio::sync::watch;

use super::tally::Origin;

/// Time limit for the report of an episode's end, which is detected some ticks after its cause has
/// ended.
pub const SETTLED: Duration = Duration::from_millis(500);

/// The episodes so far, in the order of their alarms.
#[derive(Debug, Default)]
pub struct Episodes(pub(crate) Vec<Episode>);

impl Episodes {
    /// Returns the number of alarms.
    pub fn alarms(&self) -> u64 {
        self.0.len() as u64
    }

    fn latest(&mut self, number: u64) -> Option<&mut Episode> {
        let mut latest_first = self.0.iter_mut().rev();
        latest_first.find(|episode| episode.alarm.episode == number)
    }

    /// Returns whether one has not ended, or its end has not been reported.
    pub fn any_open(&self) -> bool {
        self.0.iter().any(|episode| episode.until_mono_ns.is_none())
    }
}

/// An episode from its alarm to its clear.
#[derive(Debug, Clone)]
pub struct Episode {
    /// With the shares of the whole episode, as far as they are known.
    pub alarm: Alarm,
    /// `None`: it is still open.
    pub until_mono_ns: Option<u64>,
}

/// The sending end of the channel of episodes.
#[derive(Debug)]
pub struct Witness(watch::Sender<Episodes>);

impl Witness {
    /// Creates a witness that adds to the episodes of the channel.
    pub fn new(episodes: watch::Sender<Episodes>) -> Self {
        Self(episodes)
    }

    /// Returns the episodes so far; locks the channel.
    pub(crate) fn episodes(&self) -> watch::Ref<'_, Episodes> {
        self.0.borrow()
    }

    pub(crate) fn alarm(&mut self, origin: Origin, alarm: &Alarm) {
        let moment = origin == Origin::Socket;
        let episode = Episode {
            alarm: alarm.clone(),
            until_mono_ns: moment.then_some(alarm.mono_ns),
        };
        self.0.send_modify(|so_far| so_far.0.push(episode));
    }

    pub(crate) fn clear(&mut self, clear: &Clear) {
        self.shares(clear.episode, &clear.shares);
        self.0.send_if_modified(|so_far| {
            let found = so_far.latest(clear.episode);
            found
                .is_some_and(|episode| episode.until_mono_ns.replace(clear.until_mono_ns).is_none())
        });
    }

    /// Replaces the shares of an alarm, which are of the time before it, unless there are none.
    pub(crate) fn shares(&mut self, episode: u64, shares: &[Share]) {
        self.0.send_if_modified(|so_far| {
            let found = so_far.latest(episode).filter(|_| !shares.is_empty());
            if let Some(episode) = found {
                episode.alarm.shares = shares.to_vec();
            }
            false
        });
    }
}
