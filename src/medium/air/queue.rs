// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of a station in front of its radio.
//!
//! The radio takes one packet and keeps it until it is sent or given up; what arrives meanwhile
//! waits by the discipline. A packet that the radio has is not overtaken any more, whatever its
//! priority: a card has it already.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::frame::Waiting;
use super::{Air, Fate, Plan};
use crate::abi::mix;
use crate::bottleneck::aqm::{Choice, RedFigures};
use crate::bottleneck::{self, Arrival, Cause, Class, Decision, Limits, Schedule, Server, Signals};

/// How packets wait for the radio of their station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Discipline {
    /// In the order of arrival; a full queue drops what arrives.
    #[default]
    Fifo,
    /// Three bands by ToS, each with the whole limit, as pfifo_fast.
    Priority,
    /// In the order of arrival, with random early detection.
    Red(RedFigures),
    /// Four access categories by DSCP, which contend with one another, each with the whole limit.
    Edca,
}

impl Discipline {
    /// Validates figures read from a file.
    pub fn is_consistent(&self) -> bool {
        match self {
            Self::Fifo | Self::Priority | Self::Edca => true,
            Self::Red(figures) => figures.is_consistent(),
        }
    }
}

/// Returns pfifo_fast's band of a ToS: bits 3 and 4 of it choose the priority of a socket (`ip_tos2prio`),
/// and that its band (tc-pfifo_fast(8)).
fn band(ds: u8) -> usize {
    const BANDS: [usize; 4] = [1, 2, 0, 1];
    BANDS[usize::from(ds >> 3 & 3)]
}

#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Packets that the radio has are first; after them those that wait, without a server.
    pub(super) packets: VecDeque<Waiting<T>>,
    /// The positions of those in the frame on air.
    pub(super) aboard: Vec<u32>,
    /// Those that wait otherwise.
    server: Option<Box<Server<Waiting<T>>>>,
    bands: bool,
    limit: usize,
}

impl<T> Queue<T> {
    pub fn new(plan: &Plan, station: usize) -> Self {
        let class = |priority, signals| Class {
            priority,
            signals,
            limits: Limits {
                packets: Some(u32::try_from(plan.queue_packets).unwrap_or(u32::MAX)),
                ..Limits::default()
            },
            ..Class::default()
        };
        let classes = match plan.discipline {
            Discipline::Fifo | Discipline::Edca => vec![],
            Discipline::Priority => (0..3).map(|band| class(band, Signals::None)).collect(),
            Discipline::Red(figures) => {
                let by = Choice::Red(figures);
                vec![class(0, Signals::Managed { by, marks: false })]
            }
        };
        let server = bottleneck::Plan {
            rate: u64::from(plan.timing.kbit(plan.timing.fastest())) * 1000,
            schedule: Schedule::Priority,
            seed: mix(plan.seed ^ mix(station as u64)),
            classes,
        };
        let is_served = !server.classes.is_empty();
        Self {
            packets: VecDeque::new(),
            aboard: Vec::with_capacity(plan.aggregate as usize),
            server: is_served.then(|| Box::new(Server::paced(&server))),
            bands: plan.discipline == Discipline::Priority,
            limit: plan.queue_packets,
        }
    }

    /// Returns the packet that the radio has.
    pub fn front(&self) -> Option<&Waiting<T>> {
        self.packets.front()
    }

    /// Returns the number of packets, the one of the radio included.
    pub fn len(&self) -> usize {
        let classes = if self.bands { 3 } else { 1 };
        let waiting = |server: &Server<_>| -> u64 {
            (0..classes)
                .map(|class| server.count(class).backlog_packets)
                .sum()
        };
        let waiting = self.server.as_ref().map_or(0, |server| waiting(server));
        self.packets.len() + waiting as usize
    }

    /// Removes a packet that the radio has finished, the first one if there is a server; `next` gives it another one.
    pub fn take(&mut self, at: usize, now_ns: u64) -> Option<Waiting<T>> {
        if let Some(server) = &mut self.server {
            server.finish(now_ns);
        }
        self.packets.remove(at)
    }

    /// Puts an arriving packet into the queue. Returns it if there is no room.
    pub fn push(&mut self, packet: Waiting<T>, ds: u8, now_ns: u64) -> Option<Waiting<T>> {
        let Some(server) = &mut self.server else {
            if self.packets.len() >= self.limit {
                return Some(packet);
            }
            self.packets.push_back(packet);
            return None;
        };
        let arrival = Arrival {
            at_ns: now_ns,
            class: if self.bands { band(ds) } else { 0 },
            bytes: packet.frame.bytes,
            ds,
        };
        server.arrive(arrival, packet);
        None
    }

    /// Gives the radio a packet, if it has none; a packet that is dropped instead.
    pub fn next(&mut self, now_ns: u64) -> Option<(Waiting<T>, Fate)> {
        let server = self.server.as_mut()?;
        while let Some(decision) = server.decide(now_ns) {
            match decision {
                Decision::Served(served) => self.packets.push_back(served.token),
                Decision::Dropped(dropped) => {
                    let fate = match dropped.cause {
                        Cause::Full | Cause::Expired => Fate::QueueFull,
                        Cause::Managed => Fate::Managed,
                    };
                    return Some((dropped.token, fate));
                }
            }
        }
        None
    }
}

impl<T: Clone> Air<T> {
    /// Takes the decisions of a station's queue on its packets.
    pub(super) fn serve(&mut self, station: usize, lane: usize) {
        while let Some((packet, fate)) = self.stations[station].lanes[lane].queue.next(self.now_ns)
        {
            let count = &mut self.stations[station].count;
            match fate {
                Fate::Managed => count.managed += 1,
                _ => count.full += 1,
            }
            self.finished(station, packet.frame.token, fate);
        }
    }
}
