// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network of a plan: creates it with its links, and removes it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use emud_monitor::log::RunLink;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::datapath::change;
use crate::datapath::watch::Watch;
use crate::datapath::{LinkError, ending};
use crate::experiment::lab;
use crate::experiment::lab::{Files, Lab, LabError};
use crate::experiment::scenario::{Link, Plan, PlannedEnd};
use crate::host::open_files;
use crate::monitor::session::experiment::OwnLinks;
use crate::netlink::{self, Gso, Netlink};
use crate::profile::Offload;

use super::folders::Folders;
use super::group::Group;
use super::in_place::Guard;
use super::links::{How, Seen};
use super::location::RunLocation;
use super::media::{self, OnAir};
use super::{RunError, Settings, links};

/// With more wires than this their ends know each other without ARP: all namespaces of a host share one table
/// of neighbours, which holds 1,024 found by ARP (`gc_thresh3`), two for each wire. Packets to others are lost.
const MOST_WIRES_WITH_ARP: usize = 128;
/// Files that stay open for a node, its programs and its links.
const OPEN_FILES_PER_NODE: u64 = 32;
/// Links that are changed at the same time: each change waits for packets that use the previous links, some
/// 10 ms, and the kernel lets all that wait continue together.
const AT_ONCE: usize = 32;
/// How long to wait for the end of a holder.
const HOLDER_END: Duration = Duration::from_secs(2);

/// An existing network. Dropping it removes it.
pub struct Network {
    pub place: RunLocation,
    /// Attached links, in the order of the plan.
    pub links: Vec<(Link, RunLink)>,
    /// Each of them at its attach, by name.
    pub first: BTreeMap<String, Seen>,
    /// Media whose threads run.
    pub media: Vec<OnAir>,
    /// The host's address on its wire into the network.
    pub host: Option<Ipv4Addr>,
    pub notes: Vec<String>,
    /// Engine hold's processes; they end with their namespace.
    holders: Vec<Pid>,
    /// Guard of an interface that existed before the run.
    guard: Option<Guard>,
}

impl Network {
    /// Creates namespaces, wires, bridges, routes and the connection to the outside; no links yet.
    ///
    /// # Errors
    /// [`RunError::Lab`]; everything is removed then.
    pub fn build(plan: &Plan, folders: &Folders, how: &Settings) -> Result<Self, RunError> {
        let (resolv_conf, mut notes) = match plan.nodes.iter().any(|node| node.outside) {
            true => lab::resolver(),
            false => (None, vec![]),
        };
        let files = Files {
            resolv_conf,
            hosts: plan.hosts(),
            scratch: folders.scratch().map(str::to_owned),
        };
        let mut lab = Lab::new()?;
        lab.set_mtu(plan.mtu);
        open_files::allow(OPEN_FILES_PER_NODE * (plan.nodes.len() + plan.links.len()) as u64);
        for node in &plan.nodes {
            lab.add_node(&node.name, &files)?;
        }
        for wire in &plan.wires {
            match wire.tunnel {
                Some(tunnel) => lab.tunnel(&wire.ends[0], tunnel)?,
                None => lab.wire(wire)?,
            }
            if wire.tunnel.is_none() && plan.wires.len() > MOST_WIRES_WITH_ARP {
                lab.introduce(wire)?;
            }
        }
        let mut media = vec![];
        for (n, medium) in plan.media.iter().enumerate() {
            media.push(media::start(&lab, medium, n, how, &mut notes)?);
        }
        for node in &plan.nodes {
            if let Some(bridge) = &node.bridge {
                lab.bridge(&node.name, bridge)?;
            }
            for route in &node.routes {
                lab.route(&node.name, route)?;
            }
            if node.forwards() {
                lab.forward(&node.name)?;
            }
        }
        let host = outside(&mut lab, plan, &mut notes)?;
        Ok(Self {
            place: RunLocation::Lab(Box::new(lab)),
            links: vec![],
            first: BTreeMap::new(),
            media,
            host,
            notes,
            holders: vec![],
            guard: None,
        })
    }

    /// Uses the namespace of this process for a link on `interface`.
    ///
    /// # Errors
    /// The guard, which removes the link if emud is killed, cannot be started.
    pub fn here(interface: &str) -> Result<Self, RunError> {
        let system = |what| move |error| RunError::System { what, error };
        let found = Netlink::open().and_then(|mut host| host.link(interface));
        let ifindex = found.map_err(LabError::from)?.index;
        let programs = Group::create().map_err(system("creating a control group"))?;
        let guard = match Guard::start(ifindex, &programs) {
            Ok(guard) => guard,
            Err(error) => {
                // The earlier error is returned.
                let _ = programs.end();
                return Err(system("starting the guard of the interface")(error));
            }
        };
        Ok(Self {
            place: RunLocation::Here(programs),
            links: vec![],
            first: BTreeMap::new(),
            media: vec![],
            host: None,
            notes: vec![],
            holders: vec![],
            guard: Some(guard),
        })
    }

    /// Attaches the `n`-th link of the plan.
    ///
    /// # Errors
    /// [`RunError::Link`]; earlier links stay until [`Network::take_down`].
    pub fn attach(&mut self, plan: &Plan, n: usize, how: How) -> Result<(), RunError> {
        let Some(link) = plan.links.get(n) else {
            return Ok(());
        };
        if link.profile.offload == Offload::Auto && how.peer_capped {
            (plan.opposite(link))
                .filter(|end| end.node.as_ref().is_none_or(|node| self.place.has(node)))
                .try_for_each(|end| self.cap(end))?;
        }
        if let Some(guard) = &mut self.guard {
            guard.begin(how.seed_of(link));
        }
        let attached = links::attach(&self.place, link, how)?;
        if let Some(guard) = &mut self.guard {
            guard.attached(attached.seen.id);
        }
        self.first.insert(link.name.clone(), attached.seen);
        self.links.push((link.clone(), attached.run));
        self.holders.extend(attached.holder);
        Ok(())
    }

    /// Makes traces, phases and jitter of all links, and the motion in all media, begin at a time of
    /// CLOCK_MONOTONIC in ns.
    ///
    /// # Errors
    /// [`RunError::Link`]; [`RunError::System`]: a thread cannot be started.
    pub fn begin_at(&self, mono_ns: u64) -> Result<(), RunError> {
        self.each(|interface| change::begin_at(interface, mono_ns))?;
        self.begin_motion(mono_ns)
    }

    /// Makes all links end this time from now, whenever they ended before: packets pass unchanged then.
    ///
    /// # Errors
    /// [`RunError::Link`]: of the first link that keeps its end.
    pub fn end_after(&self, time: Duration) -> Result<(), RunError> {
        self.each(|interface| ending::end_after(interface, time))
    }

    /// Does something with each link, in its node, and returns the first error of all.
    fn each(&self, work: impl Fn(&str) -> Result<(), LinkError> + Sync) -> Result<(), RunError> {
        let one = |(link, _): &(Link, RunLink)| {
            let done = self.place.within(&link.node, || work(&link.interface))?;
            done.map_err(|error| links::failed(link, error))
        };
        let all = |links: &[_]| links.iter().map(one).fold(Ok(()), Result::and);
        let share = self.links.len().div_ceil(AT_ONCE).max(1);
        thread::scope(|scope| {
            let threads: Vec<_> = (self.links.chunks(share))
                .map(|links| scope.spawn(|| all(links)))
                .collect();
            (threads.into_iter())
                .map(|thread| (thread.join()).unwrap_or_else(|panic| resume_unwind(panic)))
                .fold(Ok(()), Result::and)
        })
    }

    /// Makes the motion in all media begin at a time of CLOCK_MONOTONIC in ns.
    ///
    /// # Errors
    /// [`RunError::System`]: a thread cannot be started.
    pub fn begin_motion(&self, mono_ns: u64) -> Result<(), RunError> {
        (self.media.iter()).try_for_each(|medium| medium.begin_motion(mono_ns))
    }

    /// Limits segmentation at the end of a wire: a link loses, delays and queues packets as a wire does, so the
    /// sender must have segmented them.
    fn cap(&self, end: &PlannedEnd) -> Result<(), RunError> {
        let capped = || {
            let mut nl = Netlink::open()?;
            let link = nl.link(&end.interface)?;
            let gso = Gso {
                max_segs: 1,
                ..link.gso
            };
            nl.set_gso(link.index, &gso)
        };
        let capped = match &end.node {
            Some(node) => self.place.within(node, capped)?,
            None => capped(),
        };
        Ok(capped.map_err(LabError::from)?)
    }

    /// Returns the links whose failures count for the experiment.
    pub fn own_links(&self) -> OwnLinks {
        let of = |(link, _): &(Link, RunLink)| {
            let found = self
                .place
                .within(&link.node, netlink::identity)
                .ok()?
                .ok()?;
            u32::try_from(found.inode).ok()
        };
        OwnLinks {
            netns: self.links.iter().filter_map(of).collect(),
            devices: match self.place {
                RunLocation::Lab(_) => None,
                // Others may have links beside it.
                RunLocation::Here(_) => Some(
                    self.links
                        .iter()
                        .flat_map(|(link, _)| devices(link))
                        .collect(),
                ),
            },
        }
    }

    /// Removes the links, and then everything else. Every step is tried; the first error is
    /// returned.
    ///
    /// # Errors
    /// As [`Lab::close`], or of a link.
    pub fn take_down(self) -> Result<(), RunError> {
        match self.place {
            RunLocation::Lab(lab) => {
                // Their TAPs end with the threads.
                drop(self.media);
                // The links end with their namespaces.
                lab.close()?;
                self.holders.iter().for_each(|holder| reap(*holder));
                Ok(())
            }
            RunLocation::Here(programs) => {
                let ended = programs.end().map_err(|error| RunError::System {
                    what: "ending the programs",
                    error,
                });
                let Some(guard) = self.guard else {
                    return ended;
                };
                let done = guard.detach().map_err(RunError::from).and(ended);
                // After a failure the guard tries once more.
                if done.is_ok() {
                    guard.dismiss();
                }
                done
            }
        }
    }
}

/// Adds the wire to the host, if any, and connects it. Returns the host's address on it.
fn outside(
    lab: &mut Lab,
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<Option<Ipv4Addr>, RunError> {
    let mut host = None;
    for wire in &plan.wires {
        let [ours, theirs] = match &wire.ends {
            [ours, theirs] if ours.node.is_none() => [ours, theirs],
            [theirs, ours] if ours.node.is_none() => [ours, theirs],
            _ => continue,
        };
        host = ours.address.map(|network| network.addr());
        let Some(node) = &theirs.node else { continue };
        if (plan.nodes.iter()).any(|known| known.name == *node && known.outside) {
            notes.extend(lab.outside(node, ours, theirs)?.notes);
        }
    }
    Ok(host)
}

/// Returns a link's interface, and emud's devices of it, in this network namespace.
fn devices(link: &Link) -> Vec<u32> {
    let found = Netlink::open().and_then(|mut nl| Ok((nl.link(&link.interface)?.index, nl)));
    let Ok((index, mut nl)) = found else {
        return vec![];
    };
    let mut watch = Watch::new(index);
    // What is missing is the sampler's to report.
    let _ = watch.look(&mut nl);
    watch.interfaces()
}

/// Reaps a holder, which ends shortly after its namespace unless it was stopped.
fn reap(holder: Pid) {
    let start = Instant::now();
    while let Ok(None) = waitpid(Some(holder), WaitOptions::NOHANG) {
        if start.elapsed() > HOLDER_END {
            // An unreaped child: no other process can have its number.
            let _ = kill_process(holder, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(1));
    }
}
