// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channel access of IEEE 802.11-2020, 10.3 and 10.23.2 (DCF and EDCA), event by event.
//!
//! # What is modelled
//!
//! - Backoff of 0..=window slots after DIFS, doubled window per failure, frozen while busy, drawn
//!   also after every frame (post-backoff); immediate access when the medium has been idle for
//!   DIFS and no backoff is left.
//! - EIFS from the end of a frame that was sensed but not decoded, whatever is reserved; NAV; RTS and
//!   CTS; a limit of attempts.
//! - A failed sender waits a full DIFS after its timeout, which ends when EIFS of the others turns
//!   into their DIFS: it counts no slots that they do not count. The timeout of an RTS is a CTS and a slot,
//!   up to two slots shorter.
//! - An access due within one CCA time of another's start cannot be called off.
//! - Access categories (`category`); aggregates with block acknowledgements (`aggregate`).
//! - Half duplex; interference summed over all on air; capture of a receiver by a stronger frame,
//!   also over an earlier one.
//!
//! # How
//!
//! Nothing happens per slot: an access is due at the time since when the medium is idle, plus the
//! gap, plus the slots left; full slots that have passed are subtracted when it becomes busy.
//! Stations that hear the same count as a group (`countdown`). The others have one timer, whose
//! meaning follows from what the station does: the end of its transmission, the beginning of its
//! answer, or its timeout (`timers`). A transmission changes the state of the stations that it
//! reaches in sets, 64 at a time (`ears`).
//!
//! Longer than 400 lines: the model is described where it is carried out.

mod access;
mod aggregate;
mod category;
mod chance;
mod countdown;
mod ears;
mod exchange;
mod frame;
mod minstrel;
mod plain;
mod queue;
mod rate;
mod receive;
mod settle;
mod station;
mod timers;
mod transmit;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::phy::{Matrix, STRONGEST_AW, Timing};
use super::set::Set;
pub use aggregate::MOST_PACKETS;
use category::Category;
use chance::Chance;
use ears::{Ears, Threshold};
use frame::{Arrival, Later};
pub use frame::{Fate, Frame, Outcome, To};
pub use queue::Discipline;
use queue::Queue;
pub use rate::RateControl;
use rate::Rates;
pub use station::Count;
use station::{Doing, Kind, Lane, Station};
use timers::{Rank, Timers};

/// How stations get to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// They contend by carrier sensing.
    Dcf,
    /// Full duplex without carrier, collisions, or headers: a frame takes its bytes at the rate,
    /// and each receiver loses it independently.
    None,
}

/// Parameters that the stations of a medium share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Durations of frames and gaps.
    pub timing: Timing,
    /// How stations access the medium.
    pub access: Access,
    /// Unicast packets of this many bytes and more are sent after RTS and CTS.
    pub rts_bytes: Option<u32>,
    /// Transmissions of a frame before it is given up, 1 or more.
    pub attempts: u32,
    /// Packets in one aggregate at most (A-MPDU); 1: each packet is a frame.
    #[serde(default = "aggregate::none")]
    pub aggregate: u32,
    /// Packets in a station's queue, those on air included.
    pub queue_packets: usize,
    /// How a station's queue is ordered and managed.
    #[serde(default)]
    pub discipline: Discipline,
    /// How stations choose the rate of unicast data.
    #[serde(default)]
    pub rate: RateControl,
    /// How much stronger than all others a frame must be to be received, and to take a receiver
    /// from an earlier frame ([`ratio`](super::phy::ratio)).
    pub capture: u64,
    /// Background noise, aW.
    pub noise: u64,
    /// Seed of all random decisions.
    pub seed: u64,
}

impl Plan {
    /// Validates figures read from a file.
    pub fn is_consistent(&self) -> bool {
        self.timing.is_consistent()
            && self.discipline.is_consistent()
            && (1..=MOST_PACKETS).contains(&self.aggregate)
            && self.noise <= STRONGEST_AW
    }
}

/// A medium with its stations; `T` identifies a packet to the caller.
#[derive(Debug)]
pub struct Air<T> {
    plan: Plan,
    chance: Chance,
    matrix: Arc<Matrix>,
    /// The matrices from later instants on, in their order.
    moves: VecDeque<(u64, Arc<Matrix>)>,
    stations: Vec<Station<T>>,
    ears: Ears,
    /// The most urgent one first.
    categories: Vec<Category>,
    /// Stations that neither send nor wait for an answer, nor are about to send one.
    listening: Set,
    promiscuous: Set,
    timers: Timers,
    /// Handed over, and yet to arrive.
    arrivals: BinaryHeap<Reverse<Arrival<T>>>,
    /// On their way by propagation, without access control.
    later: BinaryHeap<Reverse<Later<T>>>,
    outcomes: VecDeque<Outcome<T>>,
    /// Packets that wait at their receivers for earlier ones.
    held: usize,
    numbered: u64,
    events: u64,
    now_ns: u64,
    /// The last probability that a frame has no error, and of what.
    kept: ((f64, f64, u32), f64),
    /// Memory for what a step computes.
    decoded: Set,
    contending: [Set; 4],
    /// Empty sets of packets that were overheard.
    spare: Vec<Set>,
}

/// The next event; events at one moment are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Move,
    Later,
    End(usize),
    Arrival,
    Timer(Rank, usize),
    /// Of a category and a station.
    Access(usize, usize),
}

impl<T: Clone> Air<T> {
    /// Returns an idle medium at time 0. `modes`: each station's mode of unicast data, with
    /// [`RateControl::Arf`] the first one.
    pub fn new(plan: Plan, matrix: Arc<Matrix>, modes: &[usize]) -> Self {
        let stations = matrix.stations();
        let fastest = plan.timing.fastest();
        let mode = |station| modes.get(station).copied().unwrap_or(fastest);
        let categories = Category::all(stations, &plan);
        Self {
            chance: Chance::new(plan.seed),
            stations: (0..stations)
                .map(|station| {
                    let mode = mode(station);
                    let lane = |category: &Category| Lane {
                        queue: Queue::new(&plan, station),
                        held: Vec::new(),
                        window: category.cw_min,
                    };
                    let lanes = categories.iter().map(lane).collect();
                    Station::new(mode, Rates::new(plan.rate, mode, stations), lanes)
                })
                .collect(),
            ears: Ears::new(
                stations,
                Threshold {
                    capture: plan.capture,
                    noise: plan.noise,
                },
            ),
            categories,
            listening: Set::all(stations),
            promiscuous: Set::new(stations),
            timers: Timers::new(stations),
            matrix,
            moves: VecDeque::new(),
            arrivals: BinaryHeap::new(),
            later: BinaryHeap::new(),
            outcomes: VecDeque::new(),
            held: 0,
            numbered: 0,
            events: 0,
            now_ns: 0,
            kept: ((0.0, 1.0, 0), 1.0),
            decoded: Set::new(stations),
            contending: std::array::from_fn(|_| Set::new(stations)),
            spare: Vec::new(),
            plan,
        }
    }

    /// Hands over a packet. One that arrived before what is decided already counts from there on:
    /// false.
    pub fn arrive(&mut self, at_ns: u64, station: usize, frame: Frame<T>) -> bool {
        self.arrive_with(at_ns, station, frame, 0)
    }

    /// Does [`Self::arrive`] with the DS field of the packet.
    pub fn arrive_with(&mut self, at_ns: u64, station: usize, frame: Frame<T>, ds: u8) -> bool {
        self.numbered += 1;
        self.arrivals.push(Reverse(Arrival {
            at_ns,
            number: self.numbered,
            station,
            frame,
            ds,
        }));
        at_ns >= self.now_ns
    }

    /// Sets the matrix of transmissions that begin at `at_ns` or later, of the same stations. Instants
    /// ascend.
    pub fn move_at(&mut self, at_ns: u64, matrix: Arc<Matrix>) {
        self.moves.push_back((at_ns, matrix));
    }

    /// Sets whether a station receives unicast frames for others.
    pub fn set_promiscuous(&mut self, station: usize, promiscuous: bool) {
        self.promiscuous.put(station, promiscuous);
        // One for each packet at a radio, without aggregates: a rare crowd of them allocates nothing later.
        let stations = self.stations.len();
        let most = stations * self.categories.len();
        if promiscuous && self.spare.len() < most {
            self.spare.resize_with(most, || Set::new(stations));
        }
    }

    /// Returns the next outcome, if it is at `until_ns` at the latest: all that arrives by then has been
    /// handed over. None: everything up to `until_ns` is decided.
    pub fn next(&mut self, until_ns: u64) -> Option<Outcome<T>> {
        loop {
            if let Some(outcome) = self.outcomes.pop_front() {
                return Some(outcome);
            }
            match self.next_event() {
                Some((at_ns, event)) if at_ns <= until_ns => {
                    self.now_ns = self.now_ns.max(at_ns);
                    self.events += 1;
                    self.happen(event);
                }
                _ => {
                    self.now_ns = self.now_ns.max(until_ns);
                    return None;
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Move => {
                if let Some((_, matrix)) = self.moves.pop_front() {
                    self.matrix = matrix;
                }
            }
            Event::Later => {
                if let Some(Reverse(later)) = self.later.pop() {
                    self.outcomes.push_back(later.outcome);
                }
            }
            Event::Arrival => self.admit(),
            Event::End(station) => self.end(station),
            Event::Access(category, station) => {
                self.categories[category].countdown.access(station);
                self.access(station, category);
            }
            Event::Timer(rank, station) => {
                self.timers.clear(station);
                match rank {
                    Rank::Answer => self.answer(station),
                    Rank::Timeout => self.time_out(station),
                    Rank::End => {}
                }
            }
        }
    }

    fn does(&mut self, station: usize, what: Doing) {
        let listens = matches!(what, Doing::Listening);
        self.listening.put(station, listens);
        self.stations[station].doing = what;
    }

    fn next_event(&mut self) -> Option<(u64, Event)> {
        let access = self.next_access();
        let access = access.map(|(at_ns, of, station)| (at_ns, Event::Access(of, station)));
        let timer = self.timers.first();
        let timer = timer.map(|(at_ns, rank, station)| match rank {
            Rank::End => (at_ns, Event::End(station)),
            _ => (at_ns, Event::Timer(rank, station)),
        });
        let arrival = self.arrivals.peek();
        let arrival = arrival.map(|Reverse(a)| (a.at_ns.max(self.now_ns), Event::Arrival));
        let later = self.later.peek();
        let later = later.map(|Reverse(later)| (later.at_ns, Event::Later));
        let moved = self.moves.front();
        let moved = moved.map(|(at_ns, _)| ((*at_ns).max(self.now_ns), Event::Move));
        [timer, access, arrival, later, moved]
            .into_iter()
            .flatten()
            .min()
    }

    fn admit(&mut self) {
        let Some(Reverse(arrival)) = self.arrivals.pop() else {
            return;
        };
        let (station, ds) = (arrival.station, arrival.ds);
        let category = self.category(ds);
        let queue = &mut self.stations[station].lanes[category].queue;
        let radio_is_free = queue.front().is_none();
        if let Some(packet) = queue.push(arrival.into(), ds, self.now_ns) {
            self.stations[station].count.full += 1;
            self.finished(station, packet.frame.token, Fate::QueueFull);
            return;
        }
        self.serve(station, category);
        let queue = &self.stations[station].lanes[category].queue;
        if radio_is_free && queue.front().is_some() {
            match self.plan.access {
                Access::Dcf => {
                    self.categories[category].wants.insert(station);
                    self.contend_in(station, category);
                }
                Access::None => self.send_plain(station),
            }
        }
    }

    fn finished(&mut self, station: usize, token: T, fate: Fate) {
        self.outcomes.push_back(Outcome::Finished {
            at_ns: self.now_ns,
            station,
            token,
            fate,
        });
    }

    /// Returns when a packet can be delivered at the earliest, as far as is known now.
    pub fn next_delivery_ns(&mut self) -> Option<u64> {
        if !self.outcomes.is_empty() {
            return Some(self.now_ns);
        }
        let access = self.next_access();
        // What waits for earlier packets comes with them, or when they are given up.
        let shortest = if self.held > 0 { 0 } else { self.shortest_ns() };
        let of_station = |(at_ns, station): (u64, usize)| match self.stations[station].doing {
            Doing::Sending(ref what) if what.kind == Kind::Data => at_ns,
            _ => at_ns + shortest,
        };
        let arrival = self.arrivals.peek();
        let arrival = arrival.map(|Reverse(arrival)| arrival.at_ns + shortest);
        let later = self.later.peek().map(|Reverse(later)| later.at_ns);
        let access = access.map(|(at_ns, ..)| at_ns + shortest);
        let timers = self.timers.all().map(of_station);
        timers.chain(access).chain(arrival).chain(later).min()
    }

    /// Returns the shortest time from arrival to delivery of a packet in ns.
    pub fn shortest_ns(&self) -> u64 {
        match self.plan.access {
            Access::Dcf => self.plan.timing.data_ns(0, self.plan.timing.fastest()),
            Access::None => 0,
        }
    }

    /// Returns the counts of a station so far.
    pub fn count(&self, station: usize) -> Count {
        let count = self.stations[station].count;
        // A frame counts when it begins, for all of its time.
        let end_ns = self.timers.end_of(station).unwrap_or(0);
        let air_ns = count.air_ns - end_ns.saturating_sub(self.now_ns);
        Count {
            air_ns,
            busy_ns: match self.plan.access {
                Access::Dcf => self.ears.busy_ns(station, self.now_ns),
                // No carrier of others counts.
                Access::None => air_ns,
            },
            waiting: self.stations[station].waiting(),
            ..count
        }
    }

    /// Returns the number of events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the virtual time in ns: everything before it is decided.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }
}
