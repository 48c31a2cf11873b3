// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out one host's part of a run, in a separate process: the agent writes lines to its
//! standard input and reads lines from its standard output. It ends when the agent does.
//!
//! Longer than 400 lines: the steps of a part, in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use emud_monitor::Config;
use tokio::sync::{mpsc, watch};

use super::clock::{Estimate, here, passes, path_mtu, probe};
use super::plan::{HostPlan, Peer};
use super::protocol::{Asked, Built, FromChild, HostResult, Ready, SetDone, ToChild, Turn, digest};
use super::tunnels::{Tunnels, Watched};
use super::underlay::{self, Added};
use super::{ALIVE_EVERY, FleetError, LEASE};
use crate::datapath::attach::HolderStart;
use crate::experiment::lab::{free_interface, this_network};
use crate::experiment::run::{Heard, Said, Set, Settings, Together, User, conduct};
use crate::host::now_ns;
use crate::netlink::{OVERHEAD_IPV4, OVERHEAD_IPV6};
use crate::profile::Profile;

/// Settings of a part besides its plan.
pub struct Setup {
    /// The user of programs; `None`: root.
    pub user: Option<User>,
    /// Where the log is written.
    pub log: File,
    /// The command line of engine hold's process.
    pub holder: fn(HolderStart) -> std::process::Command,
    /// Thresholds of contention: of a text, or the defaults.
    pub config: fn(Option<&str>) -> Result<Config, String>,
}

/// Writes a line to the agent. If that fails, the agent has ended, and this process is about to.
fn say(to: &Mutex<impl Write>, line: &FromChild) {
    let Ok(text) = serde_json::to_string(line) else {
        return;
    };
    if let Ok(mut to) = to.lock() {
        let _ = writeln!(to, "{text}").and_then(|()| to.flush());
    }
}

/// Carries out a part, and reports to the agent whatever happens.
///
/// # Errors
/// The first line is no plan.
pub fn run(
    mut from: impl BufRead + Send + 'static,
    to: impl Write + Send + 'static,
    setup: Setup,
) -> Result<(), FleetError> {
    let mut text = String::new();
    let read = from.read_line(&mut text);
    read.map_err(FleetError::system("read the plan"))?;
    let text = text.trim_end();
    let plan: HostPlan = serde_json::from_str(text).map_err(|e| {
        FleetError::Plan(format!("this is no plan of {}: {e}", super::facts::VERSION))
    })?;
    let to = Arc::new(Mutex::new(to));
    let part = Part {
        digest: digest(text.as_bytes()),
        plan,
        to: to.clone(),
    };
    if let Err(e) = part.carry_out(from, setup) {
        say(&to, &FromChild::Built(Built::failed(String::new(), &e)));
    }
    Ok(())
}

struct Part<W> {
    plan: HostPlan,
    digest: String,
    to: Arc<Mutex<W>>,
}

/// Measurements before the part builds its nodes.
struct Measured {
    clock: Option<Estimate>,
    underlay: BTreeMap<String, Estimate>,
}

impl<W: Write + Send + 'static> Part<W> {
    /// Errors are those before the start; later ones are in the result.
    fn carry_out(
        &self,
        from: impl BufRead + Send + 'static,
        setup: Setup,
    ) -> Result<(), FleetError> {
        let begun_ns = now_ns();
        // The other hosts wait for answers.
        let tunnels = Tunnels::build(&self.plan)?;
        let measured = self.measure()?;
        let tunnels = tunnels.map(|mut tunnels| tunnels.prove(&self.plan.host).map(|()| tunnels));
        let tunnels = tunnels.transpose()?;
        let interface = free_interface().map_err(crate::experiment::run::RunError::from)?;
        let plan = || self.plan.to_plan(&measured.underlay, &interface);
        // The author of a plan may read no more files here than its programs.
        let plan = match &setup.user {
            Some(user) => user
                .does(plan)
                .map_err(FleetError::system("become the user of the programs"))?,
            None => plan(),
        };
        let (plan, mut notes) = plan?;
        let reserved = plan.host_network().map(this_network).transpose();
        let _reserved = reserved.map_err(crate::experiment::run::RunError::from)?;
        notes.extend(self.clock_note(&measured));
        notes.extend(self.underlay_note(&measured));
        let config = (setup.config)(self.plan.options.monitor.as_deref());
        let config = config.map_err(FleetError::Plan)?;
        let (tell_heard, heard) = watch::channel(Heard::default());
        let (say_it, said) = mpsc::unbounded_channel();
        let offset_ns = measured.clock.map_or(0, |clock| clock.offset_ns);
        listen(from, self.to.clone(), tell_heard, offset_ns);
        let built = Ready {
            digest: self.digest.clone(),
            mono_ns: begun_ns,
            clock: measured.clock,
            underlay_ns: (measured.underlay.iter())
                .map(|(host, found)| (host.clone(), found.delay_ns))
                .collect(),
            notes: notes.clone(),
        };
        let ready = self.forward(said, built);
        let options = &self.plan.options;
        let added: BTreeMap<String, Added> = (self.plan.links.iter())
            .map(|link| (link.name.clone(), link.added(&measured.underlay)))
            .collect();
        let tolerance_ns = options.tolerance_ns;
        let others = heard.clone();
        let tunnels = tunnels.map(|tunnels| tunnels.watch(&heard, tolerance_ns));
        let mut tunnels = tunnels.transpose()?;
        let change = move |link: &str, before: &Profile, changes: &[String]| {
            let added = added.get(link).cloned().unwrap_or_default();
            underlay::change(before, &added, tolerance_ns, changes)
        };
        let settings = Settings {
            sample: options.sample_ns.map(Duration::from_nanos),
            root_prepares: false,
            caller: setup.user.clone(),
            user: setup.user,
            notes,
            together: Some(Together::new(say_it, heard, Arc::new(change))),
            ..Settings::quiet(options.seed, config)
        };
        let done = conduct(&plan, &settings, setup.holder, Some(setup.log));
        let was_ready = ready.lock().is_ok_and(|ready| *ready);
        let done = match done {
            Err(e) if !was_ready => return Err(e.into()),
            done => done,
        };
        let mut result = HostResult {
            run: String::new(),
            judgement: None,
            exits: vec![],
            notes: vec![],
            error: None,
            clock: None,
            mono_ns: now_ns(),
            tunnels: BTreeMap::new(),
            logs: 0,
        };
        match done {
            Ok(outcome) => {
                // The agent reads no result of a part that it has ended itself.
                let ended = |signal| format!("its part was ended by signal {signal}");
                result.error = outcome.signal.map(ended);
                result.exits = outcome.exits;
                result.notes = outcome.notes;
                let finished = outcome.finished;
                if finished.lines_lost > 0 {
                    let lost = finished.lines_lost;
                    result
                        .notes
                        .push(format!("{lost} lines of the log were lost"));
                }
                if let Err(e) = finished.written {
                    result.notes.push(format!("the log is incomplete: {e}"));
                }
                result.judgement = Some(finished.judgement);
            }
            Err(e) => result.error = Some(e.to_string()),
        }
        // Of a run that has failed nothing more is measured: a host that is lost does not answer, and this
        // one has to be clean in time.
        let has_failed = result.error.is_some() || others.borrow().lost;
        if let Some(peer) = self.reference().filter(|_| !has_failed) {
            match probed(peer) {
                Ok(found) => result.clock = Some(found),
                Err(e) => result.notes.push(format!("the clock at the end: {e}")),
            }
            result.mono_ns = now_ns();
        }
        let mut tunnels = tunnels.take_if(|_| !has_failed);
        result.tunnels = tunnels.as_mut().map(Watched::finish).unwrap_or_default();
        // Other hosts may still probe this one: the agent ends it when all have reported, without the
        // handler that the run has left. SAFETY: no handler of this process.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
        say(&self.to, &FromChild::Result(Box::new(result)));
        if tunnels.is_some() {
            loop {
                thread::park();
            }
        }
        Ok(())
    }

    fn reference(&self) -> Option<&Peer> {
        self.plan.peers.get(self.plan.reference.as_ref()?)
    }

    /// Probes all other hosts of tunnels and the reference, at the same time.
    fn measure(&self) -> Result<Measured, FleetError> {
        let tunnels = self.plan.tunnels.iter();
        let tunnels: BTreeSet<&String> = tunnels.map(|tunnel| &tunnel.host).collect();
        let own = &self.plan.host;
        let of = &|host: &String, peer: &Peer| -> Result<Estimate, FleetError> {
            let found = probed(peer).map_err(|e| {
                FleetError::Peer(format!(
                    "{host} does not answer {own} ({e}; the hosts need UDP between each other)"
                ))
            })?;
            if tunnels.contains(host) {
                self.fits(peer, host)?;
            }
            Ok(found)
        };
        let mut underlay = BTreeMap::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (self.plan.peers.iter())
                .map(|(host, peer)| (host, scope.spawn(move || of(host, peer))))
                .collect();
            threads.into_iter().try_for_each(|(host, thread)| {
                let ended = |_| {
                    Err(FleetError::Peer(format!(
                        "{own}: a thread that probes ended"
                    )))
                };
                underlay.insert(host.clone(), thread.join().unwrap_or_else(ended)?);
                Ok::<_, FleetError>(())
            })
        })?;
        let clock = self
            .plan
            .reference
            .as_ref()
            .and_then(|host| underlay.get(host).copied());
        let bound_ns = self.plan.options.clock_bound_ns;
        if let Some(clock) = clock.filter(|clock| clock.bound_ns > bound_ns) {
            return Err(FleetError::Clock(format!(
                "{} knows its offset only within {:.3} ms, --clock-bound is {:.3} ms",
                self.plan.host,
                clock.bound_ns as f64 / 1e6,
                bound_ns as f64 / 1e6
            )));
        }
        Ok(Measured { clock, underlay })
    }

    /// Packets of full size must not be fragmented by the underlay, nor dropped: a route knows only the MTU of this
    /// host's interface, and what routers have reported.
    fn fits(&self, peer: &Peer, host: &str) -> Result<(), FleetError> {
        let (own, mtu) = (&self.plan.host, self.plan.options.mtu);
        let overhead = match peer.address.is_ipv4() {
            true => OVERHEAD_IPV4,
            false => OVERHEAD_IPV6,
        };
        let needs = mtu + overhead;
        let route = || {
            let has = path_mtu(peer.address);
            has.map_err(FleetError::system(format!("find a route to {host}")))
        };
        let pass = || {
            let done = responder(peer).and_then(|(to, token)| passes(to, token, needs));
            done.map_err(FleetError::system(format!("probe {host}")))
        };
        if route()? >= needs && pass()? {
            return Ok(());
        }
        // A router may have reported it meanwhile.
        let has = route()?;
        Err(match needs <= has {
            true => FleetError::Peer(format!(
                "{host} does not answer packets of {needs} bytes from {own}, which a tunnel with an MTU of \
                 {mtu} needs: raise the MTU of the network between them, or use a smaller --mtu"
            )),
            false => FleetError::Unmet(format!(
                "a tunnel from {own} to {host} with an MTU of {mtu} needs {needs} bytes, the route has an MTU \
                 of {has}: raise that, or use --mtu {}",
                has.saturating_sub(overhead)
            )),
        })
    }

    fn clock_note(&self, measured: &Measured) -> Option<String> {
        let (clock, reference) = (measured.clock?, self.plan.reference.as_ref()?);
        Some(format!(
            "the clock of {reference} is {} ns ahead of that of {}, within {} ns",
            clock.offset_ns, self.plan.host, clock.bound_ns
        ))
    }

    /// Says what is taken off the links between hosts.
    fn underlay_note(&self, measured: &Measured) -> Option<String> {
        let tunnels = self.plan.tunnels.iter();
        let hosts: BTreeSet<&str> = tunnels.map(|tunnel| tunnel.host.as_str()).collect();
        let delays =
            || (hosts.iter()).filter_map(|host| Some(measured.underlay.get(*host)?.delay_ns));
        let [least_us, most_us] = [delays().min()?, delays().max()?].map(|ns| ns as f64 / 1e3);
        let hosts: Vec<_> = hosts.into_iter().collect();
        Some(format!(
            "one way to {} the network takes {least_us:.1} to {most_us:.1} us, which is taken off the links",
            hosts.join(", ")
        ))
    }

    /// Passes on what the run reports. The value is true from the report that all is built on.
    fn forward(&self, mut said: mpsc::UnboundedReceiver<Said>, built: Ready) -> Arc<Mutex<bool>> {
        let ready = Arc::new(Mutex::new(false));
        let (flag, to, awaited) = (ready.clone(), self.to.clone(), self.plan.awaited.clone());
        thread::spawn(move || {
            while let Some(what) = said.blocking_recv() {
                match what {
                    Said::Ready => {
                        if let Ok(mut flag) = flag.lock() {
                            *flag = true;
                        }
                        say(&to, &FromChild::Built(Built::Ready(built.clone())));
                    }
                    Said::Done(node) if awaited.contains(&node) => say(&to, &FromChild::Done(node)),
                    Said::Done(_) => {}
                    Said::Complete => say(&to, &FromChild::Complete),
                    Said::Set(id, done) => {
                        let done = match done {
                            Ok(()) => SetDone::Prepared,
                            Err((why, code)) => SetDone::Refused(why, code),
                        };
                        say(&to, &FromChild::Set(id, done));
                    }
                }
            }
        });
        ready
    }
}

fn probed(peer: &Peer) -> std::io::Result<Estimate> {
    responder(peer).and_then(|(to, token)| probe(to, token))
}

fn responder(peer: &Peer) -> std::io::Result<(SocketAddr, u64)> {
    let token = u64::from_str_radix(&peer.probe_token, 16).map_err(std::io::Error::other)?;
    Ok((SocketAddr::new(peer.address, peer.probe_port), token))
}

/// Applies the agent's lines until it ends, or is silent for as long as its lease lasts; then ends this
/// process, and with it all nodes.
fn listen(
    from: impl BufRead + Send + 'static,
    to: Arc<Mutex<impl Write + Send + 'static>>,
    tell: watch::Sender<Heard>,
    offset_ns: i64,
) {
    let seen = tell.subscribe();
    thread::spawn(move || watch_agent(&seen));
    thread::spawn(move || {
        for line in from.lines() {
            let Ok(line) = line else { break };
            // A line of a later version.
            let Ok(line) = serde_json::from_str::<ToChild>(&line) else {
                continue;
            };
            if line == ToChild::Alive {
                say(&to, &FromChild::Alive);
            }
            tell.send_modify(|heard| match line {
                ToChild::Start(start) => {
                    heard.start_at_ns = Some(here(start.reference_ns, offset_ns));
                }
                ToChild::Done(nodes) => heard.done.extend(nodes),
                ToChild::Set(id, Asked { links, changes }) => {
                    let set = Set {
                        links,
                        changes,
                        at_ns: None,
                    };
                    heard.sets.insert(id, set);
                }
                ToChild::Turn(id, turn) => {
                    if let Some(set) = heard.sets.get_mut(&id) {
                        set.at_ns = Some(match turn {
                            Turn::At(start, _) => Some(here(start.reference_ns, offset_ns)),
                            Turn::Refused(..) => None,
                        });
                    }
                }
                ToChild::Over(lost) => {
                    heard.over = true;
                    heard.lost = lost;
                }
                ToChild::Alive => heard.alive += 1,
            });
        }
        std::process::exit(1);
    });
}

/// Ends this process if an agent shows no sign of life: it is stopped, or hangs. Counts pauses, so that a
/// part that was stopped itself first reads what has come meanwhile.
fn watch_agent(heard: &watch::Receiver<Heard>) {
    let pause = ALIVE_EVERY / 2;
    let (mut last, mut silent) = (0, Duration::ZERO);
    while silent <= LEASE {
        thread::sleep(pause);
        let alive = heard.borrow().alive;
        silent = match alive == last {
            true => silent + pause,
            false => Duration::ZERO,
        };
        last = alive;
    }
    // The process ends, and an error cannot be reported any more.
    let _ = writeln!(
        std::io::stderr(),
        "emud: the agent showed no sign of life for {} s",
        LEASE.as_secs()
    );
    std::process::exit(1);
}
