// SPDX-License-Identifier: MIT OR Apache-2.0
//! A class of a tree, with what waits in it.

use super::netem::Netem;
use super::tc_handle::{major, of_qdisc};
use super::tc_made::Made;
use super::tc_queue::Queue;
use crate::convert::netem::{MOST_QUEUED, USUAL_LIMIT, on_their_way};
use crate::profile::DEFAULT_QUEUE_PACKETS;
use crate::text::At;

/// A class.
#[derive(Default)]
pub(super) struct Class {
    pub at: At,
    /// As in `1:10`.
    pub id: String,
    pub parent: Option<String>,
    pub priority: Option<u32>,
    pub weight: Option<u64>,
    pub rate: Option<u64>,
    pub ceil: Option<u64>,
    /// Bytes of a turn in htb.
    pub quantum: u64,
    pub queue: Queue,
    pub queue_at: At,
    pub netem: Option<Netem>,
}

impl Class {
    /// Returns whether a qdisc is directly below.
    pub fn holds(&self, made: &Made) -> bool {
        let parent = made.parent.as_deref();
        !made.is_class && parent.is_some_and(|parent| of_qdisc(parent, major(&self.id)) == self.id)
    }

    /// Sets the queue of a class from the limit of its netem, which packets in flight use, too.
    pub fn waits_in_netem(&mut self) {
        let Some(netem) = self.netem.as_mut().filter(|netem| netem.rate.is_none()) else {
            return;
        };
        // tc prints the default, too.
        let limit = (netem.limit.as_ref()).map_or(USUAL_LIMIT, |limit| limit.value);
        if limit == 0 {
            return;
        }
        let rate = self.rate.or(self.ceil).unwrap_or(0);
        let waiting = u64::from(limit).saturating_sub(on_their_way(rate, netem.latency_ns));
        let waiting = waiting.clamp(1, MOST_QUEUED.into()) as u32;
        self.queue.packets = Some(waiting).filter(|packets| *packets != DEFAULT_QUEUE_PACKETS);
        netem.class_rate = Some(rate);
    }
}
