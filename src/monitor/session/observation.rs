// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of a run: takes events and writes lines.
//!
//! Longer than 400 lines: each kind of event changes the state of one loop.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::time::Duration;

use emud_monitor::config::Config;
use emud_monitor::event::{Alarm, Clear, Event, Hook, Resource, Scope, TAMPERED, Watched};
use emud_monitor::log::{
    ClearLine, Drops, EndReason, HooksLine, Line, Log, MetricLine, PerResource,
};
use emud_monitor::psi::Psi;
use emud_monitor::{Emulated, MonitorError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Interval, interval_at, sleep};

use super::Source;
use super::ended::{Ended, Measures, Stop, process_ns};
use super::tally::{Origin, Tally};
use super::witness::Witness;
use crate::host::{nanoseconds, now_ns};
use crate::text::to_stderr;

/// Interval of checks for drops.
const DROPS_EVERY: Duration = Duration::from_secs(1);
/// Two reports of the same tampering within this time, ns, count as one.
const SAME_NS: u64 = 2_000_000_000;
/// Maximum number of events that are still taken out of the ring buffer after the end.
const LAST_EVENTS: usize = 1000;

/// Requests of the other thread.
#[derive(Debug)]
pub enum Request {
    /// An alarm from the control socket; the answer follows when its line is written or the alarm
    /// is rejected.
    Alarm(Box<Alarm>, oneshot::Sender<Result<(), String>>),
    /// A figure of a program, likewise.
    Metric(MetricLine, oneshot::Sender<Result<(), String>>),
    /// Resets the limit of every resource.
    Reset(oneshot::Sender<Result<(), String>>),
    /// Returns the figures for the metrics.
    Measure(oneshot::Sender<Result<Measures, String>>),
    /// Sets the devices with emulated links.
    Emulated(Vec<Emulated>),
    /// Reports that the devices with emulated links are unknown.
    NoLinks(String),
}

/// Limits after which a run ends; `None`: no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until {
    /// Time since the start.
    pub duration: Option<Duration>,
    /// Number of alarm lines.
    pub alarms: Option<u64>,
}

/// The parts of a run besides the source of events.
#[derive(Debug)]
pub struct Setup {
    /// The definition of contention.
    pub config: Config,
    /// Where lines are written.
    pub log: Log,
    /// Pressure stall information with its hooks.
    pub psi: Option<(Psi, Vec<Hook>)>,
    /// Socket for reports; `None`: there is no socket.
    pub socket: Option<String>,
    /// Requests of clients of the socket.
    pub requests: mpsc::Receiver<Request>,
    /// Receives the JSON of each alarm; `None`: no command runs.
    pub commands: Option<mpsc::Sender<String>>,
    /// Notes for the start line.
    pub notes: Vec<String>,
    /// Records the episodes of an experiment; `None`: they are not judged together.
    pub witness: Option<Witness>,
    /// Time limit for a slow reader and for a slow disk at the end, each.
    pub patience: Duration,
}

/// A run.
#[derive(Debug)]
pub struct Observation<S> {
    pub(crate) source: S,
    pub(crate) setup: Setup,
    pub(crate) tally: Tally,
    pub(crate) overflowed: u64,
    pub(crate) process_ns_before: u64,
    told: (u64, PerResource<u64>),
    links_unknown: bool,
    /// Whether it was printed that not all disks are watched.
    disks_said: bool,
    /// The parts of a link last reported as missing, and when; by namespace and ifindex.
    tampered: BTreeMap<(u32, u32), ([String; 2], u64)>,
    pub(crate) started: bool,
}

enum Step {
    Event(Origin, Event),
    Request(Request),
    Drops,
    Stop(Stop),
}

impl<S: Source> Observation<S> {
    /// Creates a run; it writes nothing yet.
    pub fn new(source: S, setup: Setup) -> Self {
        let tally = Tally::new(setup.config.alarms.limit);
        Self {
            told: (0, tally.suppressed(&Default::default())),
            source,
            setup,
            tally,
            overflowed: 0,
            process_ns_before: process_ns(),
            links_unknown: false,
            disks_said: false,
            tampered: BTreeMap::new(),
            started: false,
        }
    }

    /// Writes the start line, then a line for each event, until a limit is reached or `stop`
    /// returns the reason for the end. [`Observation::finish`] writes the end line.
    pub async fn run(&mut self, until: Until, stop: impl Future<Output = EndReason>) -> Ended {
        let over = async {
            tokio::select! {
                reason = stop => reason,
                () = after(until.duration) => EndReason::Duration,
            }
        };
        let stop = match self.start() {
            Ok(()) => self.until(pin!(over), until.alarms).await,
            Err(stop) => stop,
        };
        let mono_ns = now_ns();
        let stop = match stop {
            Stop::Over(EndReason::Duration | EndReason::Signal | EndReason::Done) => {
                self.last_events().await.err().unwrap_or(stop)
            }
            stop => stop,
        };
        Ended::new(stop, mono_ns, &self.source, self.process_ns_before)
    }

    async fn until(
        &mut self,
        mut over: Pin<&mut impl Future<Output = EndReason>>,
        alarms: Option<u64>,
    ) -> Stop {
        let mut every = interval_at(Instant::now() + DROPS_EVERY, DROPS_EVERY);
        loop {
            let step = self.step(over.as_mut(), &mut every).await;
            if let Err(stop) = self.take(step) {
                return stop;
            }
            if alarms.is_some_and(|alarms| self.tally.total() >= alarms) {
                return Stop::Over(EndReason::StopAfter);
            }
        }
    }

    /// Waits for the first of several events. Events of the kernel have priority over requests.
    async fn step(
        &mut self,
        over: Pin<&mut impl Future<Output = EndReason>>,
        every: &mut Interval,
    ) -> Step {
        tokio::select! {
            biased;
            reason = over => Step::Stop(Stop::Over(reason)),
            event = self.source.next() => match event {
                Ok(event) => Step::Event(Origin::Kernel, event),
                Err(e) => Step::Stop(e.into()),
            },
            event = pressure(&mut self.setup.psi) => Step::Event(Origin::Psi, event),
            Some(request) = self.setup.requests.recv() => Step::Request(request),
            // Success requires no action.
            Err(e) = self.setup.log.progress() => Step::Stop(e.into()),
            _ = every.tick() => Step::Drops,
        }
    }

    fn take(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Event(origin, event) => self.event(origin, event),
            Step::Request(request) => self.request(request),
            Step::Drops => self.drops(),
            Step::Stop(stop) => Err(stop),
        }
    }

    /// Takes the events from before the end that are still in the ring buffer.
    async fn last_events(&mut self) -> Result<(), Stop> {
        for _ in 0..LAST_EVENTS {
            tokio::select! {
                biased;
                event = self.source.next() => self.event(Origin::Kernel, event?)?,
                () = ready(()) => break,
            }
        }
        Ok(())
    }

    fn event(&mut self, origin: Origin, event: Event) -> Result<(), Stop> {
        match event {
            Event::Alarm(alarm) => self.alarm(origin, alarm),
            Event::Clear(clear) => match self.tally.clear(origin, clear) {
                Some(clear) => self.clear(clear),
                None => Ok(()),
            },
        }
    }

    fn alarm(&mut self, origin: Origin, alarm: Alarm) -> Result<(), Stop> {
        let Some(alarm) = self.tally.alarm(origin, alarm) else {
            return Ok(());
        };
        if let Some(witness) = &mut self.setup.witness {
            witness.alarm(origin, &alarm);
        }
        let json = self.write(&Line::Alarm(alarm))?;
        let sent = (self.setup.commands.as_ref()).map(|commands| commands.try_send(json));
        if let Some(Err(TrySendError::Full(_) | TrySendError::Closed(_))) = sent {
            self.overflowed += 1;
        }
        Ok(())
    }

    fn clear(&mut self, clear: Clear) -> Result<(), Stop> {
        if let Some(witness) = &mut self.setup.witness {
            witness.clear(&clear);
        }
        self.write(&Line::Clear(ClearLine::from(clear))).map(drop)
    }

    fn request(&mut self, request: Request) -> Result<(), Stop> {
        // If the requester is gone, the answer is dropped.
        match request {
            Request::Alarm(mut alarm, answer) => {
                if self.unwanted(&alarm) {
                    let _ = answer.send(Err("the criterion emulator is switched off".into()));
                    return Ok(());
                }
                if self.in_time(&mut alarm) || self.told_before(&alarm) {
                    let _ = answer.send(Ok(()));
                    return Ok(());
                }
                self.alarm(Origin::Socket, *alarm)?;
                let _ = answer.send(Ok(()));
            }
            Request::Metric(line, answer) => {
                self.write(&Line::Metric(line))?;
                let _ = answer.send(Ok(()));
            }
            Request::Reset(answer) => {
                self.tally.reset();
                let result = self.source.reset_limit();
                let _ = answer.send(result.map_err(|e| e.to_string()));
            }
            Request::Measure(answer) => {
                let _ = answer.send(self.measure().map_err(|e| e.to_string()));
            }
            Request::Emulated(devices) => return self.emulated(&devices),
            Request::NoLinks(error) => self.no_links(&error),
        }
        Ok(())
    }

    fn unwanted(&self, alarm: &Alarm) -> bool {
        alarm.resource == Resource::Emulator && self.setup.config.emulator.is_none()
    }

    /// Returns whether an alarm was reported before: a holder and the search for emulated links detect the same
    /// tampering. The number of a namespace alone is not the link's: the next namespace has it again.
    fn told_before(&mut self, alarm: &Alarm) -> bool {
        let Scope::Link {
            failure: TAMPERED,
            what: Some(what),
            name,
            ifindex,
            netns,
        } = &alarm.scope
        else {
            return false;
        };
        let said = ([name, what].map(String::clone), alarm.mono_ns);
        let before = self.tampered.insert((*netns, *ifindex), said);
        before.is_some_and(|(before, at_ns)| {
            before.each_ref() == [name, what] && alarm.mono_ns.saturating_sub(at_ns) < SAME_NS
        })
    }

    /// Holders report every packet from 1 ms on; the threshold determines what is late here.
    fn in_time(&self, alarm: &mut Alarm) -> bool {
        if !matches!(
            alarm.scope,
            Scope::Link {
                failure: "late",
                ..
            }
        ) {
            return false;
        }
        let emulator = self.setup.config.emulator.as_ref();
        let late_ns = emulator.map_or(0, |emulator| nanoseconds(emulator.late));
        alarm.threshold = alarm.threshold.max(late_ns);
        alarm.value < late_ns
    }

    /// Judges packets of these devices from now on. The first ones attach further hooks.
    fn emulated(&mut self, devices: &[Emulated]) -> Result<(), Stop> {
        let tried = self.source.hooks().len();
        if let Err(e) = self.source.set_emulated(devices) {
            self.no_links(&e.to_string());
        }
        let hooks = self.source.hooks().get(tried..).unwrap_or_default();
        if hooks.is_empty() {
            return Ok(());
        }
        let line = HooksLine {
            mono_ns: now_ns(),
            hooks: hooks.to_vec(),
            watched: self.watched(),
        };
        self.write(&Line::Hooks(line)).map(drop)
    }

    fn no_links(&mut self, error: &str) {
        self.links_unknown = true;
        to_stderr(format_args!(
            "emud: not all emulated links are watched: {error}"
        ));
    }

    fn measure(&self) -> Result<Measures, MonitorError> {
        let dropped = self.source.dropped()?;
        Ok(Measures {
            alarms: self.tally.alarms().clone(),
            suppressed: self.tally.suppressed(&dropped),
            in_contention: self.tally.in_contention(),
            watched: self.watched(),
            ring_full: dropped.ring_full,
            skipped: Tally::skipped(&dropped),
            costs: self.source.costs()?,
        })
    }

    /// Writes a line if more was dropped than the last one reported.
    fn drops(&mut self) -> Result<(), Stop> {
        let mono_ns = now_ns();
        let dropped = self.source.dropped()?;
        self.tally.look(&dropped, mono_ns);
        if let Some(why) = self.disks_unknown(&dropped)
            && !std::mem::replace(&mut self.disks_said, true)
        {
            to_stderr(format_args!("emud: the disks are not all watched: {why}"));
        }
        let now = (dropped.ring_full, self.tally.suppressed(&dropped));
        if now == self.told {
            return Ok(());
        }
        self.told = now.clone();
        let (ring_full, suppressed) = now;
        self.write(&Line::Drops(Drops {
            mono_ns,
            ring_full,
            suppressed,
        }))
        .map(drop)
    }

    pub(crate) fn write(&mut self, line: &Line) -> Result<String, Stop> {
        Ok(self.setup.log.write(line)?)
    }

    /// Returns for every resource whether it is watched. Applications are watched if they can
    /// report.
    pub(crate) fn watched(&self) -> PerResource<Watched> {
        let watched = |resource| match resource {
            Resource::Application if self.setup.socket.is_some() => Watched::Yes,
            Resource::Application => Watched::Unknown,
            Resource::Emulator if self.links_unknown => Watched::Unknown,
            resource => match self.source.watched(resource) {
                Watched::No => self.watched_by_pressure(resource),
                watched => watched,
            },
        };
        let pair = |resource| (resource, watched(resource));
        Resource::ALL.into_iter().map(pair).collect()
    }

    fn watched_by_pressure(&self, resource: Resource) -> Watched {
        let criterion = match resource {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Disk => "disk",
            _ => return Watched::No,
        };
        let mut hooks = self.setup.psi.iter().flat_map(|(_, hooks)| hooks);
        match hooks.find(|hook| hook.criterion == criterion) {
            Some(hook) if hook.refused.is_some() => Watched::Unknown,
            Some(_) => Watched::Yes,
            None => Watched::No,
        }
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

async fn pressure(psi: &mut Option<(Psi, Vec<Hook>)>) -> Event {
    match psi {
        Some((psi, _)) => psi.next().await,
        None => std::future::pending().await,
    }
}
