// SPDX-License-Identifier: MIT OR Apache-2.0
//! Greedy TCP NewReno flows (RFC 3042, 5681, 6298 and 6582, packet by packet) through one queue with a
//! manager: events of virtual time, draws by hash, so each run is the same.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::abi::mix;
use crate::bottleneck::aqm::{Aqm, AqmVerdict, Packet, catch_up};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// ns-2's bounds of the retransmission timer.
const RTO_MIN: u64 = 200 * MS;
const RTO_MAX: u64 = 60 * S;
/// Segments sent at first, ns-2's.
const INITIAL_WINDOW: f64 = 2.0;

pub(crate) struct Network {
    pub flows: usize,
    pub rate: u64,
    pub packet_bytes: u64,
    /// Round trip of an empty network, without serialisation.
    pub round_trip_ns: u64,
    pub buffer_packets: usize,
    /// The receivers' windows, packets.
    pub window: f64,
    pub duration_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Mean wait of the packets sent, ns.
    pub mean_wait_ns: f64,
    /// Utilisation of the link, 0.0..=1.0.
    pub utilisation: f64,
    pub signals: u64,
    pub overflows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin { flow: usize },
    Served,
    Acked { flow: usize, next: u64 },
    Timeout { flow: usize, number: u64 },
}

/// One sender with its receiver; segments are numbered from 0.
#[derive(Debug, Default)]
struct Flow {
    unacked: u64,
    next: u64,
    highest: u64,
    window: f64,
    threshold: f64,
    duplicates: u32,
    recovering: bool,
    recover: u64,
    /// (segment, when it was sent): the one whose round trip is measured.
    timed: Option<(u64, u64)>,
    round_trip: Option<(f64, f64)>,
    backoff: u32,
    timer: u64,
    expected: u64,
    early: BTreeSet<u64>,
}

impl Flow {
    fn rto(&self) -> u64 {
        let rto = match self.round_trip {
            Some((mean, deviation)) => (mean + 4.0 * deviation) as u64,
            None => 3 * S,
        };
        (rto.max(RTO_MIN) << self.backoff.min(6)).min(RTO_MAX)
    }

    fn measure(&mut self, ns: f64) {
        self.round_trip = Some(match self.round_trip {
            None => (ns, ns / 2.0),
            Some((mean, deviation)) => (
                mean + (ns - mean) / 8.0,
                deviation + ((ns - mean).abs() - deviation) / 4.0,
            ),
        });
    }

    /// Returns the next segment that the receiver lacks.
    fn receive(&mut self, segment: u64) -> u64 {
        if segment >= self.expected {
            self.early.insert(segment);
        }
        while self.early.remove(&self.expected) {
            self.expected += 1;
        }
        self.expected
    }
}

struct Waiting {
    flow: usize,
    segment: u64,
    arrival_ns: u64,
}

pub(crate) struct Run<'a> {
    network: &'a Network,
    manager: &'a mut dyn Aqm,
    seed: u64,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
    flows: Vec<Flow>,
    queue: VecDeque<Waiting>,
    on_wire: Option<Waiting>,
    idle_since: u64,
    draws: u64,
    sent: u64,
    waited: u64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    pub fn new(network: &'a Network, manager: &'a mut dyn Aqm, seed: u64) -> Self {
        let flow = || Flow {
            window: INITIAL_WINDOW,
            threshold: network.window,
            ..Flow::default()
        };
        Self {
            network,
            manager,
            seed,
            now: 0,
            events: BinaryHeap::new(),
            number: 0,
            flows: (0..network.flows).map(|_| flow()).collect(),
            queue: VecDeque::new(),
            on_wire: None,
            idle_since: 0,
            draws: 0,
            sent: 0,
            waited: 0,
            outcome: Outcome::default(),
        }
    }

    pub fn outcome(mut self) -> Outcome {
        for flow in 0..self.network.flows {
            let begin = self.draw() % S;
            self.at(begin, Event::Begin { flow });
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > self.network.duration_ns {
                break;
            }
            self.now = at;
            match event {
                Event::Begin { flow } => self.send(flow),
                Event::Served => self.served(),
                Event::Acked { flow, next } => self.acked(flow, next),
                Event::Timeout { flow, number } => self.timeout(flow, number),
            }
        }
        let wire_ns = self.sent * self.packet_ns();
        self.outcome.mean_wait_ns = self.waited as f64 / self.sent as f64;
        self.outcome.utilisation = wire_ns as f64 / self.network.duration_ns as f64;
        self.outcome
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self.seed ^ mix(self.draws))
    }

    fn at(&mut self, ns: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((ns, self.number, event)));
    }

    fn packet_ns(&self) -> u64 {
        self.network.packet_bytes * 8 * S / self.network.rate
    }

    fn backlog(&self) -> u64 {
        self.queue.len() as u64 * self.network.packet_bytes
    }

    // The queue.

    fn packet(&mut self) -> Packet {
        Packet {
            now_ns: self.now,
            size: self.network.packet_bytes,
            draw: self.draw(),
            ..Packet::default()
        }
    }

    fn arrive(&mut self, flow: usize, segment: u64) {
        let backlog = self.backlog();
        catch_up(self.manager, self.now, |_| backlog);
        let full = self.queue.len() >= self.network.buffer_packets;
        let idle_ns = match self.on_wire {
            None => self.now - self.idle_since,
            Some(_) => 0,
        };
        let packet = Packet {
            full,
            idle_ns,
            ..self.packet()
        };
        let verdict = self.manager.arrive(&packet, backlog);
        if verdict == AqmVerdict::Drop {
            self.outcome.signals += 1;
            return;
        }
        if full {
            self.outcome.overflows += 1;
            return;
        }
        self.queue.push_back(Waiting {
            flow,
            segment,
            arrival_ns: self.now,
        });
        if self.on_wire.is_none() {
            self.serve();
        }
    }

    fn serve(&mut self) {
        let backlog = self.backlog();
        catch_up(self.manager, self.now, |_| backlog);
        while let Some(waiting) = self.queue.pop_front() {
            let packet = Packet {
                sojourn_ns: self.now - waiting.arrival_ns,
                ..self.packet()
            };
            let left = self.backlog();
            if self.manager.depart(&packet, left) == AqmVerdict::Drop {
                self.outcome.signals += 1;
                continue;
            }
            self.waited += packet.sojourn_ns;
            self.sent += 1;
            self.on_wire = Some(waiting);
            self.at(self.now + self.packet_ns(), Event::Served);
            return;
        }
        self.idle_since = self.now;
    }

    fn served(&mut self) {
        if let Some(Waiting { flow, segment, .. }) = self.on_wire.take() {
            let next = self.flows[flow].receive(segment);
            let at = self.now + self.network.round_trip_ns;
            self.at(at, Event::Acked { flow, next });
        }
        self.serve();
    }

    // The senders.

    fn transmit(&mut self, flow: usize, segment: u64) {
        let now = self.now;
        let f = &mut self.flows[flow];
        if segment >= f.highest {
            f.highest = segment + 1;
            f.timed = f.timed.or(Some((segment, now)));
        } else if f.timed.is_some_and(|(timed, _)| timed == segment) {
            // Karn: an acknowledgement does not show which of the two arrived.
            f.timed = None;
        }
        self.arrive(flow, segment);
    }

    fn send(&mut self, flow: usize) {
        loop {
            let f = &self.flows[flow];
            // Limited transmit (RFC 3042).
            let extra = if f.recovering {
                0
            } else {
                u64::from(f.duplicates.min(2))
            };
            let window = f.window.min(self.network.window) as u64 + extra;
            if f.next >= f.unacked + window {
                break;
            }
            let segment = f.next;
            if segment == f.unacked {
                self.start_timer(flow);
            }
            self.flows[flow].next += 1;
            self.transmit(flow, segment);
        }
    }

    fn start_timer(&mut self, flow: usize) {
        let f = &mut self.flows[flow];
        f.timer += 1;
        let (number, rto) = (f.timer, f.rto());
        self.at(self.now + rto, Event::Timeout { flow, number });
    }

    fn acked(&mut self, flow: usize, next: u64) {
        if next > self.flows[flow].unacked {
            self.new_data_acked(flow, next);
        } else if self.flows[flow].next > self.flows[flow].unacked {
            self.duplicate(flow);
        }
        self.send(flow);
    }

    fn new_data_acked(&mut self, flow: usize, next: u64) {
        let now = self.now;
        let f = &mut self.flows[flow];
        let count = next - f.unacked;
        if let Some((segment, sent_ns)) = f.timed
            && next > segment
        {
            f.measure((now - sent_ns) as f64);
            f.timed = None;
            f.backoff = 0;
        }
        f.unacked = next;
        f.next = f.next.max(next);
        f.duplicates = 0;
        let partial = f.recovering && next < f.recover;
        if partial {
            f.window = (f.window - count as f64 + 1.0).max(1.0);
        } else if f.recovering {
            f.recovering = false;
            f.window = f.threshold.min((f.next - next) as f64 + 1.0);
        } else if f.window < f.threshold {
            f.window += 1.0;
        } else {
            f.window += 1.0 / f.window;
        }
        let outstanding = f.next > f.unacked;
        if partial {
            self.transmit(flow, next);
        }
        match outstanding {
            true => self.start_timer(flow),
            false => self.flows[flow].timer += 1,
        }
    }

    fn duplicate(&mut self, flow: usize) {
        let f = &mut self.flows[flow];
        f.duplicates += 1;
        if f.recovering {
            f.window += 1.0;
        } else if f.duplicates == 3 && f.unacked >= f.recover {
            let flight = (f.next - f.unacked) as f64;
            f.threshold = (flight / 2.0).max(2.0);
            f.window = f.threshold + 3.0;
            f.recover = f.highest;
            f.recovering = true;
            let lost = f.unacked;
            self.start_timer(flow);
            self.transmit(flow, lost);
        }
    }

    fn timeout(&mut self, flow: usize, number: u64) {
        let f = &mut self.flows[flow];
        if f.timer != number || f.next == f.unacked {
            return;
        }
        f.threshold = ((f.next - f.unacked) as f64 / 2.0).max(2.0);
        f.window = 1.0;
        f.duplicates = 0;
        f.recovering = false;
        f.recover = f.highest;
        f.next = f.unacked;
        f.timed = None;
        f.backoff += 1;
        self.send(flow);
    }
}
