// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start and the end of a transmission, at all stations that it reaches.

use std::sync::Arc;

use super::frame::Outcome;
use super::station::{Doing, Kind, Transmission};
use super::{Air, Rank, To};
use crate::medium::phy::{Reach, Row};
use crate::medium::set::{Set, members};

impl<T: Clone> Air<T> {
    pub(super) fn begin(&mut self, station: usize, what: Transmission) {
        let matrix = Arc::clone(&self.matrix);
        let now_ns = self.now_ns;
        self.ears.begin(station, what.mode, &matrix, now_ns);
        for category in &mut self.categories {
            let senses = &matrix.signal(station).senses;
            category.countdown.freeze(senses, now_ns);
        }
        let count = &mut self.stations[station].count;
        count.air_ns += what.lasts_ns;
        if what.kind == Kind::Data {
            count.data(what.to, self.plan.timing.kbit(what.mode));
        }
        self.does(station, Doing::Sending(what));
        let end_ns = now_ns + what.lasts_ns;
        self.timers.set(station, end_ns, Rank::End);
    }

    pub(super) fn end(&mut self, station: usize) {
        self.timers.clear(station);
        match self.stations[station].doing {
            Doing::Sending(what) => {
                self.does(station, Doing::Listening);
                // Taken out for the time of the call.
                let mut decoded = std::mem::take(&mut self.decoded);
                self.end_of(station, what, &mut decoded);
                self.decoded = decoded;
            }
            // Without access control a station is never anything but listening.
            _ => self.end_plain(station),
        }
    }

    fn end_of(&mut self, station: usize, what: Transmission, decoded: &mut Set) {
        let now_ns = self.now_ns;
        let Some(matrix) = self.ears.end(station, decoded, now_ns) else {
            return;
        };
        let row = matrix.signal(station);
        let addressee = match what.to {
            To::Station(to) => Some(usize::from(to)),
            To::All => None,
        };
        let in_range = |to| row.decodes(what.mode).is_some_and(|set| set.contains(to));
        let has = |decoded: &Set| addressee.is_some_and(|to| decoded.contains(to));
        let undisturbed = has(decoded);
        // A frame without packets counts as one.
        let parts = what.packets.max(1);
        let mut passed = u64::MAX >> (64 - parts);
        match what.packets {
            _ if !row.has_errors => {}
            0 | 1 => self.check(row, what.octets, decoded),
            _ => passed = self.check_aggregate(station, row, &what, decoded),
        }
        self.ears.heard(row, decoded, &what, now_ns);
        if !has(decoded) {
            passed = 0;
        }
        if matches!(what.kind, Kind::Rts | Kind::Data) {
            let count = &mut self.stations[station].count;
            match undisturbed {
                true => count.damaged += u64::from(parts - passed.count_ones()),
                false => count.collided += u64::from(addressee.is_some_and(in_range)),
            }
        }
        // Of an aggregate with errors this is already decided.
        if what.kind == Kind::Data && (what.packets == 1 || !row.has_errors) {
            if let Some(to) = addressee {
                decoded.intersect(&self.promiscuous);
                decoded.remove(to);
            }
            decoded.for_each(|to| self.overhear(station, to, &what, u64::MAX));
        }
        // The addressee first finds out whether it has to answer.
        self.contend_all(&row.reached, addressee);
        self.ended(station, what, passed);
        if let Some(to) = addressee {
            self.contend(to);
        }
        self.contend(station);
    }

    /// Removes those whose frame has bit errors.
    fn check(&mut self, row: &Row, octets: u32, decoded: &mut Set) {
        for n in 0..decoded.words().len() {
            for station in members(n, decoded.words()[n]) {
                if !self.passes(row.at(station), octets) {
                    decoded.remove(station);
                }
            }
        }
    }

    /// Returns whether a frame has no error.
    pub(super) fn passes(&mut self, reach: &Reach, octets: u32) -> bool {
        if !reach.has_errors() {
            return true;
        }
        let station = usize::from(reach.to);
        let checks = &mut self.stations[station].checks;
        *checks += 1;
        // Of all receivers of a frame, usually.
        let same = (reach.ln_bit_kept, reach.frame_kept, octets);
        if self.kept.0 != same {
            self.kept = (same, reach.kept(octets));
        }
        self.chance.happens(station, *checks, self.kept.1)
    }

    /// Delivers a packet to a station.
    pub(super) fn deliver(&mut self, from: usize, to: usize, token: T, bytes: u32, delay_ns: u64) {
        let outcome = Outcome::Delivered {
            at_ns: self.now_ns + delay_ns,
            from,
            to,
            token,
        };
        let count = &mut self.stations[to].count;
        count.received += 1;
        count.received_bytes += u64::from(bytes);
        match delay_ns {
            0 => self.outcomes.push_back(outcome),
            _ => self.postpone(outcome, delay_ns),
        }
    }
}
