// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of a class: its limits, its manager, and what it has done so far.

use std::collections::VecDeque;

use super::aqm::{Aqm, AqmVerdict, Manager, Packet, catch_up};
use super::clock::Clock;
use super::plan::{Class, Limits, Signals};
use crate::abi::mix;

/// The two low bits of the DS field (RFC 3168): 0 if the sender does not understand marks.
const ECN: u8 = 3;

/// Counts of a class so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassCount {
    /// Packets whose transmission has begun.
    pub sent_packets: u64,
    /// Bytes of these packets, on the wire.
    pub sent_bytes: u64,
    /// Of the packets sent, those that were marked.
    pub marked: u64,
    /// Dropped because the queue was full in packets or bytes.
    pub full: u64,
    /// Dropped because they would have waited for longer than the queue's time.
    pub expired: u64,
    /// Dropped by the manager.
    pub managed: u64,
    /// Time from arrival to transmission: its sum and the longest, ns.
    pub wait_ns: u64,
    /// The longest time from arrival to transmission, ns.
    pub longest_wait_ns: u64,
    /// Packets that wait now.
    pub backlog_packets: u64,
    /// Bytes waiting now.
    pub backlog_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Queue<T> {
    pub limits: Limits,
    pub waiting: VecDeque<Waiting<T>>,
    pub expiry: Option<u64>,
    pub count: ClassCount,
    /// Its last packet is on the wire until then.
    pub sent: Clock,
    /// Bytes of that packet.
    sent_bytes: u64,
    signals: Signals,
    /// Begins with the first packet.
    manager: Option<Manager>,
    /// The manager knows of idle time until then, ns.
    idle_until: u64,
    seed: u64,
    /// Packets so far.
    arrived: u64,
}

#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub token: T,
    pub arrival_ns: u64,
    pub bytes: u32,
    /// DS field.
    pub ds: u8,
    pub marked: bool,
    pub number: u64,
}

impl<T> Queue<T> {
    pub fn new(class: &Class, seed: u64) -> Self {
        Self {
            limits: class.limits,
            waiting: VecDeque::new(),
            expiry: None,
            count: ClassCount::default(),
            sent: Clock::default(),
            sent_bytes: 0,
            signals: class.signals,
            manager: None,
            idle_until: 0,
            seed,
            arrived: 0,
        }
    }

    pub fn change(&mut self, class: &Class, now_ns: u64) {
        self.limits = class.limits;
        self.signals = class.signals;
        match (&mut self.manager, class.signals) {
            (Some(manager), Signals::Managed { by, .. }) => manager.change(by, now_ns),
            (manager, _) => *manager = None,
        }
        self.recount(now_ns);
    }

    /// Lets the manager count what waits.
    fn recount(&mut self, now_ns: u64) {
        if let Some(manager) = &mut self.manager {
            manager.recount(&mut self.waiting.iter().map(|p| known(p, now_ns, false)));
        }
    }

    /// Returns whether a packet finds no room, in front of a wire of this rate.
    pub fn is_full(&self, bytes: u32, now_ns: u64, rate: u64) -> bool {
        let packets = self.waiting.len() + usize::from(self.sent.at_ns > now_ns);
        let above = |limit| self.backlog(now_ns, rate) + u64::from(bytes) > limit;
        let limits = &self.limits;
        (limits.packets).is_some_and(|limit| packets >= limit as usize)
            || limits.bytes.is_some_and(above)
    }

    /// Returns the manager's verdict on an arriving packet.
    pub fn judge_arrival(
        &mut self,
        packet: &Waiting<T>,
        full: bool,
        now_ns: u64,
        rate: u64,
    ) -> AqmVerdict {
        self.arrived += 1;
        let Signals::Managed { by, marks } = self.signals else {
            return AqmVerdict::Pass;
        };
        if self.manager.is_none() {
            // The queue may be filled: it had no manager before a change.
            self.manager = Some(by.start(now_ns));
            self.recount(now_ns);
        }
        self.catch_up(now_ns, rate);
        let backlog = self.backlog(now_ns, rate);
        let idle_ns = match backlog {
            0 => now_ns.saturating_sub(self.sent.at_ns.max(self.idle_until)),
            _ => 0,
        };
        // Also if the packet is dropped, so that the server stays idle.
        self.idle_until = now_ns;
        let packet = Packet {
            idle_ns,
            full,
            draw: mix(self.seed ^ mix(self.arrived)),
            ..known(packet, now_ns, marks)
        };
        let judge = |manager: &mut Manager| manager.arrive(&packet, backlog);
        self.manager.as_mut().map_or(AqmVerdict::Pass, judge)
    }

    /// Returns the manager's verdict on the first packet, which has been taken out to be sent.
    pub fn judge_departure(&mut self, packet: &Waiting<T>, now_ns: u64) -> AqmVerdict {
        let marks = match self.signals {
            Signals::None => return AqmVerdict::Pass,
            Signals::MarkAbove(ns) => {
                let long = now_ns.saturating_sub(packet.arrival_ns) > ns;
                return match long && packet.ds & ECN != 0 {
                    true => AqmVerdict::Mark,
                    false => AqmVerdict::Pass,
                };
            }
            Signals::Managed { marks, .. } => marks,
        };
        let backlog = self.count.backlog_bytes;
        let packet = Packet {
            sojourn_ns: now_ns.saturating_sub(packet.arrival_ns),
            ..known(packet, now_ns, marks)
        };
        let judge = |manager: &mut Manager| manager.depart(&packet, backlog);
        self.manager.as_mut().map_or(AqmVerdict::Pass, judge)
    }

    /// Makes the due updates of the manager before the queue changes.
    pub fn catch_up(&mut self, now_ns: u64, rate: u64) {
        let (waiting, sent, most) = (self.count.backlog_bytes, self.sent, self.sent_bytes);
        if let Some(manager) = &mut self.manager {
            catch_up(manager, now_ns, |at| {
                waiting + sent.bytes_left(at, rate).min(most)
            });
        }
    }

    /// Returns the bytes not yet sent. Of the last packet at most its own: the end of a paced one is not known,
    /// and one that began at a lower rate takes longer than the bytes that are left of it.
    fn backlog(&self, now_ns: u64, rate: u64) -> u64 {
        let left = self.sent.bytes_left(now_ns, rate).min(self.sent_bytes);
        self.count.backlog_bytes + left
    }

    pub fn push(&mut self, packet: Waiting<T>) {
        self.count.backlog_bytes += u64::from(packet.bytes);
        self.waiting.push_back(packet);
    }

    pub fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.waiting.pop_front()?;
        self.count.backlog_bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    /// Counts the first packet, which has waited too long and was taken out.
    pub fn expired(&mut self, packet: &Waiting<T>, now_ns: u64) {
        self.count.expired += 1;
        if let Some(manager) = &mut self.manager {
            manager.discard(&known(packet, now_ns, false));
        }
    }

    /// Counts a packet that is on the wire until `wire`.
    pub fn sent(&mut self, packet: &Waiting<T>, now_ns: u64, wire: Clock) {
        self.sent = wire;
        self.sent_bytes = packet.bytes.into();
        let count = &mut self.count;
        let wait_ns = now_ns.saturating_sub(packet.arrival_ns);
        count.sent_packets += 1;
        count.sent_bytes += u64::from(packet.bytes);
        count.marked += u64::from(packet.marked);
        count.wait_ns += wait_ns;
        count.longest_wait_ns = count.longest_wait_ns.max(wait_ns);
    }
}

fn known<T>(packet: &Waiting<T>, now_ns: u64, marks: bool) -> Packet {
    Packet {
        now_ns,
        size: packet.bytes.into(),
        dscp: packet.ds >> 2,
        capable: marks && packet.ds & ECN != 0,
        ..Packet::default()
    }
}
