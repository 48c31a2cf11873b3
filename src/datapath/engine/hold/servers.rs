// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that wait in a class of a bottleneck before they wait for their departure time.

use std::collections::HashMap;

use super::frame::Service;
use super::queue::Frame;
use crate::abi;
use crate::bottleneck::{ClassCount, Decision, Plan, Server};

/// By so much the clock is ahead of what has certainly been read, in ns: a frame is stamped, and
/// then put into the TAP by its CPU, which a softirq or the hypervisor may interrupt.
pub(super) const MARGIN_NS: u64 = 50_000;

/// Where the figures of bottlenecks come from, and where the account of classes goes.
pub trait Classes: Sync {
    /// The figures in force, unless they are those that `version` says.
    fn plans(&self, version: &mut u64) -> Option<Vec<Plan>>;

    /// What classes have done that packets have met, by their number from 1.
    fn account(&self, classes: &[(u32, abi::emud_class)]);
}

/// A frame and what happens to it behind the bottleneck.
#[derive(Debug)]
struct Held {
    frame: Frame,
    /// Of the worker.
    port: usize,
    service: Service,
    copy: Option<Frame>,
}

/// Frames that a bottleneck has done with.
pub(super) enum Done {
    /// To be written at these times.
    Departs {
        port: usize,
        frames: Vec<(u64, Frame)>,
    },
    /// Not to be written: their buffers are free again.
    Lost { port: usize, frames: Vec<Frame> },
}

/// The bottlenecks of a worker.
#[derive(Debug, Default)]
pub(super) struct Servers {
    servers: Vec<Server<Held>>,
    /// Server and class of a number, less 1.
    places: Vec<(usize, usize)>,
    /// The last departure of each path that keeps its order.
    last: HashMap<u32, u64>,
    version: u64,
    /// Frames of each port.
    waiting: Vec<u64>,
}

impl Servers {
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Takes over the figures in force.
    pub fn update(&mut self, classes: &dyn Classes) {
        let Some(plans) = classes.plans(&mut self.version) else {
            return;
        };
        if self.servers.len() == plans.len() {
            for (server, plan) in self.servers.iter_mut().zip(&plans) {
                server.change(plan);
            }
            return;
        }
        self.servers = plans.iter().map(Server::new).collect();
        let of = |(server, plan): (usize, &Plan)| {
            let classes = 0..plan.classes.len();
            classes
                .map(move |class| (server, class))
                .collect::<Vec<_>>()
        };
        self.places = plans.iter().enumerate().flat_map(of).collect();
    }

    pub fn has(&self, number: u32) -> bool {
        (number as usize).wrapping_sub(1) < self.places.len()
    }

    /// False: later frames have been decided on already.
    pub fn arrive(
        &mut self,
        port: usize,
        service: Service,
        frame: Frame,
        copy: Option<Frame>,
    ) -> bool {
        let (server, class) = self.places[service.number as usize - 1];
        let (at, bytes) = (service.arrival_ns, service.bytes);
        if self.waiting.len() <= port {
            self.waiting.resize(port + 1, 0);
        }
        self.waiting[port] += 1;
        let held = Held {
            frame,
            port,
            service,
            copy,
        };
        self.servers[server].arrive(at, class, bytes, held)
    }

    /// The next frames that are done with, all having been read that had arrived by `until_ns`.
    pub fn decide(&mut self, until_ns: u64) -> Option<Done> {
        let mut servers = self.servers.iter_mut();
        let decision = servers.find_map(|server| server.decide(until_ns))?;
        let (held, finish_ns) = match decision {
            Decision::Served(served) => (served.token, Some(served.finish_ns)),
            Decision::Dropped(dropped) => (dropped.token, None),
        };
        let Held {
            frame,
            port,
            service,
            copy,
        } = held;
        self.waiting[port] -= 1;
        let Some(finish_ns) = finish_ns.filter(|_| !service.lost) else {
            let frames = std::iter::once(frame).chain(copy).collect();
            return Some(Done::Lost { port, frames });
        };
        let behind =
            |departure_ns: u64| finish_ns + departure_ns.saturating_sub(service.arrival_ns);
        let mut departs = behind(service.departure_ns);
        if !service.overtakes {
            let last = self.last.entry(service.path).or_default();
            departs = departs.max(*last);
            *last = departs;
        }
        let copy = copy.map(|copy| (behind(service.copy_ns), copy));
        let frames = std::iter::once((departs, frame)).chain(copy).collect();
        Some(Done::Departs { port, frames })
    }

    /// When there may be something to decide.
    pub fn next_ns(&self) -> Option<u64> {
        self.servers.iter().filter_map(Server::next_ns).min()
    }

    /// Frames of a port that wait here.
    pub fn waiting(&self, port: usize) -> u64 {
        self.waiting.get(port).copied().unwrap_or(0)
    }

    fn counts(&self) -> impl Iterator<Item = (u32, ClassCount)> {
        let places = (1..).zip(&self.places);
        places.map(|(number, (server, class))| (number, self.servers[*server].count(*class)))
    }

    /// The account of classes that packets of this worker have met.
    pub fn account(&self) -> Vec<(u32, abi::emud_class)> {
        let met = self
            .counts()
            .filter(|(_, count)| *count != ClassCount::default());
        met.map(|(number, count)| (number, of_count(&count)))
            .collect()
    }

    /// All frames that are still waiting, and not lost, at the end.
    pub fn drain(&mut self) -> impl Iterator<Item = (usize, Frame)> {
        let held = std::mem::take(&mut self.servers)
            .into_iter()
            .flat_map(Server::into_waiting);
        held.filter(|held| !held.service.lost)
            .map(|held| (held.port, held.frame))
    }
}

fn of_count(count: &ClassCount) -> abi::emud_class {
    abi::emud_class {
        sent_packets: count.sent_packets,
        sent_bytes: count.sent_bytes,
        full: count.full,
        expired: count.expired,
        wait_ns: count.wait_ns,
        longest_wait_ns: count.longest_wait_ns,
        backlog_packets: count.backlog_packets,
        backlog_bytes: count.backlog_bytes,
    }
}
