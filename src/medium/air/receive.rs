// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a station has received, and passes on.
//!
//! A receiver of aggregates passes packets on in the order of sending: one that is missing keeps the later
//! ones until it arrives, or its sender gives it up.

use super::Air;
use super::frame::{Held, To, Waiting};
use super::station::Transmission;
use crate::medium::set::Set;

impl<T: Clone> Air<T> {
    /// Delivers the packets `passed` of a frame to a station that is not its addressee, once each.
    pub(super) fn overhear(&mut self, from: usize, to: usize, what: &Transmission, passed: u64) {
        let stations = self.stations.len();
        for n in (0..what.packets).filter(|n| passed >> n & 1 == 1) {
            let Some(packet) = self.stations[from].queue().carried(n) else {
                return;
            };
            if what.to != To::All {
                if packet.overheard == Set::default() {
                    let spare = self.spare.pop();
                    packet.overheard = spare.unwrap_or_else(|| Set::new(stations));
                }
                if packet.overheard.contains(to) {
                    continue;
                }
                packet.overheard.insert(to);
            }
            let (token, bytes) = (packet.frame.token.clone(), packet.frame.bytes);
            self.deliver(from, to, token, bytes, 0);
        }
    }

    /// Delivers the packets `passed` of a data frame to its addressee, once each and in order.
    pub(super) fn receive(&mut self, from: usize, to: usize, packets: u32, passed: u64) {
        let lane = self.stations[from].lane;
        let in_order = self.plan.aggregate == 1;
        for n in (0..packets).filter(|n| passed >> n & 1 == 1) {
            let Some(packet) = self.stations[from].queue().carried(n) else {
                return;
            };
            if std::mem::replace(&mut packet.delivered, true) {
                self.stations[to].count.duplicates += 1;
                continue;
            }
            let (token, bytes) = (packet.frame.token.clone(), packet.frame.bytes);
            if in_order {
                self.deliver(from, to, token, bytes, 0);
                continue;
            }
            let number = packet.number;
            let held = &mut self.stations[from].lanes[lane].held;
            let at = held.partition_point(|other| other.number < number);
            held.insert(
                at,
                Held {
                    to,
                    number,
                    bytes,
                    token,
                    fate: None,
                },
            );
            self.held += 1;
        }
        self.release(from, lane, to);
    }

    /// Delivers the held packets of a receiver up to the next one that is missing.
    pub(super) fn release(&mut self, from: usize, lane: usize, to: usize) {
        if self.held == 0 {
            return;
        }
        let this = &self.stations[from].lanes[lane];
        let missing =
            |packet: &&Waiting<T>| packet.frame.to == To::Station(to as u16) && !packet.delivered;
        let missing = this.queue.packets.iter().find(missing);
        let before = missing.map_or(u64::MAX, |packet| packet.number);
        let is_next = |held: &Held<T>| held.to == to && held.number < before;
        let mut n = 0;
        while let Some(held) = self.stations[from].lanes[lane].held.get(n) {
            if !is_next(held) {
                n += 1;
                continue;
            }
            let held = self.stations[from].lanes[lane].held.remove(n);
            self.held -= 1;
            self.deliver(from, to, held.token.clone(), held.bytes, 0);
            if let Some(fate) = held.fate {
                self.finished(from, held.token, fate);
            }
        }
    }
}
