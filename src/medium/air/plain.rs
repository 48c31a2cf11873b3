// SPDX-License-Identifier: MIT OR Apache-2.0
//! A medium without access control: each station has the rate for itself, full duplex.
//!
//! A frame takes its bytes at the rate and arrives after the propagation, at each receiver that
//! does not lose it and has no bit error: p = 1 - (1 - p_loss) (1 - p_b)^bits, drawn for each of
//! them.

use std::cmp::Reverse;
use std::sync::Arc;

use super::frame::{Fate, Later, Outcome, To};
use super::{Air, Rank};

impl<T: Clone> Air<T> {
    /// Sends the first packet.
    pub(super) fn send_plain(&mut self, station: usize) {
        let this = &mut self.stations[station];
        let Some(first) = this.lanes[0].queue.front() else {
            return;
        };
        let (to, bits) = (first.frame.to, 8 * u64::from(first.frame.bytes));
        let kbit = self.plan.timing.kbit(this.mode);
        let lasts_ns = (bits * 1_000_000).div_ceil(u64::from(kbit));
        this.count.attempts += 1;
        this.count.data(to, kbit);
        this.count.air_ns += lasts_ns;
        self.timers.set(station, self.now_ns + lasts_ns, Rank::End);
    }

    pub(super) fn end_plain(&mut self, station: usize) {
        let Some(first) = self.stations[station].lanes[0].queue.front() else {
            return;
        };
        let (to, bytes) = (first.frame.to, first.frame.bytes);
        let token = first.frame.token.clone();
        let mode = self.stations[station].mode;
        let matrix = Arc::clone(&self.matrix);
        let mut longest_ns = 0;
        for reach in matrix.row(station) {
            let promiscuous = self.promiscuous.contains(usize::from(reach.to));
            let concerned = to == To::All || to == To::Station(reach.to) || promiscuous;
            if concerned && reach.decodes(mode) && self.passes(reach, bytes) {
                let to = usize::from(reach.to);
                self.deliver(station, to, token.clone(), bytes, reach.delay_ns);
                longest_ns = longest_ns.max(reach.delay_ns);
            }
        }
        let this = &mut self.stations[station];
        this.count.sent += 1;
        this.count.sent_bytes += u64::from(bytes);
        this.queue().take(0, self.now_ns);
        // Behind the last delivery, so that the caller can forget the packet then.
        let finished = Outcome::Finished {
            at_ns: self.now_ns + longest_ns,
            station,
            token,
            fate: Fate::Sent,
        };
        match longest_ns {
            0 => self.outcomes.push_back(finished),
            _ => self.postpone(finished, longest_ns),
        }
        self.serve(station, 0);
        self.send_plain(station);
    }

    /// Delivers when the last bit has propagated.
    pub(super) fn postpone(&mut self, outcome: Outcome<T>, delay_ns: u64) {
        self.numbered += 1;
        self.later.push(Reverse(Later {
            at_ns: self.now_ns + delay_ns,
            number: self.numbered,
            outcome,
        }));
    }
}
