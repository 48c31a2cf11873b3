// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channel access: when a station may send (IEEE 802.11-2020, 10.3.4).

use super::station::{Kind, Transmission};
use super::{Air, Plan, To};
use crate::medium::set::{Set, members};

impl Plan {
    /// Returns whether an RTS precedes a data frame with `packets` and `octets`.
    pub(super) fn has_rts(&self, to: To, packets: u32, octets: u32) -> bool {
        let bytes = octets - packets * self.timing.overhead;
        to != To::All && self.rts_bytes.is_some_and(|least| bytes >= least)
    }
}

impl<T: Clone> Air<T> {
    /// Counts the backoffs of a station that has a frame or a backoff, if its medium is idle.
    pub(super) fn contend(&mut self, station: usize) {
        for category in 0..self.categories.len() {
            self.contend_in(station, category);
        }
    }

    /// Counts the backoff of one of its categories.
    pub(super) fn contend_in(&mut self, station: usize, category: usize) {
        let of = &self.categories[category];
        if !of.wants.contains(station)
            || !self.listening.contains(station)
            || of.countdown.counting.contains(station)
        {
            return;
        }
        let has_backoff = of.countdown.drawn.contains(station);
        if self.ears.busy.contains(station) {
            if !has_backoff {
                self.draw(station, category);
            }
            return;
        }
        let gap_ns = match self.ears.garbled.contains(station) {
            true => of.extended_gap_ns,
            false => of.gap_ns,
        };
        // EIFS counts from the end of the frame, whatever is reserved (10.3.2.3.7).
        let idle_ns = self.ears.idle_since_ns(station) + gap_ns;
        let mut from_ns = idle_ns.max(self.ears.nav_ns(station) + of.gap_ns);
        if !has_backoff {
            let lead = of.lead.into();
            let lead_ns = u64::from(lead) * self.plan.timing.slot_ns;
            match from_ns + lead_ns <= self.now_ns {
                true => {
                    from_ns = self.now_ns - lead_ns;
                    self.categories[category].countdown.draw(station, lead);
                }
                false => self.draw(station, category),
            }
        }
        let countdown = &mut self.categories[category].countdown;
        countdown.start(station, from_ns, self.now_ns);
    }

    /// Counts the backoffs of all stations that a transmission has reached, except its addressee, at its end.
    pub(super) fn contend_all(&mut self, reached: &Set, addressee: Option<usize>) {
        for category in 0..self.categories.len() {
            self.contend_all_in(category, reached, addressee);
        }
    }

    fn contend_all_in(&mut self, category: usize, reached: &Set, addressee: Option<usize>) {
        let now_ns = self.now_ns;
        let of = &mut self.categories[category];
        let [rest, plain, extended, reserved] = &mut self.contending;
        let sets = [rest, plain, extended, reserved].map(Set::words_mut);
        let [rest, plain, extended, reserved] = sets;
        let idled = self.ears.idled();
        for (n, reached) in reached.words().iter().enumerate() {
            let drawn = of.countdown.drawn.words()[n];
            // Those with a backoff and a busy medium wait.
            let waits = drawn & self.ears.busy.words()[n];
            let counting = of.countdown.counting.words()[n];
            let ready = of.wants.words()[n] & self.listening.words()[n];
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
            let count = &mut of.countdown;
            count.start_all(plain, now_ns + of.gap_ns);
            count.start_all(extended, now_ns + of.extended_gap_ns);
            count.start_all(reserved, idled.until_ns + of.gap_ns);
        }
        for n in 0..self.contending[0].words().len() {
            for station in members(n, self.contending[0].words()[n]) {
                self.contend_in(station, category);
            }
        }
    }

    /// Draws a backoff.
    pub(super) fn draw(&mut self, station: usize, category: usize) {
        let this = &mut self.stations[station];
        let of = &mut self.categories[category];
        this.backoffs += 1;
        let window = this.lanes[category].window;
        let slots = self.chance.slots(station, this.backoffs, window);
        of.countdown.draw(station, slots + u32::from(of.lead));
        of.wants.insert(station);
    }

    /// Sends the first packet, if there is any, at the end of a backoff.
    pub(super) fn access(&mut self, station: usize, category: usize) {
        let this = &mut self.stations[station];
        let of = &mut self.categories[category];
        if this.lanes[category].queue.front().is_none() {
            of.wants.remove(station);
            return;
        }
        this.lane = category;
        this.txop_end_ns = match of.txop_ns {
            0 => 0,
            txop_ns => self.now_ns + txop_ns,
        };
        let Some(data) = self.load(station, true) else {
            return;
        };
        self.stations[station].count.attempts += 1;
        let what = match self.plan.has_rts(data.to, data.packets, data.octets) {
            true => self.rts(&data),
            false => data,
        };
        self.outrun(station, category);
        self.begin(station, what);
    }

    /// Returns the RTS in front of a data frame.
    fn rts(&self, data: &Transmission) -> Transmission {
        let timing = &self.plan.timing;
        let cts_ns = timing.cts_ns(data.mode);
        Transmission {
            kind: Kind::Rts,
            to: data.to,
            mode: timing.control(data.mode),
            octets: timing.rts_octets(),
            packets: 0,
            lasts_ns: timing.rts_ns(data.mode),
            reserves_ns: 2 * timing.sifs_ns + cts_ns + data.lasts_ns + data.reserves_ns,
        }
    }
}
