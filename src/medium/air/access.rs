// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channel access: when a station may send (IEEE 802.11-2020, 10.3.4).

use super::station::{Kind, Transmission};
use super::{Air, To};
use crate::medium::phy::MAC_OVERHEAD;
use crate::medium::set::{Set, members};

impl<T: Clone> Air<T> {
    /// Counts the backoff of a station that has a frame or a backoff, if its medium is idle.
    pub(super) fn contend(&mut self, station: usize) {
        let count = &self.countdown;
        if !self.wants.contains(station)
            || !self.listening.contains(station)
            || count.counting.contains(station)
        {
            return;
        }
        let has_backoff = count.drawn.contains(station);
        if self.ears.busy.contains(station) {
            if !has_backoff {
                self.draw(station);
            }
            return;
        }
        let gap_ns = match self.ears.garbled.contains(station) {
            true => self.plan.timing.eifs_ns,
            false => self.plan.timing.difs_ns,
        };
        let mut from_ns = self.ears.free_since_ns(station) + gap_ns;
        if !has_backoff {
            match from_ns <= self.now_ns {
                true => {
                    self.countdown.draw(station, 0);
                    from_ns = self.now_ns;
                }
                false => self.draw(station),
            }
        }
        self.countdown.start(station, from_ns, self.now_ns);
    }

    /// The same for those that a transmission has reached, but for its addressee, at its end.
    pub(super) fn contend_all(&mut self, reached: &Set, addressee: Option<usize>) {
        let (now_ns, timing) = (self.now_ns, &self.plan.timing);
        let [rest, plain, extended, reserved] = &mut self.contending;
        let sets = [rest, plain, extended, reserved].map(Set::words_mut);
        let [rest, plain, extended, reserved] = sets;
        let idled = self.ears.idled();
        for (n, reached) in reached.words().iter().enumerate() {
            let drawn = self.countdown.drawn.words()[n];
            // Those with a backoff and a busy medium wait.
            let waits = drawn & self.ears.busy.words()[n];
            let counting = self.countdown.counting.words()[n];
            let ready = self.wants.words()[n] & self.listening.words()[n];
            rest[n] = reached & ready & !counting & !waits;
            if let Some(to) = addressee.filter(|to| to / 64 == n) {
                rest[n] &= !(1 << (to % 64));
            }
            // Those that have become idle just now begin together.
            let Some(idled) = idled else { continue };
            let together = rest[n] & drawn & idled.all.words()[n];
            let garbled = self.ears.garbled.words()[n];
            let waits = idled.reserved.words()[n];
            plain[n] = together & !garbled & !waits;
            extended[n] = together & garbled & !waits;
            reserved[n] = together & !garbled & waits;
            rest[n] &= !(plain[n] | extended[n] | reserved[n]);
        }
        if let Some(idled) = idled {
            let [_, plain, extended, reserved] = &self.contending;
            let count = &mut self.countdown;
            count.start_all(plain, now_ns + timing.difs_ns);
            count.start_all(extended, now_ns + timing.eifs_ns);
            count.start_all(reserved, idled.until_ns + timing.difs_ns);
        }
        for n in 0..self.contending[0].words().len() {
            for station in members(n, self.contending[0].words()[n]) {
                self.contend(station);
            }
        }
    }

    /// Draws a backoff.
    pub(super) fn draw(&mut self, station: usize) {
        let this = &mut self.stations[station];
        this.backoffs += 1;
        let slots = self.chance.slots(station, this.backoffs, this.window);
        self.countdown.draw(station, slots);
        self.wants.insert(station);
    }

    /// The backoff has ended: sends the first packet, if there is any.
    pub(super) fn access(&mut self, station: usize) {
        let this = &mut self.stations[station];
        let Some(first) = this.queue.front() else {
            self.wants.remove(station);
            return;
        };
        let (to, bytes) = (first.frame.to, first.frame.bytes);
        this.count.attempts += 1;
        let data = self.data(station, to, bytes);
        let rts_bytes = self.plan.rts_bytes.filter(|_| to != To::All);
        let what = match rts_bytes.is_some_and(|least| bytes >= least) {
            true => self.rts(&data),
            false => data,
        };
        self.begin(station, what);
    }

    /// The data frame of a packet.
    pub(super) fn data(&self, station: usize, to: To, bytes: u32) -> Transmission {
        let timing = &self.plan.timing;
        let (mode, reserves_ns) = match to {
            To::All => (timing.broadcast(), 0),
            To::Station(to) => {
                let mode = self.mode_to(station, to);
                (mode, timing.sifs_ns + timing.ack_ns(mode))
            }
        };
        Transmission {
            kind: Kind::Data,
            to,
            mode,
            octets: bytes + MAC_OVERHEAD,
            lasts_ns: timing.data_ns(bytes, mode),
            reserves_ns,
        }
    }

    /// The RTS in front of a data frame.
    fn rts(&self, data: &Transmission) -> Transmission {
        let timing = &self.plan.timing;
        let cts_ns = timing.cts_ns(data.mode);
        Transmission {
            kind: Kind::Rts,
            to: data.to,
            mode: timing.control(data.mode),
            octets: timing.rts_octets(),
            lasts_ns: timing.rts_ns(data.mode),
            reserves_ns: 2 * timing.sifs_ns + cts_ns + data.lasts_ns + data.reserves_ns,
        }
    }
}
