// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure stall information: the kernel's measure of the time that tasks wait. It is a second
//! opinion, slower than the criteria and without shares, but it needs no program.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use crate::config;
use crate::criteria::table::ns;
use crate::event::{Alarm, Clear, Event, Hook, Resource, Scope, Unit};
use crate::log::mono_ns;

/// Name of the file, the resource, and the name of the criterion.
const FILES: [(&str, Resource, &str); 3] = [
    ("cpu", Resource::Cpu, "cpu"),
    ("memory", Resource::Memory, "memory"),
    ("io", Resource::Disk, "disk"),
];

/// The kernel's armed triggers; dropping it disarms them.
#[derive(Debug)]
pub struct Psi {
    triggers: Vec<Trigger>,
    config: config::Psi,
    episodes: u64,
    pending: VecDeque<Event>,
}

#[derive(Debug)]
struct Trigger {
    fd: AsyncFd<OwnedFd>,
    of: &'static str,
    resource: Resource,
    running: Option<Running>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    episode: u64,
    since_mono_ns: u64,
    last_mono_ns: u64,
    over_at: Instant,
}

impl Psi {
    /// Arms one trigger each for CPU, memory and I/O, and returns which of them the kernel
    /// accepted. Must be called within a tokio runtime with io and time enabled.
    pub fn open(config: config::Psi) -> (Self, Vec<Hook>) {
        let mut psi = Self {
            triggers: vec![],
            config,
            episodes: 0,
            pending: VecDeque::new(),
        };
        let mut hooks = vec![];
        for (of, resource, criterion) in FILES {
            let opened = arm(of, config).and_then(|fd| Trigger::new(fd, of, resource));
            hooks.push(Hook {
                criterion: criterion.into(),
                hook: hook(of),
                refused: opened.as_ref().err().map(|e| refusal(e, config)),
                caveat: Some(
                    "stalled tasks of the whole host, up to one report per window, \
                     no value beyond the threshold, no shares"
                        .into(),
                ),
            });
            psi.triggers.extend(opened.ok());
        }
        (psi, hooks)
    }

    /// Waits for the next alarm, or for the end of one: two windows without a report. (The kernel
    /// reports up to once per window, so a single window without a report is not enough.) Never
    /// returns if no trigger is armed. Cancel safe.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            let over = self
                .triggers
                .iter()
                .filter_map(|t| Some(t.running?.over_at));
            let over = over.min();
            tokio::select! {
                nth = stalled(&self.triggers) => self.stalled(nth),
                () = until(over) => self.over(),
            }
        }
    }

    fn stalled(&mut self, nth: usize) {
        let now = mono_ns();
        let over_at = Instant::now() + 2 * self.config.window;
        let trigger = &mut self.triggers[nth];
        if let Some(running) = &mut trigger.running {
            running.last_mono_ns = now;
            running.over_at = over_at;
            return;
        }
        self.episodes += 1;
        let since_mono_ns = now.saturating_sub(ns(self.config.window));
        trigger.running = Some(Running {
            episode: self.episodes,
            since_mono_ns,
            last_mono_ns: now,
            over_at,
        });
        self.pending.push_back(Event::Alarm(Alarm {
            episode: self.episodes,
            mono_ns: now,
            resource: trigger.resource,
            scope: Scope::Psi { of: trigger.of },
            since_mono_ns,
            // The kernel reports that the threshold was reached, but not by how much.
            value: ns(self.config.stall),
            threshold: ns(self.config.stall),
            unit: Unit::Ns,
            hook: hook(trigger.of),
            shares: vec![],
            rest: 0.0,
        }));
    }

    fn over(&mut self) {
        let now = Instant::now();
        for trigger in &mut self.triggers {
            if let Some(running) = trigger.running.take_if(|running| running.over_at <= now) {
                self.pending.push_back(Event::Clear(Clear {
                    episode: running.episode,
                    mono_ns: mono_ns(),
                    resource: trigger.resource,
                    scope: Scope::Psi { of: trigger.of },
                    since_mono_ns: running.since_mono_ns,
                    until_mono_ns: running.last_mono_ns,
                    hook: hook(trigger.of),
                    shares: vec![],
                    rest: 0.0,
                }));
            }
        }
    }
}

impl Trigger {
    fn new(fd: OwnedFd, of: &'static str, resource: Resource) -> io::Result<Self> {
        // SAFETY: an owned descriptor is open and the same until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::PRIORITY) }?;
        Ok(Self {
            fd,
            of,
            resource,
            running: None,
        })
    }
}

/// Returns which trigger has a report.
async fn stalled(triggers: &[Trigger]) -> usize {
    tokio::select! {
        () = reported(triggers.first()) => 0,
        () = reported(triggers.get(1)) => 1,
        () = reported(triggers.get(2)) => 2,
    }
}

async fn reported(trigger: Option<&Trigger>) {
    if let Some(trigger) = trigger
        && let Ok(mut guard) = trigger.fd.ready(Interest::PRIORITY).await
    {
        // One readiness is one report.
        guard.clear_ready();
        return;
    }
    std::future::pending().await
}

fn hook(of: &str) -> String {
    format!("psi/{of}")
}

/// Arms a "some" trigger: at least one task is stalled.
fn arm(of: &str, config: config::Psi) -> io::Result<OwnedFd> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/pressure/{of}"))?;
    let (stall, window) = (config.stall.as_micros(), config.window.as_micros());
    file.write_all(format!("some {stall} {window}\0").as_bytes())?;
    Ok(file.into())
}

fn refusal(error: &io::Error, config: config::Psi) -> String {
    let even = config.window.as_nanos().is_multiple_of(2_000_000_000);
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "PSI is disabled: boot the kernel with psi=1".into(),
        Some(libc::ENOENT) => "the kernel is built without PSI".into(),
        Some(libc::EINVAL) if !even => {
            "without CAP_SYS_RESOURCE the window must be a multiple of 2 s".into()
        }
        _ => error.to_string(),
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendFlags, send};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    const CONFIG: config::Psi = config::Psi {
        stall: Duration::from_millis(100),
        window: Duration::from_millis(500),
    };

    /// Returns a trigger that reports with urgent data, which is the same poll event.
    fn fake() -> (Psi, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let teller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (fd, _) = listener.accept().unwrap();
        let psi = Psi {
            triggers: vec![Trigger::new(fd.into(), "io", Resource::Disk).unwrap()],
            config: CONFIG,
            episodes: 0,
            pending: VecDeque::new(),
        };
        (psi, teller)
    }

    fn report(teller: &TcpStream) {
        send(teller, b"!", SendFlags::OOB).unwrap();
    }

    #[tokio::test]
    async fn reports_are_one_episode_until_two_windows_are_silent() {
        let (mut psi, teller) = fake();
        report(&teller);
        let Event::Alarm(alarm) = psi.next().await else {
            panic!("no alarm")
        };
        assert_eq!(alarm.resource, Resource::Disk);
        assert_eq!(alarm.mono_ns - alarm.since_mono_ns, 500_000_000);
        let telling = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(600)).await;
                report(&teller);
            }
            (mono_ns(), teller)
        });
        let Event::Clear(clear) = psi.next().await else {
            panic!("no clear")
        };
        let (last, _teller) = telling.await.unwrap();
        assert_eq!(clear.episode, alarm.episode);
        assert!(clear.until_mono_ns.abs_diff(last) < 100_000_000);
        assert!(clear.mono_ns >= clear.until_mono_ns + 1_000_000_000);
    }

    #[tokio::test]
    async fn a_refusal_names_what_to_do() {
        let window = Duration::from_millis(700);
        let odd = config::Psi { window, ..CONFIG };
        let said = |errno| refusal(&io::Error::from_raw_os_error(errno), odd);
        assert!(said(libc::EOPNOTSUPP).contains("psi=1"));
        assert!(said(libc::EINVAL).contains("2 s"));
        assert!(said(libc::ENOENT).contains("without"));
    }
}
