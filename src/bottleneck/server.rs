// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a server: arrivals, changes of classes, transmissions.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::clock::Clock;
use super::plan::{Limits, Plan};
use super::tree::Tree;

/// A server with its queues; `T` is what the caller knows a packet by.
#[derive(Debug)]
pub struct Server<T> {
    rate: u64,
    tree: Tree,
    queues: Vec<Queue<T>>,
    /// Handed over, and yet to arrive.
    arrivals: BinaryHeap<Reverse<Arrival<T>>>,
    /// Packets handed over, and admitted, so far.
    handed_over: u64,
    admitted: u64,
    /// When the head of each queue with a limit in time has waited too long.
    expiries: BTreeSet<(u64, usize)>,
    /// The wire is busy until then,
    wire: Clock,
    /// with a packet of this class.
    sending: usize,
    /// All that happens before is decided.
    now_ns: u64,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<T> {
    Served(Served<T>),
    Dropped(Dropped<T>),
}

/// A packet with its time on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<T> {
    pub token: T,
    pub class: usize,
    pub arrival_ns: u64,
    pub start_ns: u64,
    /// The last bit is sent.
    pub finish_ns: u64,
}

/// A packet that never gets to the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<T> {
    pub token: T,
    pub class: usize,
    pub at_ns: u64,
    pub cause: Cause,
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No room in packets or bytes at arrival.
    Full,
    /// It would wait for longer than the limit in time.
    Expired,
}

/// What a class has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassCount {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub full: u64,
    pub expired: u64,
    /// Time from arrival to transmission: its sum and the longest, ns.
    pub wait_ns: u64,
    pub longest_wait_ns: u64,
    /// Waiting now.
    pub backlog_packets: u64,
    pub backlog_bytes: u64,
}

#[derive(Debug)]
struct Queue<T> {
    limits: Limits,
    waiting: VecDeque<Waiting<T>>,
    expiry: Option<u64>,
    count: ClassCount,
}

#[derive(Debug)]
struct Waiting<T> {
    token: T,
    arrival_ns: u64,
    bytes: u32,
    number: u64,
}

/// By stamp, then by the order of handing over.
#[derive(Debug)]
struct Arrival<T> {
    class: usize,
    packet: Waiting<T>,
}

impl<T> Arrival<T> {
    fn key(&self) -> (u64, u64) {
        (self.packet.arrival_ns, self.packet.number)
    }
}

impl<T> PartialEq for Arrival<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Arrival<T> {}

impl<T> PartialOrd for Arrival<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Arrival<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The next thing to happen; at one moment in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Expiry,
    Timer,
    Arrival,
    Transmission,
}

impl<T> Server<T> {
    pub fn new(plan: &Plan) -> Self {
        let queue = |limits| Queue {
            limits,
            waiting: VecDeque::new(),
            expiry: None,
            count: ClassCount::default(),
        };
        Self {
            rate: plan.rate,
            tree: Tree::new(plan),
            queues: plan.classes.iter().map(|c| queue(c.limits)).collect(),
            arrivals: BinaryHeap::new(),
            handed_over: 0,
            admitted: 0,
            expiries: BTreeSet::new(),
            wire: Clock::default(),
            sending: 0,
            now_ns: 0,
        }
    }

    /// Other figures for the same classes, from what is not yet decided on. Packets stay.
    pub fn change(&mut self, plan: &Plan) {
        self.rate = plan.rate;
        self.wire.drop_rest();
        for (queue, class) in self.queues.iter_mut().zip(&plan.classes) {
            queue.limits = class.limits;
        }
        self.tree.change(plan, self.now_ns);
        for class in 0..self.queues.len() {
            self.watch(class);
        }
    }

    /// Hands over a packet of a class without classes below it. One that arrived before what is
    /// decided already counts from there on: false.
    pub fn arrive(&mut self, arrival_ns: u64, class: usize, bytes: u32, token: T) -> bool {
        let packet = Waiting {
            token,
            arrival_ns,
            bytes,
            number: self.handed_over,
        };
        self.handed_over += 1;
        self.arrivals.push(Reverse(Arrival { class, packet }));
        arrival_ns >= self.now_ns
    }

    /// The next decision, if it is at `until_ns` at the latest: all that arrives by then has been
    /// handed over.
    pub fn decide(&mut self, until_ns: u64) -> Option<Decision<T>> {
        while let Some((at, event)) = self.next() {
            if at > until_ns {
                break;
            }
            self.now_ns = self.now_ns.max(at);
            let decision = match event {
                Event::Expiry => self.expire(),
                Event::Timer => {
                    self.tree.fire();
                    None
                }
                Event::Arrival => self.admit(),
                Event::Transmission => self.send(),
            };
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    /// When the next event is, as far as is known now.
    pub fn next_ns(&self) -> Option<u64> {
        self.next().map(|(at, _)| at)
    }

    pub fn count(&self, class: usize) -> ClassCount {
        let queue = &self.queues[class];
        ClassCount {
            backlog_packets: queue.waiting.len() as u64,
            ..queue.count
        }
    }

    /// Every packet that has neither been sent nor dropped, at the end of a server.
    pub fn into_waiting(self) -> impl Iterator<Item = T> {
        let waiting = self.queues.into_iter().flat_map(|queue| queue.waiting);
        let arrivals = self.arrivals.into_iter().map(|Reverse(a)| a.packet);
        waiting.chain(arrivals).map(|packet| packet.token)
    }

    fn next(&self) -> Option<(u64, Event)> {
        let expiry = self.expiries.first().map(|(at, _)| *at);
        let timer = self.tree.next_timer();
        let arrival = self.arrivals.peek();
        let arrival = arrival.map(|Reverse(a)| a.packet.arrival_ns.max(self.now_ns));
        let ready = self.tree.is_ready();
        let transmission = ready.then_some(self.wire.at_ns.max(self.now_ns));
        [
            expiry.map(|at| (at, Event::Expiry)),
            timer.map(|at| (at, Event::Timer)),
            arrival.map(|at| (at, Event::Arrival)),
            transmission.map(|at| (at, Event::Transmission)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn admit(&mut self) -> Option<Decision<T>> {
        let Reverse(Arrival { class, packet }) = self.arrivals.pop()?;
        if self.is_full(class, u64::from(packet.bytes)) {
            self.queues[class].count.full += 1;
            return Some(Decision::Dropped(Dropped {
                token: packet.token,
                class,
                at_ns: self.now_ns,
                cause: Cause::Full,
            }));
        }
        self.admitted += 1;
        let queue = &mut self.queues[class];
        queue.count.backlog_bytes += u64::from(packet.bytes);
        queue.waiting.push_back(Waiting {
            number: self.admitted,
            ..packet
        });
        if queue.waiting.len() == 1 {
            self.new_head(class);
        }
        None
    }

    fn is_full(&self, class: usize, bytes: u64) -> bool {
        let queue = &self.queues[class];
        let sending = self.sending == class && self.wire.at_ns > self.now_ns;
        let packets = queue.waiting.len() + usize::from(sending);
        let behind = queue.count.backlog_bytes + bytes;
        let wire = if sending { self.wire } else { Clock::default() };
        let limits = &queue.limits;
        (limits.packets).is_some_and(|limit| packets >= limit as usize)
            || (limits.bytes).is_some_and(|limit| wire.above(self.now_ns, self.rate, behind, limit))
    }

    /// The first packet has waited too long.
    fn expire(&mut self) -> Option<Decision<T>> {
        let (at_ns, class) = *self.expiries.first()?;
        let packet = self.pop(class)?;
        self.queues[class].count.expired += 1;
        self.new_head(class);
        Some(Decision::Dropped(Dropped {
            token: packet.token,
            class,
            at_ns,
            cause: Cause::Expired,
        }))
    }

    fn send(&mut self) -> Option<Decision<T>> {
        let (leaf, lender) = self.tree.choose()?;
        let class = leaf - 1;
        let packet = self.pop(class)?;
        let (start_ns, bytes) = (self.now_ns, u64::from(packet.bytes));
        self.wire.raise(start_ns);
        self.wire.add(bytes, self.rate);
        self.sending = class;
        self.tree.charge(leaf, lender, bytes, start_ns);
        self.new_head(class);
        let count = &mut self.queues[class].count;
        let wait = start_ns.saturating_sub(packet.arrival_ns);
        count.sent_packets += 1;
        count.sent_bytes += bytes;
        count.wait_ns += wait;
        count.longest_wait_ns = count.longest_wait_ns.max(wait);
        Some(Decision::Served(Served {
            token: packet.token,
            class,
            arrival_ns: packet.arrival_ns,
            start_ns,
            finish_ns: self.wire.at_ns,
        }))
    }

    fn pop(&mut self, class: usize) -> Option<Waiting<T>> {
        let queue = &mut self.queues[class];
        let packet = queue.waiting.pop_front()?;
        queue.count.backlog_bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    fn new_head(&mut self, class: usize) {
        let head = self.queues[class].waiting.front();
        self.tree
            .head(class + 1, head.map(|head| head.number), self.now_ns);
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
            before.inspect(|at| {
                self.expiries.remove(&(*at, class));
            });
            self.expiries.extend(expiry.map(|at| (at, class)));
        }
    }
}
