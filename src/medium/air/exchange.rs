// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of an exchange: RTS, CTS, data, ACK, and what happens without an answer
//! (IEEE 802.11-2020, 10.3.2).

use super::frame::{Fate, To};
use super::station::{Doing, Kind, Transmission};
use super::{Air, Rank};

impl<T: Clone> Air<T> {
    /// A transmission has ended; `reached`: its addressee has decoded it.
    pub(super) fn ended(&mut self, station: usize, what: Transmission, reached: bool) {
        let timing = &self.plan.timing;
        let To::Station(to) = what.to else {
            self.succeed(station);
            return;
        };
        let to = usize::from(to);
        match what.kind {
            Kind::Rts => {
                let cts_ns = timing.frame_ns(timing.answer_octets(), what.mode);
                let patience_ns = timing.sifs_ns + cts_ns + timing.slot_ns;
                self.wait_for(station, Kind::Cts, patience_ns);
                if reached && !self.ears.is_reserved(to, self.now_ns) {
                    self.answer_later(to, self.cts(station, &what));
                }
            }
            Kind::Data => {
                self.wait_for(station, Kind::Ack, timing.ack_timeout_ns());
                if reached {
                    self.receive(station, to);
                    self.answer_later(to, self.ack(station, &what));
                }
            }
            Kind::Cts if reached && self.awaits(to, Kind::Cts) => {
                if let Some(first) = self.stations[to].queue.front() {
                    let data = self.data(to, first.frame.to, first.frame.bytes);
                    self.answer_later(to, data);
                }
            }
            Kind::Ack if reached && self.awaits(to, Kind::Ack) => {
                self.rate_result(to, true);
                self.succeed(to);
            }
            Kind::Cts | Kind::Ack => {}
        }
    }

    fn cts(&self, to: usize, rts: &Transmission) -> Transmission {
        let timing = &self.plan.timing;
        let lasts_ns = timing.frame_ns(timing.answer_octets(), rts.mode);
        Transmission {
            kind: Kind::Cts,
            to: To::Station(to as u16),
            mode: rts.mode,
            octets: timing.answer_octets(),
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
            octets: timing.answer_octets(),
            lasts_ns: timing.ack_ns(data.mode),
            reserves_ns: 0,
        }
    }

    /// The addressee has a data frame: once for each packet.
    fn receive(&mut self, from: usize, to: usize) {
        let first = self.stations[from].queue.front_mut();
        if first.is_some_and(|first| std::mem::replace(&mut first.delivered, true)) {
            self.stations[to].count.duplicates += 1;
        } else {
            self.deliver(from, to, 0);
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
        self.countdown.suspend(station, self.now_ns);
        self.does(station, Doing::Answering(what));
        let at_ns = self.now_ns + self.plan.timing.sifs_ns;
        self.timers.set(station, at_ns, Rank::Answer);
    }

    /// SIFS has passed.
    pub(super) fn answer(&mut self, station: usize) {
        if let Doing::Answering(what) = self.stations[station].doing {
            self.begin(station, what);
        }
    }

    /// No answer in time. Gaps count from now on, as for those who could not decode the frame.
    pub(super) fn time_out(&mut self, station: usize) {
        let Doing::Awaiting(answer) = self.stations[station].doing else {
            return;
        };
        self.ears.reserve(station, self.now_ns);
        self.fail(station, answer);
        self.contend(station);
    }

    /// This answer has not come.
    fn fail(&mut self, station: usize, answer: Kind) {
        if answer == Kind::Ack {
            self.rate_result(station, false);
        }
        self.does(station, Doing::Listening);
        let this = &mut self.stations[station];
        this.tries += 1;
        this.count.failed += 1;
        if this.tries >= self.plan.attempts {
            this.count.given_up += 1;
            self.renew(station, Fate::GivenUp);
            return;
        }
        this.window = (2 * this.window + 1).min(self.plan.timing.cw_max);
        self.draw(station);
    }

    fn succeed(&mut self, station: usize) {
        self.timers.clear(station);
        self.does(station, Doing::Listening);
        let this = &mut self.stations[station];
        this.count.sent += 1;
        let bytes = this.queue.front().map_or(0, |first| first.frame.bytes);
        this.count.sent_bytes += u64::from(bytes);
        self.renew(station, Fate::Sent);
    }

    /// The first packet leaves; a backoff follows, whether there is another one or not.
    fn renew(&mut self, station: usize, fate: Fate) {
        let this = &mut self.stations[station];
        this.tries = 0;
        this.window = self.plan.timing.cw_min;
        if let Some(first) = this.queue.pop(self.now_ns) {
            self.finished(station, first.frame.token, fate);
        }
        self.serve(station);
        self.draw(station);
    }
}
