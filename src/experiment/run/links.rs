// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated links of a run: attaches, describes, checks and removes them.

use emud_monitor::log::{AskedFor, RunClass, RunLink};
use rustix::process::Pid;

use crate::datapath::attach::{HolderStart, Request};
use crate::datapath::detach::{self, Own};
use crate::datapath::engine::EngineChoice;
use crate::datapath::show::link::LinkReport;
use crate::datapath::show::matching::NamedReport;
use crate::datapath::show::report::{Direction, Report};
use crate::datapath::{LinkError, attach, attachment, reports};
use crate::experiment::scenario::Link;
use crate::host::now_ns;
use crate::netlink::Netlink;
use crate::profile::quantile::of_share;

use super::location::RunLocation;
use super::{RunError, derived};

/// Length in bytes for which a length-dependent loss is stated.
const FULL_FRAME: u32 = 1514;

/// Options for attaching the links of a run.
#[derive(Debug, Clone, Copy)]
pub struct How {
    pub seed: u64,
    pub engine: EngineChoice,
    /// Whether the other ends of wires send no super-packets.
    pub peer_capped: bool,
    /// Returns the command line of a holder, engine hold's process.
    pub holder: fn(HolderStart) -> std::process::Command,
}

impl How {
    /// Returns the seed of a link.
    pub fn seed_of(&self, link: &Link) -> u64 {
        derived(self.seed, link.number)
    }
}

/// An attached link.
#[derive(Debug)]
pub struct Attached {
    pub run: RunLink,
    /// As it is at first.
    pub seen: Seen,
    /// Engine hold's process, a child of this one.
    pub holder: Option<Pid>,
}

/// Attaches a link of a plan, and returns its description.
///
/// # Errors
/// [`RunError::Link`]; the link is not attached then.
pub fn attach(place: &RunLocation, link: &Link, how: How) -> Result<Attached, RunError> {
    let request = Request {
        interface: link.interface.clone(),
        profile: link.profile.clone(),
        seed: Some(how.seed_of(link)),
        directions: [true, true],
        reversed: link.reversed,
        engine: how.engine,
        replace: false,
        lasts: None,
        ends_at: None,
        outlives: matches!(place, RunLocation::Here(_)),
        resolvers: None,
    };
    let attached = place.within(&link.node, || {
        let done = attach::background(&request, how.holder)?;
        match seen(&link.interface) {
            Ok(seen) => Ok(seen),
            // Nothing else knows yet that it is there.
            Err(e) => {
                let gone = detach::at_end(done.ifindex, Own::Id(done.link_id));
                Err(gone.err().unwrap_or(e))
            }
        }
    })?;
    let seen = attached.map_err(|error| failed(link, error))?;
    let report = &seen.report;
    let mut sides = report.up.iter().chain(&report.down);
    let holder = sides.find_map(|side| side.holder.as_ref());
    Ok(Attached {
        run: described(link, report),
        holder: holder.and_then(|holder| Pid::from_raw(i32::try_from(holder.pid).ok()?)),
        seen,
    })
}

/// State of a link at a moment.
#[derive(Debug)]
pub struct Seen {
    pub report: Report,
    /// The active profile; `None`: another one becomes active later.
    pub toml: Option<String>,
    /// Number of this attachment: another one has a different number.
    pub id: u32,
    /// It has ended by itself, and packets pass uncounted.
    pub over: bool,
}

/// Returns the report of a link so far, and the active profile as TOML.
///
/// # Errors
/// [`RunError::Link`]: it was removed, or cannot be read.
pub fn look(place: &RunLocation, link: &Link) -> Result<Seen, RunError> {
    let looked = place.within(&link.node, || seen(&link.interface))?;
    looked.map_err(|error| failed(link, error))
}

fn seen(interface: &str) -> Result<Seen, LinkError> {
    let mut nl = Netlink::open()?;
    let device = nl.link(interface)?;
    let there = attachment::get(&mut nl, &device)?;
    let ahead = there.maps.turns_at()?.is_some_and(|ns| now_ns() < ns);
    let toml = (!ahead).then_some(there.saved.profile);
    Ok(Seen {
        report: read(interface)?,
        toml,
        id: there.maps.id,
        over: there.maps.is_over()?,
    })
}

fn read(interface: &str) -> Result<Report, LinkError> {
    let mut reports = reports::reports(Some(interface))?;
    reports.pop().ok_or_else(|| LinkError::NotAttached {
        interface: interface.to_owned(),
    })
}

pub(crate) fn failed(link: &Link, error: LinkError) -> RunError {
    RunError::Link {
        link: link.name.clone(),
        node: link.node.clone(),
        interface: link.interface.clone(),
        error: Box::new(error),
    }
}

fn described(link: &Link, report: &Report) -> RunLink {
    let own = |direction: &Option<Direction>, asked: &crate::profile::Link| {
        let direction = direction.as_ref()?;
        Some(asked_for(&direction.link, asked))
    };
    RunLink {
        name: link.name.clone(),
        node: link.node.clone(),
        interface: link.interface.clone(),
        profile: report.profile.clone(),
        toml: link.profile.to_toml(),
        reversed: report.reversed,
        engine: report.engine.to_string(),
        reason: report.engine_reason.clone(),
        seed: report.seed,
        up: own(&report.up, &link.profile.up),
        down: own(&report.down, &link.profile.down),
        classes: (report.matching.links.iter())
            .map(|named| class(link, named))
            .collect(),
        notes: report.notes.clone(),
    }
}

fn class(link: &Link, named: &NamedReport) -> RunClass {
    let asked = (link.profile.links.iter()).find(|asked| asked.name == named.name);
    let of = |report: &Option<LinkReport>, direction: u32| {
        let report = report.as_ref()?;
        Some(asked_for(report, asked?.direction(direction)))
    };
    RunClass {
        name: named.name.clone(),
        up: of(&named.up, crate::abi::EMUD_UP),
        down: of(&named.down, crate::abi::EMUD_DOWN),
    }
}

/// Returns the kernel's figures, and the profile's for those that the kernel does not have.
fn asked_for(report: &LinkReport, asked: &crate::profile::Link) -> AskedFor {
    let delay = &report.delay;
    let (share, sd_ns) = (
        delay.share,
        delay.jitter.as_ref().map_or(0.0, |jitter| jitter.sd_ns),
    );
    // Of all packets, as what is measured.
    let (mean_ns, sd_ns) = of_share(share.unwrap_or(1.0), delay.mean_ns as f64, sd_ns);
    AskedFor {
        rate_bit_s: report.rate_bit_s.map(|rate| rate.round() as u64),
        delay_ns: mean_ns.round() as u64,
        jitter_ns: sd_ns.round() as u64,
        loss: (report.loss).unwrap_or_else(|| asked.loss.share_of(FULL_FRAME)),
        varies: report.timeline.is_some(),
    }
}
