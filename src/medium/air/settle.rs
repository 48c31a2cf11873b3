// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of an exchange: what leaves the queue, and how.

use super::Air;
use super::frame::{Fate, To, Waiting};
use crate::medium::set::Set;

/// Result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Broadcast, or acknowledged: what has arrived.
    Done,
    /// Data without an answer.
    Unanswered,
    /// It ended before the data.
    Refused,
}

impl<T: Clone> Air<T> {
    /// Ends the exchange of a station: packets that have arrived, or have no attempts left, leave its queue, and the
    /// rate control gets the result. Returns whether the first packet has been given up.
    pub(super) fn settle(&mut self, station: usize, lane: usize, attempt: Attempt) -> bool {
        let now_ns = self.now_ns;
        let mut aboard = std::mem::take(&mut self.stations[station].lanes[lane].queue.aboard);
        if attempt == Attempt::Refused {
            aboard.clear();
            aboard.push(0);
        }
        let (mut gone, mut sent, mut first_is_given_up) = (0, 0, false);
        for at in &aboard {
            let this = &mut self.stations[station];
            let queue = &mut this.lanes[lane].queue;
            let at = *at as usize - gone;
            let Some(packet) = queue.packets.get_mut(at) else {
                break;
            };
            let done = attempt == Attempt::Done && (packet.delivered || packet.frame.to == To::All);
            packet.tries += 1;
            let fate = match done {
                true => {
                    sent += 1;
                    this.count.sent += 1;
                    this.count.sent_bytes += u64::from(packet.frame.bytes);
                    Fate::Sent
                }
                false if packet.tries >= self.plan.attempts => {
                    this.count.given_up += 1;
                    first_is_given_up |= at == 0 && gone == 0;
                    Fate::GivenUp
                }
                false => continue,
            };
            gone += 1;
            if let Some(packet) = queue.take(at, now_ns) {
                self.leave(station, lane, packet, fate);
            }
        }
        aboard.clear();
        self.stations[station].lanes[lane].queue.aboard = aboard;
        // An RTS without an answer is no result: it has a basic rate.
        if attempt != Attempt::Refused {
            self.rate_result(station, sent);
        }
        if gone > 0 {
            self.serve(station, lane);
        }
        first_is_given_up
    }

    /// Finishes a packet that leaves the queue of its station.
    fn leave(&mut self, station: usize, lane: usize, mut packet: Waiting<T>, fate: Fate) {
        if packet.overheard != Set::default() {
            packet.overheard.clear();
            self.spare.push(packet.overheard);
        }
        let held = &mut self.stations[station].lanes[lane].held;
        match held.iter_mut().find(|held| held.number == packet.number) {
            // The caller may forget it when it is finished.
            Some(held) => held.fate = Some(fate),
            None => self.finished(station, packet.frame.token, fate),
        }
        if let (Fate::GivenUp, To::Station(to)) = (fate, packet.frame.to) {
            self.release(station, lane, usize::from(to));
        }
    }
}
