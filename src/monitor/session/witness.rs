// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the episodes of an experiment for its verdict; others see them, too.

use emud_monitor::event::{Alarm, Clear};
use tokio::sync::watch;

use super::tally::Origin;

/// The episodes so far, in the order of their alarms.
#[derive(Debug, Default)]
pub struct Episodes(pub(crate) Vec<Episode>);

impl Episodes {
    /// Returns the number of alarms.
    pub fn alarms(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns whether one has not ended, or its end has not been reported.
    pub fn any_open(&self) -> bool {
        self.0.iter().any(|episode| episode.until_mono_ns.is_none())
    }
}

/// An episode from its alarm to its clear.
#[derive(Debug, Clone)]
pub struct Episode {
    /// After a clear with shares, these are those of the whole episode.
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
        self.0.send_if_modified(|so_far| {
            let mut latest_first = so_far.0.iter_mut().rev();
            let its_own = |episode: &&mut Episode| episode.alarm.episode == clear.episode;
            let found = latest_first.find(its_own);
            found.is_some_and(|episode| {
                if !clear.shares.is_empty() {
                    episode.alarm.shares.clone_from(&clear.shares);
                }
                episode.until_mono_ns.replace(clear.until_mono_ns).is_none()
            })
        });
    }
}
