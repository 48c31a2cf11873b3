// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces and phases to the rows that the classifier reads by the clock.

mod curve;
mod phases;
mod rows;
mod wait;

pub use super::direction::Rows;
use crate::abi;
use crate::abi::mix;
use crate::profile::{
    Link, Profile, Summary, Trace, TraceSource, figures, own_mean, rate_with_trace,
};
pub use curve::rates;
use phases::phase_steps;
pub use phases::phases;
use rows::{Built, Rate, Step, assemble, content};
use wait::{longest_ns, wait_ns, worst_ns};

/// Longer text of a trace stays out of the profile that the kernel keeps (1 MiB for all of it).
const TEXT_MAX: usize = 1 << 16;
/// The bytes of an opportunity.
const OPPORTUNITY: u64 = abi::EMUD_OPPORTUNITY as u64;

/// Returns the figures of a link's trace that are needed without its rows.
fn summary(link: &Link, trace: &Trace) -> Summary {
    match &trace.source {
        TraceSource::InForce(summary) => *summary,
        _ => {
            let built = build(link, trace);
            Summary {
                content: content(&built.rows),
                own_mean_ns: own_mean(link),
                frac: built.timeline.frac,
                ..figures(trace)
            }
        }
    }
}

/// Returns the profile as the kernel is to keep it: long traces by what is in force.
pub fn kept(profile: &Profile) -> Profile {
    let keep = |link: &mut Link| {
        let long = |trace: &&Trace| trace.len() * text_bytes(trace) > TEXT_MAX;
        let kept = link.trace.as_ref().filter(long).map(|t| summary(link, t));
        if let (Some(trace), Some(summary)) = (&mut link.trace, kept) {
            trace.source = TraceSource::InForce(summary);
        }
    };
    let mut kept = profile.clone();
    keep(&mut kept.up);
    keep(&mut kept.down);
    for named in &mut kept.links {
        keep(&mut named.up);
        keep(&mut named.down);
    }
    kept
}

/// Returns about how many bytes an entry of a trace takes as text.
fn text_bytes(trace: &Trace) -> usize {
    match trace.source {
        TraceSource::Rows { .. } => 24,
        TraceSource::Mahimahi(_) => 5,
        TraceSource::InForce(_) => 0,
    }
}

/// Returns how many rows a profile has at most, each trace in both directions.
pub fn rows_of(profile: &Profile) -> usize {
    let mut rows = 0;
    for direction in abi::DIRECTIONS {
        let traces = profile.links_of(direction).filter_map(|l| l.trace.as_ref());
        rows += traces.map(|trace| trace.len() + 1).sum::<usize>();
        if !profile.phases.list.is_empty() {
            rows += match profile.phases.chain {
                Some(_) => profile.phases.turns() + 1,
                None => phase_steps(profile, direction, &profile.phases.sequence(0)).len() + 1,
            };
        }
    }
    rows
}

/// Fills in the timeline of a link that has a trace.
pub(crate) fn compile(out: &mut abi::emud_link, link: &Link, epoch_ns: u64) -> Option<Rows> {
    let trace = link.trace.as_ref()?;
    let summary = figures(trace);
    let built = build(link, trace);
    out.timeline = built.timeline;
    out.timeline.content = match built.rows.is_empty() {
        true => summary.content,
        false => content(&built.rows),
    };
    out.timeline.count = summary.rows;
    out.timeline.period_ns = if trace.repeat { summary.period_ns } else { 0 };
    out.timeline.epoch_ns = epoch_ns.wrapping_sub(trace.offset_ns);
    renew(&mut out.timeline);
    let worst = |bytes| match built.rows.is_empty() {
        true => longest_ns(&summary, bytes),
        false => worst_ns(&built, bytes),
    };
    let wait = wait_ns(worst, out, rate_with_trace(link));
    Some(Rows {
        rows: built.rows,
        longest_wait_ns: if trace.has_rate() { wait } else { 0 },
        longest_delay_ns: summary.max_delay_ns.unwrap_or(0),
        max_rate: summary.max_rate,
    })
}

/// Shifts the start of a timeline by `later_ns`.
pub fn shift(timeline: &mut abi::emud_timeline, later_ns: u64) {
    if timeline.count > 0 {
        timeline.epoch_ns = timeline.epoch_ns.wrapping_add(later_ns);
        renew(timeline);
    }
}

/// Counts of opportunities are of these rows from this moment on.
fn renew(timeline: &mut abi::emud_timeline) {
    timeline.id = mix(timeline.content ^ mix(timeline.epoch_ns)) | 1;
}

fn build(link: &Link, trace: &Trace) -> Built {
    let queue_bytes = link.queue.bytes.unwrap_or(0);
    match &trace.source {
        TraceSource::Rows { rows, period_ns } => {
            let max_jitter_ns = rows.iter().filter_map(|row| row.jitter_ns).max();
            let own_mean_ns = own_mean(link);
            let step = |row| Step::of_trace(row, max_jitter_ns, own_mean_ns);
            let steps: Vec<_> = rows.iter().map(step).collect();
            assemble(
                &steps,
                if trace.repeat { *period_ns } else { 0 },
                false,
                queue_bytes,
            )
        }
        TraceSource::Mahimahi(ms) => {
            let step = |ms: &u32| Step::new(u64::from(*ms) * 1_000_000, Rate::Own);
            let steps: Vec<_> = ms.iter().map(step).collect();
            let period_ns = steps.last().map_or(0, |s| s.at_ns);
            assemble(
                &steps,
                if trace.repeat { period_ns } else { 0 },
                true,
                queue_bytes,
            )
        }
        TraceSource::InForce(_) => Built {
            timeline: abi::emud_timeline::default(),
            rows: Vec::new(),
        },
    }
}
