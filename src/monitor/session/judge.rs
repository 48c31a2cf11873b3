// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether the result of an experiment is valid.
//!
//! "invalid" takes precedence over "contended": the cause and the time of contention are known, so
//! the rest of the run is usable; if the emulator failed without a known reason, or nothing was
//! watched, none of it is.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use emud_monitor::event::{Alarm, Resource, Scope, TAMPERED};
use emud_monitor::log::{Judgement, PerResource, RunVerdict, Span, SpanShare};

use super::witness::{Episode, SETTLED};

mod reasons;

pub use reasons::{DISORDERED, ENGINE_DROPPED, only_disordered, only_dropped, only_late};

/// Episodes of the same scope with a smaller distance are merged: a busy CPU that was idle for a
/// moment.
const APART_NS: u64 = 100_000_000;
/// Packets that were queued during contention leave late for some time after it.
const AFTERMATH_NS: u64 = 500_000_000;
/// Maximum number of groups in a span, as in an alarm.
const GROUPS: usize = 8;
const SECOND_NS: u64 = 1_000_000_000;
/// Resources that the emulator needs while packets pass: docs/log-format.md has the reason for each.
/// Not disks, and not what a program reports of itself.
pub const LOAD: &[Resource] = &[
    Resource::Cpu,
    Resource::Steal,
    Resource::Network,
    Resource::Memory,
];
/// The same of an emulator that writes to a file meanwhile.
pub const LOAD_AND_DISK: &[Resource] = &[
    Resource::Cpu,
    Resource::Steal,
    Resource::Network,
    Resource::Memory,
    Resource::Disk,
];

/// The links of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnLinks {
    /// Inode numbers of their network namespaces.
    pub netns: BTreeSet<u32>,
    /// Interfaces and emud's devices of the links there; `None`: no one else has a link there.
    pub devices: Option<BTreeSet<u32>>,
}

impl OwnLinks {
    fn has(&self, netns: u32, device: u32) -> bool {
        let there = |devices: &BTreeSet<u32>| devices.contains(&device);
        self.netns.contains(&netns) && self.devices.as_ref().is_none_or(there)
    }
}

/// Facts that the monitor does not have.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Sentences that make the run invalid, with or without contention, such as a removed link.
    pub invalid: Vec<String>,
    /// Failures of the emulator according to counters; contention at the same time may explain them.
    pub failures: Vec<Failure>,
}

/// The emulator released packets late, dropped them, or let them pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Start of the interval between two readings of the counters.
    pub since_mono_ns: u64,
    /// End of that interval.
    pub until_mono_ns: u64,
    /// Resources whose contention can be the cause; none for packets that this engine never emulates.
    pub explained_by: &'static [Resource],
    /// The link that failed: "link left, up".
    pub of: String,
    /// How many packets or frames, or ms.
    pub number: u64,
    /// The rest of the sentence.
    pub what: Cow<'static, str>,
}

/// The evidence for a verdict. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub episodes: &'a [Episode],
    /// The measured phase; `None`: it was not reached.
    pub measured: Option<[u64; 2]>,
    /// End of episodes that are still open.
    pub ended_mono_ns: u64,
    /// Alarms without a line: their times are unknown.
    pub suppressed: &'a PerResource<u64>,
    /// A time before the first of them.
    pub suppressed_since: &'a PerResource<u64>,
    /// Lost records of the kernel's programs.
    pub ring_full: u64,
    /// Whether anything of the host or the emulator was watched.
    pub watched: bool,
    /// Sentences about resources that could not be watched.
    pub blind: Vec<String>,
    /// Links whose failures count; `None`: all.
    pub own: Option<&'a OwnLinks>,
    pub facts: &'a Facts,
}

/// Returns the judgement with exit code 0.
pub fn judge(evidence: &Evidence) -> Judgement {
    let mut spans = spans(evidence);
    let mut invalid = evidence.facts.invalid.clone();
    invalid.extend(evidence.blind.iter().cloned());
    if evidence.ring_full > 0 {
        invalid.push(format!(
            "{} records of the monitor were lost, each may have been an alarm",
            evidence.ring_full
        ));
    }
    let mut seconds = BTreeSet::new();
    match evidence.measured {
        None => {
            spans.clear();
            invalid.push("the measured phase was not reached".into());
        }
        Some(measured) => {
            let failures = failures(evidence, measured);
            let (explained, unexplained): (Vec<_>, Vec<_>) = (failures.into_iter())
                .partition(|failure| spans.iter().any(|span| explains(span, failure)));
            spans.retain(|span| {
                let touches = touch(measured, [span.since_mono_ns, span.until_mono_ns]);
                touches || explained.iter().any(|failure| explains(span, failure))
            });
            let bad = (spans
                .iter()
                .map(|span| [span.since_mono_ns, span.until_mono_ns]))
            .chain(explained.iter().map(|failure| failure.interval));
            bad.for_each(|interval| mark(&mut seconds, measured, interval));
            for since in suppressed_since(evidence) {
                mark(&mut seconds, measured, [since, measured[1]]);
            }
            invalid.extend(sentences(&unexplained, measured));
        }
    }
    invalid.extend(suppressed(evidence, &spans));
    let verdict = match (invalid.is_empty(), spans.is_empty()) {
        (false, _) => RunVerdict::Invalid,
        (true, false) => RunVerdict::Contended,
        (true, true) if evidence.watched => RunVerdict::Clean,
        (true, true) => RunVerdict::Unwatched,
    };
    Judgement {
        verdict,
        contention: spans,
        contended_seconds: seconds.into_iter().collect(),
        invalid,
        measured_mono_ns: evidence.measured,
        exit_code: 0,
    }
}

/// Returns all contention, with merged episodes.
fn spans(evidence: &Evidence) -> Vec<Span> {
    let contention = (evidence.episodes.iter())
        .filter(|episode| episode.alarm.resource != Resource::Emulator)
        .map(|episode| span(episode, evidence.ended_mono_ns));
    let mut apart: Vec<Span> = contention.collect();
    let key = |span: &Span| (span.resource.clone(), span.what.clone(), span.since_mono_ns);
    apart.sort_by_key(key);
    let mut spans: Vec<Span> = vec![];
    for next in apart {
        match spans.last_mut() {
            Some(last) if belong_together(last, &next) => join(last, next),
            _ => spans.push(next),
        }
    }
    spans.sort_by_key(|span| span.since_mono_ns);
    spans
}

fn span(episode: &Episode, ended_mono_ns: u64) -> Span {
    let alarm = &episode.alarm;
    let until = episode.until_mono_ns.unwrap_or(ended_mono_ns);
    let until = until.max(alarm.since_mono_ns);
    let shares = alarm.shares.iter().map(|share| SpanShare {
        group: share.group.clone(),
        share: share.share,
    });
    let [_, what] = alarm.resource.words(&alarm.scope);
    Span {
        resource: alarm.resource.name().into(),
        what,
        since_mono_ns: alarm.since_mono_ns,
        until_mono_ns: until,
        duration_ns: until - alarm.since_mono_ns,
        by: shares.collect(),
    }
}

/// Returns whether two spans are merged; `next` began later.
fn belong_together(last: &Span, next: &Span) -> bool {
    last.resource == next.resource
        && last.what == next.what
        && next.since_mono_ns < last.until_mono_ns.saturating_add(APART_NS)
}

/// Merges two spans; the shares are the means by duration.
fn join(last: &mut Span, next: Span) {
    let both_ns = (last.duration_ns + next.duration_ns).max(1) as f64;
    let mut by = BTreeMap::<String, f64>::new();
    for (span, of) in [(last.duration_ns, &last.by), (next.duration_ns, &next.by)] {
        for share in of {
            *by.entry(share.group.clone()).or_default() += share.share * span as f64 / both_ns;
        }
    }
    last.by = (by.into_iter())
        .map(|(group, share)| SpanShare { group, share })
        .collect();
    last.by.sort_by(|a, b| b.share.total_cmp(&a.share));
    last.by.truncate(GROUPS);
    last.until_mono_ns = last.until_mono_ns.max(next.until_mono_ns);
    last.duration_ns = last.until_mono_ns - last.since_mono_ns;
}

/// A failure of the emulator, from an alarm or from counters.
struct Failed<'a> {
    interval: [u64; 2],
    explained_by: &'static [Resource],
    what: Noticed<'a>,
}

enum Noticed<'a> {
    /// The sentence without count and time, and the lateness in ns; 0: nothing was late.
    Alarm(String, u64),
    Counted(&'a Failure),
}

/// Returns the failures in the measured phase.
fn failures<'a>(evidence: &'a Evidence, measured: [u64; 2]) -> Vec<Failed<'a>> {
    let alarms = (evidence.episodes.iter()).filter_map(|episode| {
        let sentence = failure(&episode.alarm, evidence.own)?;
        let until = episode.until_mono_ns.unwrap_or(evidence.ended_mono_ns);
        let since = episode.alarm.since_mono_ns;
        Some(Failed {
            interval: [since, until.max(since)],
            explained_by: LOAD,
            what: Noticed::Alarm(sentence, lateness(&episode.alarm)),
        })
    });
    let counted = evidence.facts.failures.iter().map(|failure| Failed {
        interval: [failure.since_mono_ns, failure.until_mono_ns],
        explained_by: failure.explained_by,
        what: Noticed::Counted(failure),
    });
    let all = alarms.chain(counted);
    all.filter(|failure| touch(measured, failure.interval))
        .collect()
}

/// Returns whether an episode lowers the verdict of a measured phase that lasts; `phase`: its start
/// and now. `own`: as in [`Evidence`].
pub(crate) fn lowers(episode: &Episode, phase: [u64; 2], own: Option<&OwnLinks>) -> bool {
    let [began, now] = phase;
    let alarm = &episode.alarm;
    let until = match episode.until_mono_ns {
        Some(until) => until,
        None if now - began >= SETTLED.as_nanos() as u64 => now,
        None => alarm.mono_ns,
    };
    let counts = alarm.resource != Resource::Emulator || failure(alarm, own).is_some();
    counts && until >= began
}

/// Returns `None` for an alarm that does not concern the emulator or this experiment.
fn failure(alarm: &Alarm, own: Option<&OwnLinks>) -> Option<String> {
    match &alarm.scope {
        Scope::Link { netns, ifindex, .. } if own.is_some_and(|own| !own.has(*netns, *ifindex)) => {
            None
        }
        // A run reports tampering of its links itself, and other links do not belong to it.
        Scope::Link { failure, .. } if *failure == TAMPERED => None,
        Scope::Link { failure, name, .. } => Some(match *failure {
            "late" => format!("packets left {name} late"),
            failure => format!("packets of {name} were {failure}"),
        }),
        _ => None,
    }
}

/// Returns the lateness of which an alarm was raised, ns; 0: of no late packet.
fn lateness(alarm: &Alarm) -> u64 {
    match alarm.scope {
        Scope::Link {
            failure: "late", ..
        } => alarm.value,
        _ => 0,
    }
}

fn touch(a: [u64; 2], b: [u64; 2]) -> bool {
    a[0] <= b[1] && b[0] <= a[1]
}

fn explains(span: &Span, failure: &Failed) -> bool {
    let until = span.until_mono_ns.saturating_add(AFTERMATH_NS);
    let mut resources = failure.explained_by.iter();
    resources.any(|resource| resource.name() == span.resource)
        && touch([span.since_mono_ns, until], failure.interval)
}

/// Adds the seconds of the measured phase that overlap with an interval.
fn mark(seconds: &mut BTreeSet<u64>, measured: [u64; 2], interval: [u64; 2]) {
    if touch(measured, interval) {
        let since = interval[0].max(measured[0]) - measured[0];
        let until = interval[1].min(measured[1]) - measured[0];
        seconds.extend(since / SECOND_NS..=until / SECOND_NS);
    }
}

/// Returns one sentence for each link and kind of failure.
fn sentences(failures: &[Failed], measured: [u64; 2]) -> Vec<String> {
    let mut alarms: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let mut counted: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for failure in failures {
        match &failure.what {
            Noticed::Alarm(sentence, late) => {
                let first = failure.interval[0].saturating_sub(measured[0]);
                let (times, at, latest) = alarms.entry(sentence).or_insert((0, first, 0));
                *times += 1;
                *at = first.min(*at);
                *latest = (*latest).max(*late);
            }
            // An interval of the counters each: a cause that stays has as many as the run.
            Noticed::Counted(of) => *counted.entry((&of.of, &of.what)).or_default() += of.number,
        }
    }
    let alarms = alarms.into_iter().map(|(sentence, (times, at, latest))| {
        let at = at as f64 / SECOND_NS as f64;
        let plural = if times == 1 { "" } else { "s" };
        let of = match latest {
            0 => String::new(),
            ns => format!(" of up to {:.1} ms", ns as f64 / 1e6),
        };
        format!(
            "{sentence}, and no contention explains it ({times} alarm{plural}{of}, \
             the first {at:.3} s into the measured phase)"
        )
    });
    let counted = counted.into_iter();
    let counted = counted.map(|((of, what), number)| format!("{of}: {number} {what}"));
    alarms.chain(counted).collect()
}

/// Returns the reasons of suppressed alarms. Their times are unknown: they have no effect only for a resource that is
/// contended anyway.
fn suppressed(evidence: &Evidence, spans: &[Span]) -> Vec<String> {
    let some = evidence.suppressed.iter().filter(|(_, n)| **n > 0);
    let unseen =
        some.filter(|(resource, _)| spans.iter().all(|span| span.resource != resource.name()));
    unseen
        .map(|(resource, n)| {
            let resource = resource.name();
            format!("{n} alarms of {resource} were beyond the limit, at unknown times")
        })
        .collect()
}

/// Returns from when on alarms of each resource may have been beyond its limit. The first of them may belong to
/// contention that began before the last one within it.
fn suppressed_since(evidence: &Evidence) -> impl Iterator<Item = u64> {
    let all = evidence.suppressed_since.iter();
    let contention = all.filter(|(resource, _)| **resource != Resource::Emulator);
    contention.map(|(resource, since)| {
        let alarms = evidence.episodes.iter().map(|episode| &episode.alarm);
        let of_it = alarms.filter(|alarm| alarm.resource == *resource);
        let last = of_it.map(|alarm| alarm.since_mono_ns).max();
        last.map_or(*since, |last| last.min(*since))
    })
}

#[cfg(test)]
mod tests;
