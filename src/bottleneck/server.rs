// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a server: arrivals, changes of classes, transmissions.

use std::collections::VecDeque;

use super::aqm::AqmVerdict;
use super::clock::{Clock, duration};
use super::plan::Plan;
use super::queue::{ClassCount, Queue, Waiting};
use super::sorted::Sorted;
use super::tree::{Head, Tree};
use crate::abi::mix;

/// A server with its queues; `T` is what the caller knows a packet by.
#[derive(Debug)]
pub struct Server<T> {
    plan: Plan,
    tree: Tree,
    queues: Vec<Queue<T>>,
    /// Handed over, and yet to arrive, by stamp, then by the order of handing over.
    arrivals: VecDeque<Coming<T>>,
    /// Packets admitted so far.
    admitted: u64,
    /// When the head of each queue with a limit in time has waited too long.
    expiries: Sorted<(u64, usize)>,
    /// The wire is busy until then.
    wire: Clock,
    /// The caller reports when the wire is free again; of which class the packet on it is.
    is_paced: bool,
    on_wire: Option<usize>,
    /// All that happens before is decided.
    now_ns: u64,
}

/// A packet that is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Time of arrival, ns.
    pub at_ns: u64,
    /// Without classes below it.
    pub class: usize,
    /// On the wire.
    pub bytes: u32,
    /// DS field: DSCP and ECN bits; 0 of a packet without.
    pub ds: u8,
}

/// The decision on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<T> {
    /// It gets its time on the wire.
    Served(Served<T>),
    /// It never gets to the wire.
    Dropped(Dropped<T>),
}

/// A packet with its time on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<T> {
    /// The caller's mark of the packet.
    pub token: T,
    /// Index of its class.
    pub class: usize,
    /// Time of arrival, ns.
    pub arrival_ns: u64,
    /// Time of its first bit on the wire, ns.
    pub start_ns: u64,
    /// The last bit is sent; on a paced wire the end of time.
    pub finish_ns: u64,
    /// It is to signal congestion.
    pub marked: bool,
}

/// A packet that never gets to the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<T> {
    /// The caller's mark of the packet.
    pub token: T,
    /// Index of its class.
    pub class: usize,
    /// Time of the drop, ns.
    pub at_ns: u64,
    /// Why it was dropped.
    pub cause: Cause,
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No room in packets or bytes at arrival.
    Full,
    /// It would wait for longer than the limit in time.
    Expired,
    /// By the manager of the queue.
    Managed,
}

#[derive(Debug)]
struct Coming<T> {
    class: usize,
    packet: Waiting<T>,
}

/// The next thing to happen; at one moment in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Expiry,
    Timer,
    Arrival,
    Transmission,
}

impl<T> Server<T> {
    /// Returns an idle server.
    pub fn new(plan: &Plan) -> Self {
        let queue = |(index, class)| Queue::new(class, mix(plan.seed ^ mix(index)));
        Self {
            plan: plan.clone(),
            tree: Tree::new(plan),
            queues: (1..).zip(&plan.classes).map(queue).collect(),
            arrivals: VecDeque::new(),
            admitted: 0,
            expiries: Sorted::default(),
            wire: Clock::default(),
            is_paced: false,
            on_wire: None,
            now_ns: 0,
        }
    }

    /// Returns a server in front of a wire whose packets last until [`Server::finish`], such as a
    /// radio. The plan's rate is that of its managers and ceilings.
    pub fn paced(plan: &Plan) -> Self {
        Self {
            is_paced: true,
            ..Self::new(plan)
        }
    }

    /// Frees a paced wire: its packet has been sent or given up at `at_ns`.
    pub fn finish(&mut self, at_ns: u64) {
        if let Some(class) = self.on_wire.take() {
            self.wire = Clock::default();
            self.wire.raise(at_ns);
            self.queues[class].sent = self.wire;
        }
    }

    /// Changes the figures of the same classes, for all that is not yet decided on at `at_ns`. Packets stay, and
    /// the same figures change nothing.
    pub fn change(&mut self, plan: &Plan, at_ns: u64) {
        if self.plan == *plan {
            return;
        }
        if self.plan.rate != plan.rate {
            self.wire.drop_rest();
            for queue in &mut self.queues {
                queue.sent.drop_rest();
            }
        }
        self.plan = plan.clone();
        for (queue, class) in self.queues.iter_mut().zip(&plan.classes) {
            queue.change(class, self.now_ns);
        }
        self.tree.change(plan, self.now_ns, at_ns.max(self.now_ns));
        for class in 0..self.queues.len() {
            self.watch(class);
        }
    }

    /// Hands over a packet. One that arrived before what is decided already counts from there on:
    /// false.
    pub fn arrive(&mut self, arrival: Arrival, token: T) -> bool {
        let packet = Waiting {
            token,
            arrival_ns: arrival.at_ns,
            bytes: arrival.bytes,
            ds: arrival.ds,
            marked: false,
            number: 0,
        };
        let class = arrival.class;
        let coming = Coming { class, packet };
        match self.arrivals.back() {
            Some(last) if last.packet.arrival_ns > arrival.at_ns => {
                let is_before = |c: &Coming<T>| c.packet.arrival_ns <= arrival.at_ns;
                let place = self.arrivals.partition_point(is_before);
                self.arrivals.insert(place, coming);
            }
            _ => self.arrivals.push_back(coming),
        }
        arrival.at_ns >= self.now_ns
    }

    /// Returns the next decision, if it is at `until_ns` at the latest: all that arrives by then has been
    /// handed over.
    pub fn decide(&mut self, until_ns: u64) -> Option<Decision<T>> {
        while let Some((at, event)) = self.next() {
            if at > until_ns {
                break;
            }
            self.now_ns = self.now_ns.max(at);
            let decision = match event {
                Happening::Expiry => self.expire(),
                Happening::Timer => {
                    self.tree.fire();
                    None
                }
                Happening::Arrival => self.admit(),
                Happening::Transmission => self.send(),
            };
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    /// Returns when the next packet may be sent, as far as is known now: what happens before the wire is free
    /// is in time for that.
    pub fn next_ns(&self) -> Option<u64> {
        self.next().map(|(at, _)| at.max(self.wire.at_ns))
    }

    /// Returns the time that `bytes` take on the wire, in ns, rounded down.
    pub fn wire_ns(&self, bytes: u32) -> u64 {
        duration(bytes.into(), self.plan.rate)
    }

    /// Returns the counters of a class so far.
    pub fn count(&self, class: usize) -> ClassCount {
        let queue = &self.queues[class];
        ClassCount {
            backlog_packets: queue.waiting.len() as u64,
            ..queue.count
        }
    }

    /// Returns every packet that has neither been sent nor dropped, at the end of a server.
    pub fn into_waiting(self) -> impl Iterator<Item = T> {
        let waiting = self.queues.into_iter().flat_map(|queue| queue.waiting);
        let arrivals = self.arrivals.into_iter().map(|a| a.packet);
        waiting.chain(arrivals).map(|packet| packet.token)
    }

    fn next(&self) -> Option<(u64, Happening)> {
        let expiry = self.expiries.first().map(|(at, _)| *at);
        let timer = self.tree.next_timer();
        let arrival = self.arrivals.front();
        let arrival = arrival.map(|a| a.packet.arrival_ns.max(self.now_ns));
        let ready = self.tree.is_ready();
        let transmission = ready.then_some(self.wire.at_ns.max(self.now_ns));
        [
            expiry.map(|at| (at, Happening::Expiry)),
            timer.map(|at| (at, Happening::Timer)),
            arrival.map(|at| (at, Happening::Arrival)),
            transmission.map(|at| (at, Happening::Transmission)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn admit(&mut self) -> Option<Decision<T>> {
        let Coming { class, mut packet } = self.arrivals.pop_front()?;
        let (now_ns, rate) = (self.now_ns, self.plan.rate);
        let queue = &mut self.queues[class];
        let full = queue.is_full(packet.bytes, now_ns, rate);
        // Some managers count what a full queue drops.
        let verdict = queue.judge_arrival(&packet, full, now_ns, rate);
        if full {
            queue.count.full += 1;
            return Some(dropped(packet, class, now_ns, Cause::Full));
        }
        if verdict == AqmVerdict::Drop {
            queue.count.managed += 1;
            return Some(dropped(packet, class, now_ns, Cause::Managed));
        }
        self.admitted += 1;
        packet.marked = verdict == AqmVerdict::Mark;
        packet.number = self.admitted;
        queue.push(packet);
        if queue.waiting.len() == 1 {
            self.new_head(class);
        }
        None
    }

    /// Drops the first packet, which has waited too long.
    fn expire(&mut self) -> Option<Decision<T>> {
        let (at_ns, class) = *self.expiries.first()?;
        let queue = &mut self.queues[class];
        queue.catch_up(at_ns, self.plan.rate);
        let packet = queue.pop()?;
        queue.expired(&packet, at_ns);
        self.new_head(class);
        Some(dropped(packet, class, at_ns, Cause::Expired))
    }

    fn send(&mut self) -> Option<Decision<T>> {
        let (leaf, lender) = self.tree.choose()?;
        let class = leaf - 1;
        let start_ns = self.now_ns;
        let queue = &mut self.queues[class];
        queue.catch_up(start_ns, self.plan.rate);
        let mut packet = queue.pop()?;
        let verdict = queue.judge_departure(&packet, start_ns);
        if verdict == AqmVerdict::Drop {
            queue.count.managed += 1;
            self.new_head(class);
            return Some(dropped(packet, class, start_ns, Cause::Managed));
        }
        packet.marked |= verdict == AqmVerdict::Mark;
        let bytes = u64::from(packet.bytes);
        self.wire.raise(start_ns);
        self.wire.add(bytes, self.plan.rate);
        if self.is_paced {
            self.wire.at_ns = u64::MAX;
            self.on_wire = Some(class);
        }
        queue.sent(&packet, start_ns, self.wire);
        self.tree.charge(leaf, lender, bytes, start_ns);
        self.new_head(class);
        Some(Decision::Served(Served {
            token: packet.token,
            class,
            arrival_ns: packet.arrival_ns,
            start_ns,
            finish_ns: self.wire.at_ns,
            marked: packet.marked,
        }))
    }

    fn new_head(&mut self, class: usize) {
        let head = self.queues[class].waiting.front().map(|first| Head {
            number: first.number,
            bytes: first.bytes.into(),
        });
        self.tree.head(class + 1, head, self.now_ns);
        self.watch(class);
    }

    /// Notes when the first packet of a class has waited too long.
    fn watch(&mut self, class: usize) {
        let queue = &mut self.queues[class];
        let head = queue.waiting.front();
        let expiry = head.zip(queue.limits.time_ns);
        let expiry = expiry.map(|(head, limit)| head.arrival_ns.saturating_add(limit + 1));
        let before = std::mem::replace(&mut queue.expiry, expiry);
        if before != expiry {
            if let Some(at) = before {
                self.expiries.remove(&(at, class));
            }
            if let Some(at) = expiry {
                self.expiries.insert((at, class));
            }
        }
    }
}

fn dropped<T>(packet: Waiting<T>, class: usize, at_ns: u64, cause: Cause) -> Decision<T> {
    Decision::Dropped(Dropped {
        token: packet.token,
        class,
        at_ns,
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bottleneck::{Class, Limits, Schedule};

    #[test]
    fn at_a_higher_rate_a_packet_on_the_wire_is_not_longer() {
        let plan = |rate| Plan {
            rate,
            schedule: Schedule::Fifo,
            seed: 0,
            classes: vec![Class {
                limits: Limits {
                    bytes: Some(3_000),
                    ..Limits::default()
                },
                ..Class::default()
            }],
        };
        let arrival = |at_ns| Arrival {
            at_ns,
            bytes: 1_000,
            ..Arrival::default()
        };
        // On the wire until 80 ms.
        let mut server = Server::new(&plan(100_000));
        server.arrive(arrival(0), 0);
        assert!(server.decide(0).is_some());
        server.change(&plan(10_000_000), 0);
        for token in 1..4 {
            server.arrive(arrival(1_000_000), token);
        }
        let mut fates = Vec::new();
        while let Some(decision) = server.decide(u64::MAX) {
            fates.push(match decision {
                Decision::Served(served) => (served.token, served.start_ns / 100_000),
                Decision::Dropped(dropped) => (dropped.token, dropped.at_ns / 100_000),
            });
        }
        assert_eq!(fates, [(3, 10), (1, 800), (2, 808)]);
    }

    #[test]
    fn a_raised_ceil_counts_from_the_change_on() {
        const MS: u64 = 1_000_000;
        // A packet takes 1 ms on the wire, 1 s at the first ceil, and 2 ms at the second.
        let plan = |ceil| Plan {
            rate: 10_000_000,
            schedule: Schedule::Drr,
            seed: 0,
            classes: vec![Class {
                ceil,
                ..Class::default()
            }],
        };
        for (ceil, starts) in [
            (Some(5_000_000), [0, 202, 204, 206]),
            (None, [0, 200, 201, 202]),
            // What is sent already was at the first one.
            (Some(5_000), [0, 1_000, 3_000, 5_000]),
        ] {
            let mut server = Server::new(&plan(Some(10_000)));
            for token in 0..4 {
                let bytes = 1_250;
                server.arrive(
                    Arrival {
                        bytes,
                        ..Arrival::default()
                    },
                    token,
                );
            }
            let mut got = vec![];
            for (until_ns, ceil) in [(200 * MS, ceil), (u64::MAX, ceil)] {
                while let Some(Decision::Served(served)) = server.decide(until_ns) {
                    got.push(served.start_ns / MS);
                }
                server.change(&plan(ceil), 200 * MS);
            }
            assert_eq!(got, starts, "{ceil:?}");
        }
    }
}
