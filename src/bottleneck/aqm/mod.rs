// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: drops or marks before a queue is full.
//!
//! No clock, no queue and no generator of random numbers: the owner of a queue reports arrivals and
//! departures and says when they are, so the same packets and draws give the same verdicts. All
//! arithmetic is in integers and specified, where it rounds, beside it.
//!
//! Lengths (`size`, `backlog`, and the figures of a manager) are in one unit that the owner of the
//! queue chooses: bytes on the wire of a queue whose packets wait, ns of the wire of a queue that is
//! a clock. They are below 2^33; longer ones count as that.

mod ared;
mod choice;
mod codel;
mod fixed;
mod pi;
mod pie;
mod red;
mod rem;
mod rio;
#[cfg(test)]
mod tests;

pub use ared::{Ared, Figures as AredFigures};
pub use choice::{Choice, Manager};
pub use codel::{CoDel, Figures as CoDelFigures};
pub use fixed::{Gains, probability};
pub use pi::{Figures as PiFigures, Pi};
pub use pie::{Figures as PieFigures, Pie, gain as pie_gain};
pub use red::{AverageFigures, Figures as RedFigures, Red};
pub use rem::{Figures as RemFigures, Rem};
pub use rio::{Figures as RioFigures, Rio};

/// The facts about an arriving or leaving packet that a manager uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Packet {
    /// Time of the arrival or departure, ns.
    pub now_ns: u64,
    /// Length on the wire, bytes.
    pub size: u64,
    /// How long it has waited, when it leaves.
    pub sojourn_ns: u64,
    /// ns for which the server was idle; 0 if the packet finds a backlog.
    pub idle_ns: u64,
    /// Six bits; 0 of a packet without.
    pub dscp: u8,
    /// Its sender understands marks, and they are wanted.
    pub capable: bool,
    /// The queue has no room for it, whatever the verdict.
    pub full: bool,
    /// Uniform over all 64 bits, and independent of all others.
    pub draw: u64,
}

/// A manager's verdict on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AqmVerdict {
    /// It is queued or sent.
    Pass,
    /// As congestion experienced; it passes.
    Mark,
    /// It is dropped.
    Drop,
}

/// A manager of one queue.
pub trait Aqm {
    /// Returns when to call [`Aqm::update`] next; `None`: never.
    fn due_ns(&self) -> Option<u64> {
        None
    }

    /// Updates the probability at the moment of [`Aqm::due_ns`]. [`catch_up`] calls it as often as due.
    fn update(&mut self, _backlog: u64) {}

    /// Makes all updates up to and with `now_ns` at once, after many of a backlog that stays the same.
    fn skip(&mut self, _now_ns: u64, _backlog: u64) {}

    /// Judges an arriving packet, which finds this backlog. Called for each, in order of time.
    fn arrive(&mut self, _packet: &Packet, _backlog: u64) -> AqmVerdict {
        AqmVerdict::Pass
    }

    /// Judges a packet that is about to be sent and leaves this backlog behind it. After a drop the next one
    /// follows with the same time.
    fn depart(&mut self, _packet: &Packet, _backlog: u64) -> AqmVerdict {
        AqmVerdict::Pass
    }

    /// Counts the waiting packets, after a change of its figures or if it is new to a queue.
    fn recount(&mut self, _waiting: &mut dyn Iterator<Item = Packet>) {}

    /// Forgets a packet that was let in and leaves the queue without being sent.
    fn discard(&mut self, _packet: &Packet) {}
}

/// Updates made up for one by one; after these, the backlog is taken to stay what it is.
const UPDATES: u32 = 1024;

/// Makes the updates due up to and with `now_ns`. `backlog` returns the length of the queue in bytes at a
/// moment since the last call.
pub fn catch_up(manager: &mut dyn Aqm, now_ns: u64, backlog: impl Fn(u64) -> u64) {
    for _ in 0..UPDATES {
        match manager.due_ns().filter(|due_ns| *due_ns <= now_ns) {
            Some(due_ns) => manager.update(backlog(due_ns)),
            None => return,
        }
    }
    if manager.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
        manager.skip(now_ns, backlog(now_ns));
    }
}

/// Returns how many updates are due at `now_ns`, one at least.
fn updates_due(next_ns: u64, tupdate_ns: u64, now_ns: u64) -> u64 {
    now_ns.saturating_sub(next_ns) / tupdate_ns.max(1) + 1
}

/// Returns a signal of congestion on this packet, in the form its sender understands.
fn signal(packet: &Packet, wanted: bool) -> AqmVerdict {
    match (wanted, packet.capable) {
        (false, _) => AqmVerdict::Pass,
        (true, false) => AqmVerdict::Drop,
        (true, true) => AqmVerdict::Mark,
    }
}
