// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel really runs on an interface, read back from its maps:
//! the figures come from the classifier's own numbers, not from the profile.

use super::link::{LinkReport, Reader};
use super::matching as report_match;
use super::matching::Matching;
use super::service::{self, BottleneckReport};
use crate::abi;
use crate::abi::direction_name;
use crate::datapath::ending;
use crate::datapath::engine::Engine;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::saved::Saved;
use crate::datapath::stage::aqm::AqmDropped;
use crate::histogram::{self, Bucket, DelayGiven, Delays};
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

/// Packets are wire packets: a super-packet counts for those in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counters {
    /// Packets that reached the link.
    pub packets: u64,
    /// Bytes of these packets, without overhead.
    pub bytes: u64,
    /// Packets lost by the loss model. This and what follows of packets that wait in a class of a
    /// bottleneck counts when it has sent or dropped them, as the holder reported it last (every 50 ms):
    /// `class_dropped`, `sent_packets`, `sent_bytes`, `duplicated`, `corrupted`.
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub queue_dropped: u64,
    /// Packets dropped by AQM with space in the queue.
    pub aqm_dropped: AqmDropped,
    /// Packets dropped by the class of a bottleneck in which they waited, which counts them by cause.
    pub class_dropped: u64,
    /// Packets marked "congestion experienced" by the queue, including those that were marked
    /// already.
    pub marked: u64,
    /// Packets that departed before an earlier packet.
    pub reordered: u64,
    /// Packets with a longer delay, so that they do not overtake an earlier packet.
    pub held_back: u64,
    /// Offload packets that were treated as one. Counts them, not the wire packets in them.
    pub super_packets: u64,
    /// Flows whose packet number was dropped, because there were too many flows.
    pub flows_forgotten: u64,
    /// Packets sent without delay: not in the delayed share, or reordered on purpose.
    pub undelayed: u64,
    /// Packets passed untouched, by reason.
    pub passed: Passed,
    /// Packets that the link sent on: those that it did not lose, drop or pass untouched, without copies.
    pub sent_packets: u64,
    /// Bytes of these packets, without overhead.
    pub sent_bytes: u64,
    /// Sum of departure - arrival over packets with a departure time, ns, modulo 2^64: for differences.
    #[serde(skip)]
    pub delay_ns: u64,
    /// Delay assigned to packets (departure minus arrival); null: no packet.
    pub delay_given: Option<DelayGiven>,
    /// Packets by assigned delay, ascending, without empty buckets.
    pub delay_histogram: Vec<Bucket>,
    /// Packets lost because the link was down.
    pub down: u64,
    /// Copies of packets.
    pub duplicated: u64,
    /// Packets that were damaged.
    pub corrupted: u64,
    /// Packets that were to be copied or damaged and could not be.
    pub unaltered: u64,
}

/// Packets passed untouched, by reason.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Passed {
    /// ARP, neighbour discovery, PTP event messages.
    pub neighbour: u64,
    /// Protocols other than IP, which this engine cannot delay here, or on egress only with the sender's socket,
    /// which may slow the sender down.
    pub not_ip: u64,
    /// The holder did not renew its lease.
    pub no_holder: u64,
    /// During attach or detach.
    pub not_active: u64,
    /// The kernel failed to redirect the packet.
    pub failed: u64,
    /// By a rule whose link is `none`.
    pub rule: u64,
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
        ends_in_s: ending::ends_in_s(control, now_ns),
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

/// Returns whether the holder's process is there, stopped or starved.
pub(crate) fn running(pid: u64) -> bool {
    let of_it = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    // A zombie has a name, but no arguments any more.
    let alive = of_it("cmdline").is_ok_and(|arguments| !arguments.is_empty());
    alive && of_it("comm").is_ok_and(|name| name.starts_with("emud"))
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

/// Reads the counters of a direction of a link, by the link's number.
pub(crate) fn counters_of(
    maps: &Maps,
    number: u32,
    direction: u32,
) -> Result<Counters, DatapathError> {
    // In this order: no packet has left its class that has not arrived.
    let served = maps.served_of(number, direction)?;
    Ok(counters(&*maps.counters_of(number, direction)?, &served))
}

impl Counters {
    /// Returns the packets that the queue, its manager or a class dropped.
    pub fn dropped(&self) -> u64 {
        self.queue_dropped + self.aqm_dropped.all() + self.class_dropped
    }
}

pub(crate) fn counters(c: &abi::emud_counters, served: &abi::emud_served) -> Counters {
    let passed = |why: abi::emud_pass| c.passed[why as usize];
    let delays = Delays::counted(histogram::buckets(&c.delay_hist), c.delay_ns);
    let departed: u64 = c.delay_hist.iter().sum();
    Counters {
        packets: c.packets + c.preempting,
        bytes: c.bytes + c.preempting_bytes,
        lost: c.lost + served.lost,
        queue_dropped: c.queue_dropped,
        aqm_dropped: AqmDropped::of(c),
        class_dropped: served.dropped,
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
            failed: passed(abi::EMUD_PASS_FAILED) + c.preempting,
            rule: passed(abi::EMUD_PASS_RULE),
        },
        sent_packets: departed.saturating_sub(c.classed) + served.sent_packets,
        sent_bytes: c.sent_bytes + served.sent_bytes,
        delay_ns: c.delay_ns,
        delay_given: delays.given(),
        delay_histogram: delays.buckets().to_vec(),
        down: c.down,
        duplicated: c.duplicated + served.duplicated,
        corrupted: c.corrupted + served.corrupted,
        unaltered: c.unaltered,
    }
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
