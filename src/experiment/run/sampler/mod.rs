// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the links' counters repeatedly: a line for each interval, and the emulator's failures in
//! it.

mod changed;
mod counted;
mod host;
mod watched;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use emud_monitor::log::{ClassCounted, Line, LineSender};

use super::counts::Counts;
use super::links::Seen;
use super::media_watch::{Found, MediaWatch};
use super::network::Network;
use super::{Progress, links};
use crate::experiment::scenario::Link;
use crate::host::spawn;
use changed::State;
use host::HostWatch;
use watched::Watched;

/// Interval of reading the kernel's notifications of changes.
const HEAR_EVERY: Duration = Duration::from_millis(100);

/// A sampling thread. Without lines it still checks for failures.
#[derive(Debug)]
pub struct Sampler {
    ask: Sender<Sender<()>>,
    thread: JoinHandle<Found>,
}

/// The parameters of a sampler.
pub struct Parts {
    pub network: Arc<Network>,
    pub every: Duration,
    /// Whether to write a line for each interval.
    pub lines: bool,
    pub log: LineSender,
    pub progress: Progress,
}

impl Sampler {
    /// Starts sampling.
    pub fn start(parts: Parts) -> io::Result<Self> {
        let (ask, asked) = channel();
        let work = move || Work::new(parts).run(&asked);
        let thread = spawn("emud-sample", work)?;
        let sampler = Self { ask, thread };
        // From here on counts belong to the first interval.
        sampler.now();
        Ok(sampler)
    }

    /// Ends the current interval; the next one begins now.
    pub fn now(&self) {
        let (answer, answered) = channel();
        if self.ask.send(answer).is_ok() {
            // The thread runs until this value is dropped.
            let _ = answered.recv();
        }
    }

    /// Takes a last sample, and returns the findings.
    pub fn finish(self) -> Found {
        drop(self.ask);
        match self.thread.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Work {
    parts: Parts,
    watched: Vec<Watched>,
    next_watch: Instant,
    /// Keyed by the link's name, class and direction.
    before: BTreeMap<(String, Option<String>, &'static str), Counts>,
    /// From which packets that are not IP are counted, keyed by the link's name and direction or class.
    foreign_since: BTreeMap<String, Counts>,
    /// With their time, keyed by the names of link, bottleneck and class.
    classes_before: BTreeMap<(String, String, Option<String>), (u64, ClassCounted)>,
    state: BTreeMap<String, State>,
    /// Index of the interface and number of the attachment, by the link's name: the name of an interface
    /// may move to another one.
    identity: BTreeMap<String, (u32, u32)>,
    media: MediaWatch,
    host: HostWatch,
    /// This is the last check.
    last: bool,
    found: Found,
}

impl Work {
    fn new(parts: Parts) -> Self {
        // Programs of the preparation may have changed a link.
        let first = parts.network.first.iter();
        let identity = first.map(|(name, seen)| (name.clone(), (seen.report.ifindex, seen.id)));
        let identity = identity.collect();
        Self {
            watched: vec![],
            next_watch: Instant::now(),
            parts,
            before: BTreeMap::new(),
            foreign_since: BTreeMap::new(),
            classes_before: BTreeMap::new(),
            state: BTreeMap::new(),
            identity,
            media: MediaWatch::default(),
            host: HostWatch::default(),
            last: false,
            found: Found::default(),
        }
    }

    fn run(mut self, asked: &Receiver<Sender<()>>) -> Found {
        self.begin();
        let mut next = Instant::now() + self.parts.every;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match asked.recv_timeout(left.min(HEAR_EVERY)) {
                Ok(answer) => {
                    self.look();
                    self.watch(true);
                    next = Instant::now() + self.parts.every;
                    // The requester may be gone.
                    let _ = answer.send(());
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < next => self.watch(false),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    self.watch(false);
                    // Late on a busy machine, but never in a burst.
                    next = (next + self.parts.every).max(Instant::now());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.media.settle(&self.parts.network);
                    self.last = true;
                    self.look();
                    self.watch(true);
                    return self.found;
                }
            }
        }
    }

    fn look(&mut self) {
        let network = self.parts.network.clone();
        let mut packets = 0;
        for (link, _) in &network.links {
            match links::look(&network.place, link) {
                Ok(seen) => match self.is_no_longer(link, &seen) {
                    Some(why) => {
                        let why = format!("link {}: {}: {why}", link.name, link.interface);
                        self.gone(link, &why);
                    }
                    None => {
                        packets += self.link(link, &seen.report);
                        if let Some(toml) = seen.toml {
                            self.changed(link, &seen.report, toml);
                        }
                    }
                },
                Err(e) => self.gone(link, &e.to_string()),
            }
        }
        let log = self.parts.lines.then_some(&self.parts.log);
        packets += self.media.look(&network, log, &mut self.found);
        if let Some(log) = log
            && let Some(sample) = self.host.look()
        {
            log.line(Line::Host(Box::new(sample)));
        }
        self.parts.progress.packets(packets);
    }

    /// Returns why it is no longer the link of the first check. One that was attached again counts from 0,
    /// and packets passed without emulation meanwhile; those behind the end of a link are not counted.
    fn is_no_longer(&mut self, link: &Link, seen: &Seen) -> Option<&'static str> {
        let now = (seen.report.ifindex, seen.id);
        let first = *self.identity.entry(link.name.clone()).or_insert(now);
        match (first.0 == now.0, first.1 == now.1) {
            (false, _) => Some("another interface has this name now"),
            (true, false) => Some("the link was removed and attached again"),
            (true, true) if seen.over => Some("the link has ended by itself"),
            (true, true) => None,
        }
    }
}
