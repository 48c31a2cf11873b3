// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the episodes of an experiment for its verdict, and notifies others of them.

use emud_monitor::event::{Alarm, Clear, Resource};
use tokio::sync::watch;

use super::tally::Origin;

/// Number of alarms so far.
#[derive(Debug, Clone, Default)]
pub struct AlarmsSoFar {
    /// Alarms of resources of the host, and of applications.
    pub contention: u64,
    /// Alarms of emulated links.
    pub emulator: u64,
    pub latest: Option<Alarm>,
    /// Number of open episodes.
    pub open: u64,
}

/// An episode from its alarm to its clear.
#[derive(Debug, Clone)]
pub struct Episode {
    pub alarm: Alarm,
    /// `None`: it is still open.
    pub until_mono_ns: Option<u64>,
}

#[derive(Debug)]
pub struct Witness {
    pub(crate) episodes: Vec<Episode>,
    tell: watch::Sender<AlarmsSoFar>,
}

impl Witness {
    /// Creates a witness that sends each change to the channel.
    pub fn new(tell: watch::Sender<AlarmsSoFar>) -> Self {
        Self {
            episodes: vec![],
            tell,
        }
    }

    pub(crate) fn alarm(&mut self, origin: Origin, alarm: &Alarm) {
        let moment = origin == Origin::Socket;
        self.episodes.push(Episode {
            alarm: alarm.clone(),
            until_mono_ns: moment.then_some(alarm.mono_ns),
        });
        self.tell.send_modify(|so_far| {
            match alarm.resource {
                Resource::Emulator => so_far.emulator += 1,
                _ => so_far.contention += 1,
            }
            so_far.latest = Some(alarm.clone());
            so_far.open += u64::from(!moment);
        });
    }

    pub(crate) fn clear(&mut self, clear: &Clear) {
        let mut latest_first = self.episodes.iter_mut().rev();
        let its_own = |episode: &&mut Episode| episode.alarm.episode == clear.episode;
        if let Some(episode) = latest_first.find(its_own) {
            episode.until_mono_ns = Some(clear.until_mono_ns);
            self.tell.send_modify(|so_far| so_far.open -= 1);
        }
    }
}
