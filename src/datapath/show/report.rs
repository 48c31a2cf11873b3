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
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::saved::Saved;
use crate::datapath::stage::aqm::AqmDropped;
use crate::histogram::{self, Bucket, DelayGiven, Delays};
use crate::profile::Profile;
use crate::profile::quantile::{density, table_x};
use serde::Serialize;

/// One interface with an emulated link.
#[derive(Debug, Serialize)]
pub struct Report {
    pub interface: String,
    pub ifindex: u32,
    pub profile: String,
    pub description: String,
    pub source: String,
    pub seed: u64,
    pub engine: Engine,
    /// Why this engine.
    pub engine_reason: String,
    /// The profile was exchanged end for end at attach.
    pub reversed: bool,
    /// Since attach.
    pub attached_s: f64,
    /// What attach had to say, and what has gone wrong since.
    pub notes: Vec<String>,
    /// What of the link is missing or changed; [`crate::datapath::pieces::tampering`] knows.
    pub tampered: Vec<String>,
    pub up: Option<Direction>,
    pub down: Option<Direction>,
    /// Which link a packet takes.
    #[serde(flatten)]
    pub matching: Matching,
    pub bottlenecks: Vec<BottleneckReport>,
}

/// One direction of it.
#[derive(Debug, Serialize)]
pub struct Direction {
    /// The profile's own link.
    #[serde(flatten)]
    pub link: LinkReport,
    pub holder: Option<Holder>,
    /// Packets that the engine's own queue dropped (fq, or the TAP): each is a
    /// failure of the emulator, not of the link.
    pub engine_dropped: u64,
}

/// Packets are wire packets: a super-packet counts for those in it.
#[derive(Debug, Serialize)]
pub struct Counters {
    pub packets: u64,
    pub bytes: u64,
    pub lost: u64,
    pub queue_dropped: u64,
    pub aqm_dropped: AqmDropped,
    /// Congestion experienced, set by the queue.
    pub marked: u64,
    pub reordered: u64,
    /// So as not to overtake.
    pub held_back: u64,
    pub super_packets: u64,
    pub flows_forgotten: u64,
    /// Sent without delay: not in the delayed share, or reordered on purpose.
    pub undelayed: u64,
    pub passed: Passed,
    /// Of packets with a departure time, without overhead.
    pub sent_bytes: u64,
    /// Sum of departure - arrival over those packets, ns, modulo 2^64: for differences.
    #[serde(skip)]
    pub delay_ns: u64,
    /// None: no packet has got one.
    pub delay_given: Option<DelayGiven>,
    pub delay_histogram: Vec<Bucket>,
    /// Lost because the link was down.
    pub down: u64,
    /// Copies made.
    pub duplicated: u64,
    pub corrupted: u64,
    /// To be copied or corrupted, and could not be.
    pub unaltered: u64,
}

/// Packets passed untouched, by reason.
#[derive(Debug, Serialize)]
pub struct Passed {
    /// ARP, neighbour discovery, PTP event messages.
    pub neighbour: u64,
    pub not_ip: u64,
    pub no_holder: u64,
    /// Attach or detach was under way.
    pub not_active: u64,
    pub failed: u64,
    /// By a rule whose link is `none`.
    pub rule: u64,
}

/// The hold engine's own account.
#[derive(Debug, Serialize)]
pub struct Holder {
    pub pid: u64,
    /// It renewed its lease in time.
    pub alive: bool,
    pub released: u64,
    pub dropped: u64,
    /// Released more than 1 ms after their time.
    pub late: u64,
    pub worst_late_ns: u64,
    pub waiting: u64,
    /// Read when a bottleneck had decided on later ones already.
    pub disordered: u64,
    /// The CPU it is bound to; without one, frames may overtake each other.
    pub cpu: Option<u32>,
    /// SCHED_RR; without it, busy tasks make frames late.
    pub realtime: bool,
    /// Locked in memory.
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
    let reader = Reader {
        maps,
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
        attached_s: now_ns.saturating_sub(saved.epoch_ns) as f64 / 1e9,
        notes,
        tampered: vec![],
        up,
        down,
        matching: report_match::matching(&reader, saved)?,
        bottlenecks: service::bottlenecks(maps, profile.as_ref())?,
    })
}

/// Who reads the devices adds what they dropped.
fn direction(reader: &Reader, direction: u32, engine: Engine) -> Result<Direction, DatapathError> {
    Ok(Direction {
        link: reader.link(0, direction)?,
        holder: match engine {
            Engine::Hold => Some(holder(&reader.maps.holder(direction)?, reader.now_ns)),
            Engine::Fq => None,
        },
        engine_dropped: 0,
    })
}

/// Whether the holder's process is there, stopped or starved.
pub(crate) fn running(pid: u64) -> bool {
    let of_it = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    // A zombie has a name, but no arguments any more.
    let alive = of_it("cmdline").is_ok_and(|arguments| !arguments.is_empty());
    alive && of_it("comm").is_ok_and(|name| name.starts_with("emud"))
}

/// What is wrong with a holder, if anything.
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
        (_, false) => "was refused SCHED_RR: busy tasks on its CPU make frames late",
    };
    Some(format!("{direction}: the holder {missing}"))
}

/// Mean and standard deviation of a delay table under a standard normal index.
pub(crate) fn moments(delay_ns: &[u64]) -> (f64, f64) {
    let weight = |i: usize| density(table_x(i));
    let total: f64 = (0..delay_ns.len()).map(weight).sum();
    let mean = delay_ns
        .iter()
        .enumerate()
        .map(|(i, d)| weight(i) * *d as f64)
        .sum::<f64>()
        / total;
    let variance = delay_ns
        .iter()
        .enumerate()
        .map(|(i, d)| weight(i) * (*d as f64 - mean).powi(2))
        .sum::<f64>()
        / total;
    (mean, variance.sqrt())
}

pub(crate) fn counters(c: &abi::emud_counters) -> Counters {
    let passed = |why: abi::emud_pass| c.passed[why as usize];
    let delays = Delays::counted(histogram::buckets(&c.delay_hist), c.delay_ns);
    Counters {
        packets: c.packets,
        bytes: c.bytes,
        lost: c.lost,
        queue_dropped: c.queue_dropped,
        aqm_dropped: AqmDropped::of(c),
        marked: c.marked,
        reordered: c.reordered,
        held_back: c.clamped,
        super_packets: c.super_packets,
        flows_forgotten: c.flows_forgotten,
        undelayed: c.undelayed,
        passed: Passed {
            neighbour: passed(abi::EMUD_PASS_NEIGHBOUR),
            not_ip: passed(abi::EMUD_PASS_NOT_IP),
            no_holder: passed(abi::EMUD_PASS_NO_HOLDER),
            not_active: passed(abi::EMUD_PASS_INACTIVE),
            failed: passed(abi::EMUD_PASS_FAILED),
            rule: passed(abi::EMUD_PASS_RULE),
        },
        sent_bytes: c.sent_bytes,
        delay_ns: c.delay_ns,
        delay_given: delays.given(),
        delay_histogram: delays.buckets().to_vec(),
        down: c.down,
        duplicated: c.duplicated,
        corrupted: c.corrupted,
        unaltered: c.unaltered,
    }
}

fn holder(h: &abi::emud_holder, now_ns: u64) -> Holder {
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
