// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the emulated links, which are attached and detached while the monitor runs, and checks
//! whether other processes change them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::event::{Alarm, Resource, Scope, TAMPERED, Unit};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use super::Request;
use crate::datapath::LinkError;
use crate::datapath::emulated::{Found, Search};
use crate::datapath::engine::Engine;
use crate::datapath::watch::{GONE, Watch};
use crate::host::{now_ns, open_files};
use crate::netlink::{Changes, Namespace, Netlink, Notices};
use crate::text::{printable, to_stderr};

/// Interval of checks; a link is judged from the first check after its attach.
const EVERY: Duration = Duration::from_millis(500);

/// Number of failed checks before a warning: a namespace may be about to end.
const UNREACHED_MAX: u32 = 3;

/// Notifies the other thread of changes until that has ended; with `tampering`, also with alarms
/// about changes by other processes. Checks immediately when notified by `now`. `deaf`: there is no
/// socket for the reports of holders, so links of engine hold are not watched.
pub async fn follow(
    requests: mpsc::Sender<Request>,
    now: Arc<Notify>,
    tampering: bool,
    mut deaf: bool,
) {
    // A link takes some 25 open files, and a limit of 1,024 is usual.
    open_files::allow(open_files::MANY);
    let mut search = Search::default();
    let mut every = interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = vec![];
    let mut complained = BTreeSet::new();
    let mut whole = Whole::default();
    loop {
        tokio::select! {
            _ = every.tick() => {}
            () = now.notified() => {}
        }
        let found = match search.run() {
            Ok(found) => found,
            Err(e) => {
                let _ = requests.send(Request::NoLinks(e.to_string())).await;
                return;
            }
        };
        for (program, error) in &found.unreadable {
            if !complained.insert(*program) {
                continue;
            }
            let why = format!("that of program {program}: {error}");
            match tampering {
                true => drop(requests.send(Request::NoLinks(why)).await),
                // A run judges its links itself.
                false => to_stderr(format_args!("emud: not all links are watched: {why}")),
            }
        }
        if deaf && found.links.iter().any(|link| link.engine == Engine::Hold) {
            deaf = false;
            let why = "those of engine hold cannot report late and dropped packets";
            let _ = requests.send(Request::NoLinks(why.to_owned())).await;
        }
        let mut devices = found.released_by_kernel();
        devices.sort_by_key(|device| (device.netns, device.ifindex));
        devices.dedup();
        if devices != told {
            told.clone_from(&devices);
            if requests.send(Request::Emulated(devices)).await.is_err() {
                return;
            }
        }
        if !tampering {
            continue;
        }
        // Netlink blocks, so another thread calls it: this one continues to serve.
        let looked = tokio::task::spawn_blocking(move || {
            let alarms = whole.look(&found);
            (whole, alarms)
        });
        let Ok((again, alarms)) = looked.await else {
            let why = "the thread that compares them has ended";
            let _ = requests.send(Request::NoLinks(why.to_owned())).await;
            return;
        };
        whole = again;
        for why in mem::take(&mut whole.unreached) {
            let _ = requests.send(Request::NoLinks(why)).await;
        }
        for alarm in alarms {
            let (answer, _) = oneshot::channel();
            let alarm = Request::Alarm(Box::new(alarm), answer);
            if requests.send(alarm).await.is_err() {
                return;
            }
        }
    }
}

/// A link, identified by its network namespace and ifindex.
type Place = (u32, u32);

/// The state of links compared with attach.
#[derive(Debug, Default)]
struct Whole {
    known: BTreeMap<Place, Known>,
    /// Which cannot be compared, and why; each once.
    unreached: Vec<String>,
}

#[derive(Debug)]
struct Known {
    engine: Engine,
    watch: Watch,
    /// What the kernel notifies since the last check. Not for hold, whose holder reports that.
    notices: Option<Notices>,
    /// The name at the last check.
    name: String,
    /// The missing parts in the last alarm.
    told: Vec<String>,
    /// Number of consecutive failed checks.
    unreached: u32,
}

impl Whole {
    /// Returns an alarm for each link with more missing parts than at the previous check.
    fn look(&mut self, found: &Found) -> Vec<Alarm> {
        let places: BTreeMap<Place, Engine> = (found.links.iter())
            .map(|link| ((link.netns, link.interface), link.engine))
            .collect();
        let known = mem::take(&mut self.known);
        let (known, ended) = known
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(place, _)| places.contains_key(place));
        self.known = known;
        // Another process may have deleted all that leads to a link, and with it the program.
        let last =
            |((netns, ifindex), mut known): (Place, Known)| known.look(netns, ifindex).ok()?;
        let mut alarms: Vec<Alarm> = ended.into_iter().filter_map(last).collect();
        let one = |((netns, ifindex), engine): (Place, Engine)| {
            let known = self.known.entry((netns, ifindex)).or_insert_with(|| Known {
                engine,
                watch: Watch::new(ifindex),
                notices: None,
                name: format!("interface {ifindex}"),
                told: vec![],
                unreached: 0,
            });
            known.engine = engine;
            let looked = known.look(netns, ifindex);
            looked.unwrap_or_else(|why| {
                self.unreached.push(why);
                None
            })
        };
        alarms.extend(places.into_iter().filter_map(one));
        alarms
    }
}

impl Known {
    /// Returns an alarm, or once why it cannot be compared.
    fn look(&mut self, netns: u32, ifindex: u32) -> Result<Option<Alarm>, String> {
        let inside = || {
            let mut nl = Netlink::open()?;
            if let Ok(link) = nl.link_by_index(ifindex) {
                self.name = link.name;
            }
            let changes = match &mut self.notices {
                Some(notices) => notices.take(),
                None => Changes::default(),
            };
            if self.notices.is_none() && self.engine != Engine::Hold {
                self.notices = Some(Notices::open()?);
            }
            let found = self.watch.look_after(&mut nl, &changes)?;
            if let Some(notices) = &self.notices {
                // Without the filter it hears of all.
                let _ = notices.only(&self.watch.interfaces());
            }
            Ok::<_, LinkError>(found)
        };
        let found = Namespace::find(&HashSet::from([u64::from(netns)]));
        let space = found.ok().and_then(|mut found| found.pop_first());
        let mut what = match space.map(|(_, space)| space.within(inside)) {
            Some(Ok(Ok(what))) => what,
            failed => {
                // An open socket would keep a namespace that has ended.
                self.notices = None;
                let why = match failed {
                    Some(Ok(Err(e))) => e.to_string(),
                    _ => format!("network namespace {netns} cannot be entered"),
                };
                self.unreached += 1;
                return match self.unreached == UNREACHED_MAX {
                    true => Err(format!("{}: {why}", printable(&self.name))),
                    false => Ok(None),
                };
            }
        };
        self.unreached = 0;
        if self.engine == Engine::Hold {
            // Its holder knows whether the interface was moved, and lives on for a moment after an ordinary end.
            what.retain(|one| one != GONE);
        }
        let more = what.iter().any(|one| !self.told.contains(one));
        self.told.clone_from(&what);
        Ok(more.then(|| {
            let mono_ns = now_ns();
            Alarm {
                episode: 0,
                mono_ns,
                resource: Resource::Emulator,
                scope: Scope::Link {
                    failure: TAMPERED,
                    what: Some(what.join("; ")),
                    name: self.name.clone(),
                    ifindex,
                    netns,
                },
                since_mono_ns: mono_ns,
                value: what.len() as u64,
                threshold: 1,
                unit: Unit::None,
                hook: "rtnetlink".into(),
                shares: vec![],
                rest: 0.0,
            }
        }))
    }
}
