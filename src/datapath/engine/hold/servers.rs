// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that wait in a class of a bottleneck before they wait for their departure time.

use std::collections::HashMap;

use super::ds;
use super::frame::Service;
use super::queue::Frame;
use crate::abi;
use crate::bottleneck::{Arrival, ClassCount, Decision, Plan, Server};

/// Frames stamped earlier than this before now have certainly been read, in ns: a frame is stamped, and
/// then put into the TAP by its CPU, which a softirq or the hypervisor may interrupt.
pub(super) const MARGIN_NS: u64 = 50_000;

/// The longest delay of a decision, in ns, if the packets that it is about depart later anyway: one wake-up
/// then decides on many packets, or on one that it sends.
const LONGEST_LAG_NS: u64 = 1_000_000;

/// Where the figures of bottlenecks come from, and where the account of classes goes.
pub trait Classes: Sync {
    /// Returns the figures in force, unless they are those that `version` says.
    fn plans(&self, version: &mut u64) -> Option<Vec<Plan>>;

    /// Writes the accounts of classes that packets have met, by their number from 1.
    fn account(&self, classes: &[(u32, abi::emud_class)]);
}

/// A frame and what happens to it after the bottleneck.
#[derive(Debug)]
struct Held {
    frame: Frame,
    /// Index of the worker's port.
    port: usize,
    service: Service,
    copy: Option<Frame>,
    lag: usize,
}

/// How long decisions can wait: after the start of its transmission, each waiting frame departs so
/// many us later, counted up to [`LONGEST_LAG_NS`]. A small frame counts only while it waits.
#[derive(Debug)]
struct Lags {
    counts: Vec<u32>,
    /// No count is below this index.
    least: usize,
}

impl Default for Lags {
    fn default() -> Self {
        let longest = (LONGEST_LAG_NS / 1_000) as usize;
        Self {
            counts: vec![0; longest + 1],
            least: longest,
        }
    }
}

impl Lags {
    fn put(&mut self, ns: u64) -> usize {
        let lag = (ns.min(LONGEST_LAG_NS) / 1_000) as usize;
        self.counts[lag] += 1;
        self.least = self.least.min(lag);
        lag
    }

    fn take(&mut self, lag: usize) {
        self.counts[lag] -= 1;
        while self.counts[self.least] == 0 && self.least + 1 < self.counts.len() {
            self.least += 1;
        }
    }

    fn least_ns(&self) -> u64 {
        (self.least as u64 * 1_000).max(MARGIN_NS)
    }
}

/// Frames that wait, by the index that a server knows them by: a frame is not moved while the server
/// moves its packet, 60 ns of 220 a packet.
#[derive(Debug, Default)]
struct Shelf {
    places: Vec<Option<Held>>,
    free: Vec<u32>,
}

impl Shelf {
    fn put(&mut self, held: Held) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(held);
            return place;
        }
        self.places.push(Some(held));
        (self.places.len() - 1) as u32
    }

    fn take(&mut self, place: u32) -> Option<Held> {
        self.free.push(place);
        self.places[place as usize].take()
    }
}

/// Frames that a bottleneck has done with.
pub(super) enum Done {
    /// A frame, and its copy, to write at these times.
    Departs {
        port: usize,
        frame: (u64, Frame),
        copy: Option<(u64, Frame)>,
    },
    /// A frame that is not written: its buffer is free again.
    Lost {
        port: usize,
        frame: Frame,
        copy: Option<Frame>,
    },
}

/// The last departure of each path that keeps its order.
#[derive(Debug, Default)]
struct Paths {
    /// Last departures of the first paths, those of most links: an array needs no hash.
    first: Vec<u64>,
    others: HashMap<u32, u64>,
}

/// Paths that are found by their number.
const FIRST_PATHS: u32 = 1024;

impl Paths {
    /// Returns when a frame departs that would at `departure_ns`: not before the last one of its path.
    fn in_order(&mut self, path: u32, departure_ns: u64) -> u64 {
        let last = match path {
            ..FIRST_PATHS => {
                let place = path as usize;
                if self.first.len() <= place {
                    self.first.resize(place + 1, 0);
                }
                &mut self.first[place]
            }
            _ => self.others.entry(path).or_default(),
        };
        *last = departure_ns.max(*last);
        *last
    }
}

/// Counts of frames that have left, by the number of their link.
pub(super) type Served = [abi::emud_served; abi::EMUD_LINKS_MAX as usize];

/// The frames of a port.
#[derive(Debug)]
struct Account {
    waiting: u64,
    served: Served,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            waiting: 0,
            served: [abi::emud_served::default(); abi::EMUD_LINKS_MAX as usize],
        }
    }
}

impl Account {
    /// Counts a frame that was sent to its link, which may lose it, or dropped.
    fn decided(&mut self, service: &Service, is_sent: bool, is_copied: bool) {
        let Some(link) = self.served.get_mut(usize::from(service.link)) else {
            return;
        };
        if !is_sent {
            link.dropped += 1;
            return;
        }
        if service.lost {
            link.lost += 1;
            return;
        }
        link.sent_packets += 1;
        link.sent_bytes += service.own_bytes as u64;
        link.duplicated += u64::from(is_copied);
        link.corrupted += u64::from(service.corrupted);
        link.reset += u64::from(service.reset);
    }
}

/// The bottlenecks of a worker.
#[derive(Debug, Default)]
pub(super) struct Servers {
    servers: Vec<Server<u32>>,
    shelf: Shelf,
    /// Server and class of a number, less 1.
    places: Vec<(usize, usize)>,
    /// Of each server: only within one are finishes decided in their order.
    paths: Vec<Paths>,
    version: u64,
    /// Accounts by port.
    ports: Vec<Account>,
    lags: Lags,
}

impl Servers {
    /// Takes over the figures in force now.
    pub fn update(&mut self, classes: &dyn Classes, now_ns: u64) {
        let Some(plans) = classes.plans(&mut self.version) else {
            return;
        };
        if self.servers.len() == plans.len() {
            for (server, plan) in self.servers.iter_mut().zip(&plans) {
                server.change(plan, now_ns);
            }
            return;
        }
        self.servers = plans.iter().map(Server::new).collect();
        self.paths.resize_with(plans.len(), Paths::default);
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

    /// Hands over a frame. Returns false if later frames have been decided on already.
    pub fn arrive(
        &mut self,
        port: usize,
        service: Service,
        frame: Frame,
        copy: Option<Frame>,
    ) -> bool {
        let (server, class) = self.places[service.number as usize - 1];
        let arrival = Arrival {
            at_ns: service.arrival_ns,
            class,
            bytes: service.bytes,
            ds: ds::of(frame.bytes()),
        };
        if self.ports.len() <= port {
            self.ports.resize_with(port + 1, Account::default);
        }
        self.ports[port].waiting += 1;
        let copy_ns = copy.as_ref().map_or(u64::MAX, |_| service.copy_ns);
        let departs = service.departure_ns.min(copy_ns);
        let delay_ns = departs.saturating_sub(service.arrival_ns);
        let wire_ns = self.servers[server].wire_ns(service.bytes);
        let held = Held {
            frame,
            port,
            service,
            copy,
            lag: self.lags.put(delay_ns.saturating_add(wire_ns)),
        };
        let place = self.shelf.put(held);
        self.servers[server].arrive(arrival, place)
    }

    /// Returns the next frames that are done with, all having been read that had arrived by `until_ns`.
    pub fn decide(&mut self, until_ns: u64) -> Option<Done> {
        let mut servers = self.servers.iter_mut().zip(&mut self.paths);
        let (decision, paths) =
            servers.find_map(|(server, paths)| Some((server.decide(until_ns)?, paths)))?;
        let (place, finish_ns, marked) = match decision {
            Decision::Served(served) => (served.token, Some(served.finish_ns), served.marked),
            Decision::Dropped(dropped) => (dropped.token, None, false),
        };
        let Held {
            mut frame,
            port,
            service,
            mut copy,
            lag,
        } = self.shelf.take(place)?;
        self.lags.take(lag);
        if marked {
            ds::mark(frame.bytes_mut());
            if let Some(copy) = &mut copy {
                ds::mark(copy.bytes_mut());
            }
        }
        self.ports[port].waiting -= 1;
        self.ports[port].decided(&service, finish_ns.is_some(), copy.is_some());
        let Some(finish_ns) = finish_ns.filter(|_| !service.lost) else {
            return Some(Done::Lost { port, frame, copy });
        };
        let behind =
            |departure_ns: u64| finish_ns + departure_ns.saturating_sub(service.arrival_ns);
        let mut departs = behind(service.departure_ns);
        if !service.overtakes {
            departs = paths.in_order(service.path, departs);
        }
        Some(Done::Departs {
            port,
            frame: (departs, frame),
            copy: copy.map(|copy| (behind(service.copy_ns), copy)),
        })
    }

    /// Returns when to decide on what is known: not before all that had arrived has been read, and in time for
    /// what departs first.
    pub fn due_ns(&self) -> Option<u64> {
        let next = self.servers.iter().filter_map(Server::next_ns).min()?;
        Some(next.saturating_add(self.lags.least_ns()))
    }

    /// Returns the number of a port's frames that wait here.
    pub fn waiting(&self, port: usize) -> u64 {
        self.ports.get(port).map_or(0, |account| account.waiting)
    }

    /// Returns the counts of a port's frames that have left; `None`: the port had no frame.
    pub fn served(&self, port: usize) -> Option<&Served> {
        self.ports.get(port).map(|account| &account.served)
    }

    fn counts(&self) -> impl Iterator<Item = (u32, ClassCount)> {
        let places = (1..).zip(&self.places);
        places.map(|(number, (server, class))| (number, self.servers[*server].count(*class)))
    }

    /// Returns the account of classes that packets of this worker have met.
    pub fn account(&self) -> Vec<(u32, abi::emud_class)> {
        let met = self
            .counts()
            .filter(|(_, count)| *count != ClassCount::default());
        met.map(|(number, count)| (number, of_count(&count)))
            .collect()
    }

    /// Ends the servers. Returns the frames that still wait, which count as sent, without those that are lost.
    pub fn drain(&mut self) -> Vec<(usize, Frame)> {
        self.places.clear();
        let servers = std::mem::take(&mut self.servers).into_iter();
        let places = servers.flat_map(Server::into_waiting);
        let mut frames = Vec::new();
        for held in places.filter_map(|place| self.shelf.take(place)) {
            let account = &mut self.ports[held.port];
            account.waiting -= 1;
            account.decided(&held.service, true, held.copy.is_some());
            if !held.service.lost {
                let both = std::iter::once(held.frame).chain(held.copy);
                frames.extend(both.map(|frame| (held.port, frame)));
            }
        }
        frames
    }
}

fn of_count(count: &ClassCount) -> abi::emud_class {
    abi::emud_class {
        sent_packets: count.sent_packets,
        sent_bytes: count.sent_bytes,
        marked: count.marked,
        full: count.full,
        expired: count.expired,
        managed: count.managed,
        wait_ns: count.wait_ns,
        longest_wait_ns: count.longest_wait_ns,
        backlog_packets: count.backlog_packets,
        backlog_bytes: count.backlog_bytes,
    }
}

#[cfg(test)]
mod tests;
