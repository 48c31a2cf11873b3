// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the links' counters repeatedly: a line for each interval, and the emulator's failures in
//! it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use emud_monitor::log::{
    ClassCounted, ClassSample, Line, LineSender, LinkEvent, LinkLine, Sample, mono_ns,
};

use crate::datapath::LinkError;
use crate::datapath::show::report::Report;
use crate::datapath::watch::Watch;
use crate::experiment::scenario::Link;
use crate::monitor::session::experiment::Failure;
use crate::netlink::{Changes, Netlink, Notices};

use super::counts::{Counts, of_class, sample};
use super::media_watch::MediaWatch;
use super::network::Network;
use super::{Progress, RunError, links};

/// The sampler's findings besides its lines.
#[derive(Debug, Default)]
pub struct Found {
    pub failures: Vec<Failure>,
    /// Links that were removed or tampered with, a sentence for each.
    pub gone: Vec<String>,
}

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
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(parts: Parts) -> io::Result<Self> {
        let (ask, asked) = channel();
        let work = move || Work::new(parts).run(&asked);
        let thread = thread::Builder::new()
            .name("emud-sample".into())
            .spawn(work)?;
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
        self.now();
        drop(self.ask);
        match self.thread.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Interval of reading the kernel's notifications of changes.
const HEAR_EVERY: Duration = Duration::from_millis(100);
/// Interval of checks for changes without a notification: a stopped holder, gso_max_segs.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// The same per link, whose check takes up to 1 ms: 5 % of a CPU.
const WATCH_EACH: Duration = Duration::from_millis(20);

/// A link, and its notifications.
struct Watched {
    link: Link,
    nl: Netlink,
    notices: Notices,
    watch: Watch,
    /// The missing parts at the last check.
    told: Vec<String>,
}

impl Watched {
    fn new(network: &Network, link: &Link) -> Result<Self, RunError> {
        let failed = |error: LinkError| links::failed(link, error);
        let opened = network.place.within(&link.node, || {
            let mut nl = Netlink::open()?;
            let notices = Notices::open()?;
            let ifindex = nl.link(&link.interface)?.index;
            let mut watch = Watch::new(ifindex);
            // From here on the devices of the link are known.
            let found = watch.look(&mut nl)?;
            Ok::<_, LinkError>((nl, notices, watch, found))
        })?;
        // The first check that counts reports what is already missing.
        let (nl, notices, watch, _) = opened.map_err(failed)?;
        Ok(Self {
            link: link.clone(),
            nl,
            notices,
            watch,
            told: vec![],
        })
    }

    /// Returns what is missing or changed; `None`: the same as at the last check. Unless `always`,
    /// it only checks after a notification.
    fn look(&mut self, always: bool) -> Option<Vec<String>> {
        let changes = self.notices.take();
        let concerned = || changes.concern(&self.watch.interfaces());
        if !always && (changes == Changes::default() || !concerned()) {
            return None;
        }
        // If the link cannot be read, reading its counters reports it.
        let found = self.watch.look(&mut self.nl).ok()?;
        (found != self.told).then(|| {
            self.told.clone_from(&found);
            found
        })
    }
}

struct Work {
    parts: Parts,
    watched: Vec<Watched>,
    next_watch: Instant,
    /// Keyed by the link's name, class and direction.
    before: BTreeMap<(String, Option<String>, &'static str), Counts>,
    /// With their time, keyed by the names of link, bottleneck and class.
    classes_before: BTreeMap<(String, String, Option<String>), (u64, ClassCounted)>,
    state: BTreeMap<String, State>,
    /// By the link's name: the name of an interface may move to another one.
    ifindex: BTreeMap<String, u32>,
    media: MediaWatch,
    found: Found,
}

/// What may change while a link is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    toml: String,
    phase: Option<String>,
    gone: bool,
}

impl Work {
    fn new(parts: Parts) -> Self {
        Self {
            watched: vec![],
            next_watch: Instant::now(),
            parts,
            before: BTreeMap::new(),
            classes_before: BTreeMap::new(),
            state: BTreeMap::new(),
            ifindex: BTreeMap::new(),
            media: MediaWatch::default(),
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
                Err(RecvTimeoutError::Disconnected) => return self.found,
            }
        }
    }

    fn begin(&mut self) {
        let network = self.parts.network.clone();
        for (link, _) in &network.links {
            match Watched::new(&network, link) {
                Ok(watched) => self.watched.push(watched),
                Err(e) => {
                    let why = format!("link {} is not watched for tampering: {e}", link.name);
                    self.found.gone.push(why);
                }
            }
        }
    }

    /// Checks whether another process has deleted or changed a part of a link.
    fn watch(&mut self, always: bool) {
        let now = Instant::now();
        let due = always || now >= self.next_watch;
        if due {
            let each = WATCH_EACH * u32::try_from(self.watched.len()).unwrap_or(u32::MAX);
            self.next_watch = now + WATCH_EVERY.max(each);
        }
        for watched in &mut self.watched {
            let before = watched.told.clone();
            let Some(what) = watched.look(due) else {
                continue;
            };
            let Link {
                name,
                node,
                interface,
                ..
            } = &watched.link;
            let new = what.iter().filter(|one| !before.contains(one));
            self.found.gone.extend(new.map(|one| {
                format!("link {name} ({interface} of {node}) was tampered with: {one}")
            }));
            self.parts.log.line(Line::Link(LinkLine {
                mono_ns: mono_ns(),
                link: name.clone(),
                event: LinkEvent::Tampered,
                what,
                toml: None,
                phase: None,
            }));
        }
    }

    fn look(&mut self) {
        let network = self.parts.network.clone();
        let mut packets = 0;
        for (link, _) in &network.links {
            match links::look(&network.place, link) {
                Ok((report, _)) if !self.is_same(link, report.ifindex) => {
                    let why = "another interface has this name now";
                    self.gone(
                        link,
                        &format!("link {}: {}: {why}", link.name, link.interface),
                    );
                }
                Ok((report, toml)) => {
                    packets += self.link(link, &report);
                    self.changed(link, &report, toml);
                }
                Err(e) => self.gone(link, &e.to_string()),
            }
        }
        let log = self.parts.lines.then_some(&self.parts.log);
        packets += self.media.look(&network, log, &mut self.found);
        self.parts.progress.packets(packets);
    }

    /// Returns whether the interface is the one of the first check.
    fn is_same(&mut self, link: &Link, ifindex: u32) -> bool {
        *self.ifindex.entry(link.name.clone()).or_insert(ifindex) == ifindex
    }

    /// Returns the packets so far.
    fn link(&mut self, link: &Link, report: &Report) -> u64 {
        let mut packets = 0;
        for (name, own) in [("up", &report.up), ("down", &report.down)] {
            let Some(own) = own else { continue };
            let counts = Counts::of(&own.link, Some(own));
            packets += counts.counted.packets;
            if let Some(before) = self.interval(link, None, name, &counts) {
                self.failures(link, name, &before, &counts);
            }
        }
        for class in &report.matching.links {
            for (name, of) in [("up", &class.up), ("down", &class.down)] {
                let Some(of) = of else { continue };
                let counts = Counts::of(of, None);
                packets += counts.counted.packets;
                self.interval(link, Some(&class.name), name, &counts);
            }
        }
        self.classes(link, report);
        packets
    }

    /// Writes a line for each class of a bottleneck in which packets wait.
    fn classes(&mut self, link: &Link, report: &Report) {
        let all = (report.bottlenecks.iter()).flat_map(|b| b.classes.iter().map(move |c| (b, c)));
        for (bottleneck, class) in all.filter(|(_, class)| class.queue.is_some()) {
            let (mono_ns, now) = (mono_ns(), of_class(class));
            let key = (
                link.name.clone(),
                bottleneck.name.clone(),
                class.name.clone(),
            );
            let before = self.classes_before.insert(key, (mono_ns, now));
            let Some((since_ns, before)) = before.filter(|_| self.parts.lines) else {
                continue;
            };
            self.parts.log.line(Line::Class(Box::new(ClassSample {
                mono_ns,
                link: link.name.clone(),
                bottleneck: bottleneck.name.clone(),
                class: class.name.clone(),
                interval_ns: mono_ns.saturating_sub(since_ns),
                counted: now.since(&before),
                backlog_packets: class.backlog_packets,
                backlog_bytes: class.backlog_bytes,
            })));
        }
    }

    /// Writes and returns a line for the interval since the previous check.
    fn interval(
        &mut self,
        link: &Link,
        class: Option<&str>,
        direction: &'static str,
        now: &Counts,
    ) -> Option<Counts> {
        let key = (link.name.clone(), class.map(str::to_owned), direction);
        let before = self.before.insert(key, now.clone())?;
        if let Some(sample) = sample(&before, now).filter(|_| self.parts.lines) {
            self.parts.log.line(Line::Sample(Box::new(Sample {
                link: link.name.clone(),
                direction: direction.to_owned(),
                class: class.map(str::to_owned),
                ..sample
            })));
        }
        Some(before)
    }

    fn failures(&mut self, link: &Link, direction: &str, before: &Counts, now: &Counts) {
        let grown = now.counted.since(&before.counted);
        let failed = [
            (
                grown.engine_dropped,
                "were dropped by the engine, not by the link",
            ),
            (grown.untouched, "passed without emulation"),
            (
                now.disordered.saturating_sub(before.disordered),
                "were read after their bottleneck had decided on later ones",
            ),
        ];
        let failed = failed.into_iter().filter(|(packets, _)| *packets > 0);
        self.found
            .failures
            .extend(failed.map(|(packets, what)| Failure {
                since_mono_ns: before.mono_ns,
                until_mono_ns: now.mono_ns,
                sentence: format!("link {}, {direction}: {packets} packets {what}", link.name),
            }));
    }

    /// Writes a line if the link has changed.
    fn changed(&mut self, link: &Link, report: &Report, toml: String) {
        let now = State {
            toml,
            phase: phase(report),
            gone: false,
        };
        let before = self.state.insert(link.name.clone(), now.clone());
        let Some(before) = before.filter(|before| *before != now) else {
            return;
        };
        self.parts.log.line(Line::Link(LinkLine {
            mono_ns: mono_ns(),
            link: link.name.clone(),
            event: LinkEvent::Changed,
            what: vec![],
            toml: (before.toml != now.toml).then_some(now.toml),
            phase: now.phase,
        }));
    }

    fn gone(&mut self, link: &Link, why: &str) {
        let state = self.state.entry(link.name.clone()).or_insert(State {
            toml: String::new(),
            phase: None,
            gone: false,
        });
        if !std::mem::replace(&mut state.gone, true) {
            self.found.gone.push(why.to_owned());
        }
    }
}

/// Describes the phase of a profile with phases.
fn phase(report: &Report) -> Option<String> {
    let timeline = (report.up.iter().chain(&report.down)).find_map(|d| d.link.timeline.as_ref())?;
    let phase = timeline.phase.as_ref()?;
    Some(match &phase.name {
        Some(name) => format!("{} {name}", phase.number),
        None => phase.number.to_string(),
    })
}
