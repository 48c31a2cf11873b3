// SPDX-License-Identifier: MIT OR Apache-2.0
//! An observation without a kernel: the test generates its events.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use emud::monitor::session::{
    Finished, MonitorSide, Observation, Request, Setup, SideParts, Source, Until,
};
use emud_monitor::event::{
    Alarm, Clear, Cost, Dropped, Event, Hook, Resource, Scope, Share, Unit, Watched,
};
use emud_monitor::log::{Clock, EndReason, FileLog, Format, Log, Outlet, mono_ns};
use emud_monitor::{Config, Emulated, MonitorError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The state that the simulated kernel reports.
#[derive(Debug, Default)]
pub struct Kernel {
    pub dropped: Mutex<Dropped>,
    pub resets: AtomicU32,
}

struct Fed {
    events: mpsc::UnboundedReceiver<Event>,
    kernel: Arc<Kernel>,
    hooks: Vec<Hook>,
    started_mono_ns: u64,
}

impl Source for Fed {
    async fn next(&mut self) -> Result<Event, MonitorError> {
        match self.events.recv().await {
            Some(event) => Ok(event),
            None => Err(MonitorError::Missing("event")),
        }
    }

    fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    fn watched(&self, resource: Resource) -> Watched {
        match resource {
            Resource::Memory => Watched::Unknown,
            Resource::Disk => Watched::No,
            _ => Watched::Yes,
        }
    }

    fn started_mono_ns(&self) -> u64 {
        self.started_mono_ns
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(4)
    }

    fn dropped(&self) -> Result<Dropped, MonitorError> {
        Ok(*self.kernel.dropped.lock().unwrap())
    }

    fn reset_limit(&mut self) -> Result<(), MonitorError> {
        self.kernel.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn shares_so_far(&mut self) -> Result<Vec<(u64, Vec<Share>)>, MonitorError> {
        Ok(vec![])
    }

    fn costs(&self) -> Result<Vec<Cost>, MonitorError> {
        let cost = |program: &str, events| Cost {
            program: program.into(),
            hook: "tp_btf/sched_switch".into(),
            events,
            timed: events,
            timed_ns: events * 100,
        };
        Ok(vec![cost("emud_switch", 1000), cost("emud_never", 0)])
    }

    fn empty_probe_ns(&self) -> f64 {
        40.0
    }

    /// The first device attaches a hook.
    fn set_emulated(&mut self, devices: &[Emulated]) -> Result<(), MonitorError> {
        if !devices.is_empty() {
            self.hooks.push(hook("emulator", "tp_btf/late", None, None));
        }
        Ok(())
    }
}

/// The settings of an observation.
#[derive(Default)]
pub struct Wanted {
    pub config: Config,
    pub parts: SideParts,
    pub until: Until,
    pub beside: Option<PathBuf>,
    pub text: bool,
    /// A link is emulated, as the other thread detects after the start.
    pub emulated: bool,
}

/// A running observation.
pub struct Running {
    pub events: Option<mpsc::UnboundedSender<Event>>,
    pub kernel: Arc<Kernel>,
    pub out: Option<BufReader<File>>,
    stop: Option<oneshot::Sender<()>>,
    observation: JoinHandle<Finished>,
}

pub fn run(wanted: Wanted) -> Running {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (events, fed) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let kernel = Arc::new(Kernel::default());
    let source = Fed {
        events: fed,
        kernel: kernel.clone(),
        hooks: hooks(),
        started_mono_ns: mono_ns(),
    };
    let observation = thread::spawn(move || observation(source, wanted, writer, stopped));
    Running {
        events: Some(events),
        kernel,
        out: Some(BufReader::new(File::from(reader))),
        stop: Some(stop),
        observation,
    }
}

fn observation(
    source: Fed,
    wanted: Wanted,
    writer: OwnedFd,
    stopped: oneshot::Receiver<()>,
) -> Finished {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = wanted.parts.control.is_some().then(|| "/here".to_owned());
        let (side, (mut from_side, commands)) = MonitorSide::start(wanted.parts).unwrap();
        let (to_here, requests) = mpsc::channel(64);
        if wanted.emulated {
            let (netns, ifindex) = (7, 2);
            let found = vec![Emulated { netns, ifindex }];
            to_here.send(Request::Emulated(found)).await.unwrap();
        }
        tokio::spawn(async move {
            while let Some(request) = from_side.recv().await {
                let _ = to_here.send(request).await;
            }
        });
        let beside = (wanted.beside).map(|path| FileLog::new(File::create(path).unwrap()).unwrap());
        let format = if wanted.text {
            Format::Text
        } else {
            Format::Json
        };
        let setup = Setup {
            config: wanted.config,
            log: Log::new(Clock::now(), format, Outlet::new(writer).unwrap(), beside),
            psi: None,
            socket,
            requests,
            commands,
            notes: vec!["cannot enable locking memory".into()],
            witness: None,
            patience: Duration::from_secs(2),
        };
        let mut observation = Observation::new(source, setup);
        let ended = observation
            .run(wanted.until, async {
                drop(stopped.await);
                EndReason::Signal
            })
            .await;
        observation.close();
        let ran = side.finish(std::future::pending()).await;
        observation.finish(ended, ran, None)
    })
}

impl Running {
    pub fn feed(&self, event: Event) {
        self.events.as_ref().unwrap().send(event).unwrap();
    }

    /// Returns the next line unchanged.
    pub fn text(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    pub fn line(&mut self) -> Value {
        let line = self.text();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// Returns all remaining lines.
    pub fn rest(&mut self) -> Vec<Value> {
        let lines = self.out.as_mut().unwrap().lines();
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    }

    /// As a signal does.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub fn finish(self) -> Finished {
        self.observation.join().unwrap()
    }
}

fn hook(criterion: &str, hook: &str, refused: Option<&str>, caveat: Option<&str>) -> Hook {
    Hook {
        criterion: criterion.into(),
        hook: hook.into(),
        refused: refused.map(Into::into),
        caveat: caveat.map(Into::into),
    }
}

fn hooks() -> Vec<Hook> {
    vec![
        hook("cpu", "tp_btf/sched_switch", None, Some("softirqs")),
        hook(
            "memory: page-in",
            "fentry/swap_read_folio",
            Some("EPERM"),
            None,
        ),
    ]
}

pub fn alarm(episode: u64, resource: Resource, scope: Scope, unit: Unit) -> Event {
    let now = mono_ns();
    Event::Alarm(Alarm {
        episode,
        mono_ns: now,
        resource,
        scope,
        since_mono_ns: now - 10_000_000,
        value: 7,
        threshold: 5,
        unit,
        hook: "perf/cpu-clock".into(),
        shares: vec![Share {
            group: "/a".into(),
            share: 0.75,
        }],
        rest: 0.25,
    })
}

pub fn cpu(episode: u64) -> Event {
    alarm(episode, Resource::Cpu, Scope::Cpu { cpu: 1 }, Unit::Ns)
}

pub fn clear(alarm: &Event) -> Event {
    let Event::Alarm(alarm) = alarm else {
        panic!("not an alarm")
    };
    Event::Clear(Clear {
        episode: alarm.episode,
        mono_ns: alarm.mono_ns + 5_000_000,
        resource: alarm.resource,
        scope: alarm.scope.clone(),
        since_mono_ns: alarm.since_mono_ns,
        until_mono_ns: alarm.mono_ns + 4_000_000,
        hook: "tp_btf/sched_switch".into(),
        shares: vec![],
        rest: 0.0,
    })
}
