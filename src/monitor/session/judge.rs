// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be said of a whole experiment: whether its result can be believed.
//!
//! "invalid" goes before "contended": of a contended run it is known what was wrong and when,
//! and the rest of it can be used; when the emulator failed without a reason that is known, or
//! nobody looked, nothing can.

use std::collections::{BTreeMap, BTreeSet};

use emud_monitor::event::{Alarm, Resource, Scope, TAMPERED};
use emud_monitor::log::{Judgement, PerResource, RunVerdict, Span, SpanShare};

use super::witness::Episode;

/// Episodes of the same thing that are less apart are one for people: a busy CPU that was idle
/// for a moment.
const APART_NS: u64 = 100_000_000;
/// What queued up during contention leaves late for some time after it.
const AFTERMATH_NS: u64 = 500_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What whoever carries out the experiment knows, and the monitor does not.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Sentences that make the run invalid, contention or not: a link went away.
    pub invalid: Vec<String>,
    /// What counters say of the emulator; contention at the time explains it.
    pub failures: Vec<Failure>,
}

/// The emulator was late or dropped packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The interval between two readings of the counters.
    pub since_mono_ns: u64,
    pub until_mono_ns: u64,
    pub sentence: String,
}

/// What a verdict is made of. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub episodes: &'a [Episode],
    /// The measured phase; none: it did not come to that.
    pub measured: Option<[u64; 2]>,
    /// Episodes that go on have lasted until then.
    pub ended_mono_ns: u64,
    /// Alarms that did not become lines: when they were is not known.
    pub suppressed: &'a PerResource<u64>,
    /// Records of the kernel's programs that were lost.
    pub ring_full: u64,
    /// Something of the host or the emulator was to be watched.
    pub watched: bool,
    /// Sentences about what could not be watched.
    pub blind: Vec<String>,
    /// Inode numbers of the network namespaces whose links count; none: all.
    pub netns: Option<&'a BTreeSet<u32>>,
    pub facts: &'a Facts,
}

/// The judgement, still without an exit code: 0.
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

/// Contention, whenever it was, with what belongs together put together.
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

/// `next` began later.
fn belong_together(last: &Span, next: &Span) -> bool {
    last.resource == next.resource
        && last.what == next.what
        && next.since_mono_ns < last.until_mono_ns.saturating_add(APART_NS)
}

/// The shares are those of the longer one.
fn join(last: &mut Span, next: Span) {
    if next.duration_ns > last.duration_ns {
        last.by = next.by;
    }
    last.until_mono_ns = last.until_mono_ns.max(next.until_mono_ns);
    last.duration_ns = last.until_mono_ns - last.since_mono_ns;
}

/// A failure of the emulator, by an alarm or by counters.
struct Failed {
    interval: [u64; 2],
    /// With how often and when still to be said, for an alarm.
    sentence: String,
    alarm: bool,
}

/// Those in the measured phase.
fn failures(evidence: &Evidence, measured: [u64; 2]) -> Vec<Failed> {
    let alarms = (evidence.episodes.iter()).filter_map(|episode| {
        let sentence = failure(&episode.alarm, evidence.netns)?;
        let until = episode.until_mono_ns.unwrap_or(evidence.ended_mono_ns);
        let since = episode.alarm.since_mono_ns;
        Some(Failed {
            interval: [since, until.max(since)],
            sentence,
            alarm: true,
        })
    });
    let counted = evidence.facts.failures.iter().map(|failure| Failed {
        interval: [failure.since_mono_ns, failure.until_mono_ns],
        sentence: failure.sentence.clone(),
        alarm: false,
    });
    let all = alarms.chain(counted);
    all.filter(|failure| touch(measured, failure.interval))
        .collect()
}

/// None: not of the emulator, or not of this experiment.
fn failure(alarm: &Alarm, wanted: Option<&BTreeSet<u32>>) -> Option<String> {
    match &alarm.scope {
        Scope::Link { netns, .. } if wanted.is_some_and(|wanted| !wanted.contains(netns)) => None,
        // Of its own links a run says so itself, and what others attached is not part of it.
        Scope::Link { failure, .. } if *failure == TAMPERED => None,
        Scope::Link { failure, name, .. } => Some(match *failure {
            "late" => format!("packets left {name} late"),
            failure => format!("packets of {name} were {failure}"),
        }),
        _ => None,
    }
}

fn touch(a: [u64; 2], b: [u64; 2]) -> bool {
    a[0] <= b[1] && b[0] <= a[1]
}

fn explains(span: &Span, failure: &Failed) -> bool {
    let until = span.until_mono_ns.saturating_add(AFTERMATH_NS);
    touch([span.since_mono_ns, until], failure.interval)
}

/// The seconds of the measured phase that an interval touches.
fn mark(seconds: &mut BTreeSet<u64>, measured: [u64; 2], interval: [u64; 2]) {
    if touch(measured, interval) {
        let since = interval[0].max(measured[0]) - measured[0];
        let until = interval[1].min(measured[1]) - measured[0];
        seconds.extend(since / SECOND_NS..=until / SECOND_NS);
    }
}

/// One for each link and kind of failure.
fn sentences(failures: &[Failed], measured: [u64; 2]) -> Vec<String> {
    let mut alarms: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for failure in failures.iter().filter(|failure| failure.alarm) {
        let first = failure.interval[0].saturating_sub(measured[0]);
        let (times, at) = alarms.entry(&failure.sentence).or_insert((0, first));
        *times += 1;
        *at = first.min(*at);
    }
    let alarms = alarms.into_iter().map(|(sentence, (times, at))| {
        let at = at as f64 / SECOND_NS as f64;
        let plural = if times == 1 { "" } else { "s" };
        format!(
            "{sentence}, and no contention explains it ({times} alarm{plural}, \
             the first {at:.3} s into the measured phase)"
        )
    });
    let counted = failures.iter().filter(|failure| !failure.alarm);
    let counted = counted.map(|failure| failure.sentence.clone());
    alarms.chain(counted).collect()
}

/// When they were is not known: only a resource whose contention is there anyway is none the
/// worse for them.
fn suppressed(evidence: &Evidence, spans: &[Span]) -> Vec<String> {
    let some = evidence.suppressed.iter().filter(|(_, n)| **n > 0);
    let unseen =
        some.filter(|(resource, _)| spans.iter().all(|span| span.resource != resource.name()));
    unseen
        .map(|(resource, n)| {
            let resource = resource.name();
            format!("{n} alarms of {resource} were beyond the limit, when is not known")
        })
        .collect()
}

#[cfg(test)]
mod tests;
