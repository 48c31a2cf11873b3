// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel really runs on an interface, read back from its maps:
//! the figures come from the classifier's own numbers, not from the profile.

use super::link::{LinkReport, Reader};
use super::matching as report_match;
use super::matching::Matching;
use super::service::{self, BottleneckReport};
use crate::abi;
use crate::abi::direction_name;
use crate::datapath::engine::Engine;
use crate::datapath::engine::hold::process::running;
use crate::datapath::maps::{self, DatapathError, Maps};
use crate::datapath::saved::Saved;
use crate::profile::Profile;
use schemars::JsonSchema;
use serde::Serialize;

/// The number increases when a key is removed or changes its meaning.
pub const SHOW_SCHEMA: &str = "emud-show/2";

/// What the kernel runs, read back from the maps of the classifier.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Show<'a> {
    /// Version of the format.
    #[schemars(extend("const" = SHOW_SCHEMA))]
    schema: &'static str,
    /// The interfaces with an emulated link.
    interfaces: &'a [Report],
}

impl<'a> Show<'a> {
    /// Shows these interfaces.
    pub fn of(interfaces: &'a [Report]) -> Self {
        let schema = SHOW_SCHEMA;
        Self { schema, interfaces }
    }
}

/// One interface with an emulated link.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Name of the interface in its network namespace.
    #[schemars(length(min = 1))]
    pub interface: String,
    /// Index of the interface.
    #[schemars(range(min = 1))]
    pub ifindex: u32,
    /// Name of the profile.
    pub profile: String,
    /// Description of the profile.
    pub description: String,
    /// Source of the profile's figures.
    pub source: String,
    /// Seed of the random decisions.
    pub seed: u64,
    /// Where packets wait for their departure time.
    pub engine: Engine,
    /// Why this engine was chosen.
    pub engine_reason: String,
    /// `up` and `down` of the profile were exchanged at attach.
    pub reversed: bool,
    /// Time of these figures, in ns of CLOCK_MONOTONIC; counters are read after it.
    pub mono_ns: u64,
    /// Time since attach in s.
    #[schemars(range(min = 0))]
    pub attached_s: f64,
    /// Time in s until the link ends by itself; 0: it has ended, and packets pass unchanged; null:
    /// it does not.
    #[schemars(range(min = 0))]
    pub ends_in_s: Option<f64>,
    /// Sentences on the attach and on later failures.
    pub notes: Vec<String>,
    /// Sentences on the parts of the link that another process deleted or changed; empty: none.
    pub tampered: Vec<String>,
    /// What the interface sends; null: not emulated.
    pub up: Option<Direction>,
    /// What the interface receives; null: not emulated.
    pub down: Option<Direction>,
    /// Which link a packet takes.
    #[serde(flatten)]
    pub matching: Matching,
    /// The bottlenecks that its links use.
    pub bottlenecks: Vec<BottleneckReport>,
}

/// One direction of the profile's own link.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Direction {
    /// The profile's own link.
    #[serde(flatten)]
    pub link: LinkReport,
    /// Process that holds packets; null: engine fq.
    pub holder: Option<Holder>,
    /// Packets that the queue of the engine (fq or the TAP) dropped: each is a failure of the
    /// emulator, not of the link.
    pub engine_dropped: u64,
}

/// Counters and state of the holder of engine hold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Holder {
    /// Process ID.
    pub pid: u64,
    /// It renewed its lease in time.
    pub alive: bool,
    /// Frames that it sent.
    pub released: u64,
    /// Frames that it failed to send.
    pub dropped: u64,
    /// Frames that it sent more than 1 ms after their departure time.
    pub late: u64,
    /// Largest lateness in ns.
    pub worst_late_ns: u64,
    /// Frames that it held at its last report (every 50 ms).
    pub waiting: u64,
    /// Read when a bottleneck had decided on later ones already.
    pub disordered: u64,
    /// The CPU it is bound to; without one, frames may overtake each other.
    pub cpu: Option<u32>,
    /// It has SCHED_RR; without it, busy tasks make frames late.
    pub realtime: bool,
    /// It is locked in memory.
    pub locked: bool,
}

/// Reads one interface. What of it is missing is for the caller to find out.
///
/// # Errors
/// A map cannot be read.
pub fn report(
    interface: &str,
    ifindex: u32,
    maps: &Maps,
    saved: &Saved,
    now_ns: u64,
) -> Result<Report, DatapathError> {
    let profile = Profile::parse(&saved.profile, "the kernel").ok();
    let control = maps.control()?;
    let reader = Reader {
        maps,
        control,
        profile: profile.as_ref(),
        now_ns,
    };
    let mut notes = saved.notes.clone();
    let mut read = |direction: u32| -> Result<Option<Direction>, DatapathError> {
        if !saved.directions[direction as usize] {
            return Ok(None);
        }
        let read = self::direction(&reader, direction, saved.engine)?;
        let name = direction_name(direction);
        notes.extend(read.holder.iter().filter_map(|h| complaint(name, h)));
        Ok(Some(read))
    };
    let (up, down) = (read(abi::EMUD_UP)?, read(abi::EMUD_DOWN)?);
    let text = |f: fn(&Profile) -> &String| profile.as_ref().map(f).cloned().unwrap_or_default();
    Ok(Report {
        interface: interface.to_owned(),
        ifindex,
        profile: text(|p| &p.name),
        description: text(|p| &p.description),
        source: text(|p| &p.source),
        seed: saved.seed,
        engine: saved.engine,
        engine_reason: saved.reason.clone(),
        reversed: saved.reversed,
        mono_ns: now_ns,
        attached_s: saved.since_attach_ns(now_ns) as f64 / 1e9,
        ends_in_s: maps::ends_in_s(control, now_ns),
        notes,
        tampered: vec![],
        up,
        down,
        matching: report_match::matching(&reader, saved)?,
        bottlenecks: service::bottlenecks(maps, profile.as_ref(), saved.since_attach_ns(now_ns))?,
    })
}

/// Returns a direction without the drops of devices, which the reader of the devices adds.
fn direction(reader: &Reader, direction: u32, engine: Engine) -> Result<Direction, DatapathError> {
    Ok(Direction {
        link: reader.link(0, direction)?,
        holder: match engine {
            Engine::Hold => Some(holder(&reader.maps.holder(direction)?, reader.now_ns)),
            Engine::Fq | Engine::Qdisc => None,
        },
        engine_dropped: 0,
    })
}

/// Returns what is wrong with a holder, if anything.
fn complaint(direction: &str, h: &Holder) -> Option<String> {
    if !h.alive && running(h.pid) {
        return Some(format!(
            "{direction}: the holder (pid {}) does not answer, packets pass untouched until it does",
            h.pid
        ));
    }
    if !h.alive {
        return Some(format!(
            "{direction}: the holder (pid {}) is gone, packets pass untouched; detach, then attach again",
            h.pid
        ));
    }
    let missing = match (h.cpu, h.realtime) {
        (Some(_), true) => return None,
        (None, _) => "could not be bound to a CPU: frames may overtake each other",
        (_, false) => "did not get SCHED_RR: busy tasks on its CPU make frames late",
    };
    Some(format!("{direction}: the holder {missing}"))
}

pub(crate) fn holder(h: &abi::emud_holder, now_ns: u64) -> Holder {
    let tuned = |bit: abi::emud_tuning| h.tuning & bit != 0;
    Holder {
        pid: h.pid,
        alive: h.lease_ns >= now_ns,
        released: h.released,
        dropped: h.dropped,
        late: h.late,
        worst_late_ns: h.worst_late_ns,
        waiting: h.waiting,
        disordered: h.disordered,
        cpu: tuned(abi::EMUD_TUNED_CPU).then_some(h.cpu),
        realtime: tuned(abi::EMUD_TUNED_REALTIME),
        locked: tuned(abi::EMUD_TUNED_MEMORY),
    }
}
