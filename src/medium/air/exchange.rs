// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of an exchange: RTS, CTS, data, ACK, and what happens without an answer
//! (IEEE 802.11-2020, 10.3.2).

use super::frame::To;
use super::settle::Attempt;
use super::station::{Doing, Kind, Transmission};
use super::{Air, Rank};

impl<T: Clone> Air<T> {
    /// Takes the end of a transmission. `passed`: the packets that its addressee has decoded, one bit for each; one
    /// bit for a frame without packets.
    pub(super) fn ended(&mut self, station: usize, what: Transmission, passed: u64) {
        let timing = &self.plan.timing;
        let To::Station(to) = what.to else {
            self.succeed(station);
            return;
        };
        let (to, reached) = (usize::from(to), passed != 0);
        match what.kind {
            Kind::Rts => {
                let patience_ns = timing.sifs_ns + timing.cts_ns(what.mode) + timing.slot_ns;
                self.wait_for(station, Kind::Cts, patience_ns);
                if reached && !self.ears.is_reserved(to, self.now_ns) {
                    self.answer_later(to, self.cts(station, &what));
                }
            }
            Kind::Data => {
                let answer_ns = timing.sifs_ns + timing.answer_ns(what.mode, what.packets);
                // Long enough for an ACK; a block acknowledgement may last longer.
                let patience_ns = timing.ack_timeout_ns().max(answer_ns);
                self.wait_for(station, Kind::Ack, patience_ns);
                if reached {
                    self.receive(station, to, what.packets, passed);
                    self.answer_later(to, self.ack(station, &what));
                }
            }
            Kind::Cts if reached && self.awaits(to, Kind::Cts) => {
                self.answer_later(to, self.stations[to].data);
            }
            Kind::Ack if reached && self.awaits(to, Kind::Ack) => self.succeed(to),
            Kind::Cts | Kind::Ack => {}
        }
    }

    fn cts(&self, to: usize, rts: &Transmission) -> Transmission {
        let timing = &self.plan.timing;
        let lasts_ns = timing.cts_ns(rts.mode);
        Transmission {
            kind: Kind::Cts,
            to: To::Station(to as u16),
            mode: rts.mode,
            octets: timing.cts_octets(),
            packets: 0,
            lasts_ns,
            reserves_ns: rts.reserves_ns.saturating_sub(timing.sifs_ns + lasts_ns),
        }
    }

    fn ack(&self, to: usize, data: &Transmission) -> Transmission {
        let timing = &self.plan.timing;
        Transmission {
            kind: Kind::Ack,
            to: To::Station(to as u16),
            mode: timing.control(data.mode),
            octets: timing.answer_octets(data.packets),
            packets: 0,
            lasts_ns: timing.answer_ns(data.mode, data.packets),
            reserves_ns: 0,
        }
    }

    fn wait_for(&mut self, station: usize, answer: Kind, patience_ns: u64) {
        self.does(station, Doing::Awaiting(answer));
        let at_ns = self.now_ns + patience_ns;
        self.timers.set(station, at_ns, Rank::Timeout);
    }

    fn awaits(&self, station: usize, answer: Kind) -> bool {
        matches!(self.stations[station].doing, Doing::Awaiting(kind) if kind == answer)
    }

    /// Sends after SIFS, whatever the medium is. A station that still waits for an answer has not
    /// got it: any other frame for it ends its exchange.
    fn answer_later(&mut self, station: usize, what: Transmission) {
        match self.stations[station].doing {
            Doing::Awaiting(answer) => {
                self.timers.clear(station);
                if what.kind != Kind::Data {
                    self.fail(station, answer);
                }
            }
            Doing::Sending(_) | Doing::Answering(_) => return,
            _ => {}
        }
        for category in 0..self.categories.len() {
            self.suspend(station, category);
        }
        self.follow(station, what);
    }

    /// Sends after SIFS.
    pub(super) fn follow(&mut self, station: usize, what: Transmission) {
        self.does(station, Doing::Answering(what));
        let at_ns = self.now_ns + self.plan.timing.sifs_ns;
        self.timers.set(station, at_ns, Rank::Answer);
    }

    /// Sends the answer of a station when SIFS has passed.
    pub(super) fn answer(&mut self, station: usize) {
        if let Doing::Answering(what) = self.stations[station].doing {
            self.begin(station, what);
        }
    }

    /// Ends the wait for an answer that did not arrive in time. DIFS counts from now on, as at the stations that could
    /// not decode the frame; EIFS behind a longer frame of another station goes on.
    pub(super) fn time_out(&mut self, station: usize) {
        let Doing::Awaiting(answer) = self.stations[station].doing else {
            return;
        };
        self.ears.reserve(station, self.now_ns);
        self.fail(station, answer);
        self.contend(station);
    }

    /// Counts an attempt whose answer has not arrived.
    fn fail(&mut self, station: usize, answer: Kind) {
        let attempt = match answer {
            Kind::Ack => Attempt::Unanswered,
            _ => Attempt::Refused,
        };
        self.does(station, Doing::Listening);
        let this = &mut self.stations[station];
        this.count.failed += 1;
        let lane = this.lane;
        let given_up = self.missed(station, lane, attempt);
        self.stations[station].count.retried += u64::from(!given_up);
    }

    /// Draws a backoff from a window twice as long, after a failed attempt. Returns whether the first packet has
    /// been given up.
    pub(super) fn missed(&mut self, station: usize, lane: usize, attempt: Attempt) -> bool {
        let given_up = self.settle(station, lane, attempt);
        let of = &self.categories[lane];
        let window = &mut self.stations[station].lanes[lane].window;
        *window = match given_up {
            true => of.cw_min,
            false => (2 * *window + 1).min(of.cw_max),
        };
        self.draw(station, lane);
        given_up
    }

    /// Ends a successful exchange. A backoff follows, with or without another packet, unless the station may go on.
    fn succeed(&mut self, station: usize) {
        self.timers.clear(station);
        self.does(station, Doing::Listening);
        let lane = self.stations[station].lane;
        self.settle(station, lane, Attempt::Done);
        self.stations[station].lanes[lane].window = self.categories[lane].cw_min;
        if !self.goes_on(station) {
            self.draw(station, lane);
        }
    }
}
