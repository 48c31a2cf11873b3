// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a frame carries: a packet, or several in an A-MPDU after one preamble, with one block
//! acknowledgement (IEEE 802.11-2020, 9.7 and 10.25).
//!
//! Each packet of an aggregate has its own bit errors, and only those that did not arrive are sent again.

use super::Air;
use super::frame::{Held, To, Waiting};
use super::queue::Queue;
use super::station::{Kind, Transmission};
use crate::medium::phy::Row;
use crate::medium::set::{Set, members};

/// Packets in one aggregate at most: the window of a block acknowledgement.
pub const MOST_PACKETS: u32 = 64;

/// Packets in a frame without aggregation.
pub(super) fn none() -> u32 {
    1
}

const MOST_OCTETS: u32 = 65_535;
/// Longest duration that the header decoded by all stations can announce: 1,366 symbols of 4 us after 20 us.
const LONGEST_NS: u64 = 5_484_000;
/// In front of each packet.
const DELIMITER: u32 = 4;

impl<T> Queue<T> {
    /// Chooses what the next frame carries: the first packet, and others for the same station, as long as
    /// they fit. Returns their number and octets.
    fn load(&mut self, overhead: u32, most: u32, fits: impl Fn(u32, u32) -> bool) -> (u32, u32) {
        self.aboard.clear();
        let Some(to) = self.packets.front().map(|first| first.frame.to) else {
            return (0, 0);
        };
        let same = |(_, packet): &(usize, &Waiting<T>)| packet.frame.to == to;
        let same = self.packets.iter().enumerate().filter(same);
        let (mut octets, mut filled_up) = (0, 0);
        for (n, packet) in same.take(most.max(1) as usize) {
            let last = packet.frame.bytes + overhead;
            // The last one is not filled up to a multiple of 4, and a single one has no delimiter.
            let with_it = match self.aboard.is_empty() {
                true => last,
                false => filled_up + DELIMITER + last,
            };
            let packets = self.aboard.len() as u32 + 1;
            if packets > 1 && !fits(packets, with_it) {
                break;
            }
            octets = with_it;
            filled_up += DELIMITER + last.next_multiple_of(4);
            self.aboard.push(n as u32);
        }
        (self.aboard.len() as u32, octets)
    }

    /// Returns the `n`-th packet of the frame that is on air.
    pub(super) fn carried(&mut self, n: u32) -> Option<&mut Waiting<T>> {
        let at = *self.aboard.get(n as usize)?;
        self.packets.get_mut(at as usize)
    }
}

impl<T: Clone> Air<T> {
    /// Returns the next data frame of a station, the first one of its time or not. If it has several packets, it
    /// ends with its answer within that time.
    pub(super) fn load(&mut self, station: usize, is_first: bool) -> Option<Transmission> {
        let first = self.stations[station].queue().front()?;
        let (to, tries) = (first.frame.to, first.tries);
        let (mode, alone) = match to {
            To::All => (self.plan.timing.broadcast(), true),
            To::Station(to) => self.mode_to(station, to, tries),
        };
        let timing = &self.plan.timing;
        let this = &self.stations[station];
        let held = &this.lanes[this.lane].held;
        let most = match alone || !timing.aggregates(mode) {
            true => 1,
            // Packets that are acknowledged, and held after the first packet, are in the window, too.
            false => {
                let left =
                    |held: &&Held<T>| held.fate.is_some() && To::Station(held.to as u16) == to;
                let left = held.iter().filter(left).count() as u32;
                self.plan.aggregate.min(MOST_PACKETS.saturating_sub(left))
            }
        };
        let left_ns = match this.txop_end_ns {
            0 => u64::MAX,
            end_ns => {
                let behind_ns = timing.sifs_ns + timing.longest_answer_ns();
                end_ns.saturating_sub(self.now_ns + behind_ns)
            }
        };
        let in_front_ns = |packets, octets| match is_first {
            true if self.plan.has_rts(to, packets, octets) => {
                timing.rts_ns(mode) + timing.cts_ns(mode) + 2 * timing.sifs_ns
            }
            true => 0,
            false => timing.sifs_ns,
        };
        let fits = |packets, octets| {
            let lasts_ns = timing.frame_ns(octets, mode);
            octets <= MOST_OCTETS
                && lasts_ns <= LONGEST_NS
                && in_front_ns(packets, octets) + lasts_ns <= left_ns
        };
        let queue = self.stations[station].queue();
        let (packets, octets) = queue.load(timing.overhead, most, fits);
        let reserves_ns = match to {
            To::All => 0,
            To::Station(_) => timing.sifs_ns + timing.answer_ns(mode, packets),
        };
        let data = Transmission {
            kind: Kind::Data,
            to,
            mode,
            octets,
            packets,
            lasts_ns: timing.frame_ns(octets, mode),
            reserves_ns,
        };
        self.stations[station].data = data;
        Some(data)
    }

    /// Returns which packets of an aggregate its addressee has, one bit for each. Stations that have none of them are
    /// removed.
    pub(super) fn check_aggregate(
        &mut self,
        station: usize,
        row: &Row,
        what: &Transmission,
        decoded: &mut Set,
    ) -> u64 {
        let mut of_addressee = 0;
        for n in 0..decoded.words().len() {
            for to in members(n, decoded.words()[n]) {
                let is_addressee = what.to == To::Station(to as u16);
                let needs_all = is_addressee || self.promiscuous.contains(to);
                let mut passed = 0_u64;
                for packet in 0..what.packets {
                    let carried = self.stations[station].queue().carried(packet);
                    let Some(bytes) = carried.map(|packet| packet.frame.bytes) else {
                        break;
                    };
                    let octets = bytes + self.plan.timing.overhead;
                    passed |= u64::from(self.passes(row.at(to), octets)) << packet;
                    if passed != 0 && !needs_all {
                        break;
                    }
                }
                if passed == 0 {
                    decoded.remove(to);
                } else if is_addressee {
                    of_addressee = passed;
                } else if needs_all {
                    self.overhear(station, to, what, passed);
                }
            }
        }
        of_addressee
    }

    /// Goes on within its time, if there is enough of it for the next packet.
    pub(super) fn goes_on(&mut self, station: usize) -> bool {
        let sifs_ns = self.plan.timing.sifs_ns;
        let left_ns = self.stations[station]
            .txop_end_ns
            .saturating_sub(self.now_ns);
        if left_ns == 0 {
            return false;
        }
        let Some(data) = self.load(station, false) else {
            return false;
        };
        let fits = sifs_ns + data.lasts_ns + data.reserves_ns <= left_ns;
        if fits {
            self.stations[station].count.attempts += 1;
            self.follow(station, data);
        } else {
            self.stations[station].queue().aboard.clear();
        }
        fits
    }
}
