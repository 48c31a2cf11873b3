// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces and phases to the rows that the classifier reads by the clock.

use super::compile::{Compiled, ns_per_byte};
use super::fixed::probability;
use super::queueing;
use crate::abi;
use crate::abi::mix;
use crate::profile::{
    Link, LossModel, Phases, Profile, Summary, Trace, TraceRow, TraceSource, figures, own_mean,
    rate_with_trace,
};

/// Longer text of a trace stays out of the profile that the kernel keeps (1 MiB for all of it).
const TEXT_MAX: usize = 1 << 16;
/// Capacity of a row without a limit, bytes: more than any packet has.
const UNLIMITED_BYTES: u64 = 1 << 22;
/// bit/s times ns of a byte.
const BYTE: u128 = 8_000_000_000;
/// EMUD_STOPPED, for which bindgen has no type of 64 bits.
const STOPPED: u64 = u64::MAX;
const OPPORTUNITY: u64 = abi::EMUD_OPPORTUNITY as u64;
/// The longest frame, bytes: a queue in packets may be of those.
const FRAME_MAX: u64 = 1538;
/// A ramp has at least so many rows, and so many that none is longer than this, up to a limit.
const RAMP_ROWS: u64 = 100;
const RAMP_ROW_NS: u64 = 10_000_000;
const RAMP_ROWS_MAX: u64 = 10_000;
const JITTER_ONE: f64 = (1u32 << abi::EMUD_JITTER_SHIFT) as f64;

/// Rows, and what else is to be known of them.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The one behind the last included; empty: the kernel has them.
    pub rows: Vec<abi::emud_row>,
    /// Longest wait of a packet for its transmission.
    pub longest_wait_ns: u64,
    /// The longest delay of a row; 0: none has one.
    pub longest_delay_ns: u64,
    /// The fastest rate, bit/s.
    pub max_rate: u64,
}

/// A row before bytes are reckoned.
#[derive(Debug, Clone, Copy)]
struct Step {
    at_ns: u64,
    rate: Rate,
    row: abi::emud_row,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Rate {
    /// Not said.
    Own,
    Unlimited,
    /// 0: nothing moves.
    Bits(u64),
}

impl Step {
    fn new(at_ns: u64, rate: Rate) -> Self {
        let row = abi::emud_row {
            number: abi::EMUD_SAME_LINK,
            ..Default::default()
        };
        Self { at_ns, rate, row }
    }

    fn of_trace(row: &TraceRow, max_jitter_ns: Option<u64>, own_mean_ns: Option<u64>) -> Self {
        let mut step = Self::new(row.at_ns, row.rate.map_or(Rate::Own, Rate::Bits));
        if let Some(ns) = row.delay_ns.or(own_mean_ns) {
            step.row.set |= abi::EMUD_SET_DELAY;
            step.row.delay_ns = ns;
        }
        if let (Some(ns), Some(max)) = (row.jitter_ns, max_jitter_ns) {
            step.row.set |= abi::EMUD_SET_JITTER;
            step.row.jitter = (ns as f64 / max.max(1) as f64 * JITTER_ONE).round() as u32;
        }
        if let Some(loss) = row.loss {
            step.row.set |= abi::EMUD_SET_LOSS;
            step.row.loss = probability(loss);
        }
        step
    }
}

/// What of a link's trace is needed without its rows.
fn summary(link: &Link, trace: &Trace) -> Summary {
    match &trace.source {
        TraceSource::InForce(summary) => *summary,
        _ => Summary {
            content: content(&build(link, trace).rows),
            own_mean_ns: own_mean(link),
            ..figures(trace)
        },
    }
}

/// The profile as the kernel is to keep it: long traces by what is in force.
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

/// About what an entry takes as text.
fn text_bytes(trace: &Trace) -> usize {
    match trace.source {
        TraceSource::Rows { .. } => 24,
        TraceSource::Mahimahi(_) => 5,
        TraceSource::InForce(_) => 0,
    }
}

/// How many rows a profile has at most, each trace in both directions.
pub fn rows_of(profile: &Profile) -> usize {
    let mut rows = 0;
    for direction in crate::abi::DIRECTIONS {
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
    let wait = match built.rows.is_empty() {
        true => summary.period_ns,
        false => wait_ns(&built, out, rate_with_trace(link)),
    };
    Some(Rows {
        rows: built.rows,
        longest_wait_ns: if trace.has_rate() { wait } else { 0 },
        longest_delay_ns: summary.max_delay_ns.unwrap_or(0),
        max_rate: summary.max_rate,
    })
}

/// Puts a profile's phases into its own link; `seed` draws the sequence of states, the same for both
/// directions.
pub fn phases(profile: &Profile, direction: u32, links: &mut [Compiled], seed: u64, epoch_ns: u64) {
    let phases = &profile.phases;
    if phases.list.is_empty() {
        return;
    }
    let sequence = phases.sequence(seed);
    let built = assemble(
        &phase_steps(profile, direction, &sequence),
        phase_period(phases, &sequence),
        false,
    );
    let longest = links.iter().map(|c| c.link.delay_ns).max();
    let max_rate = profile.links_of(direction).filter_map(|l| l.rate).max();
    let Some(own) = links.first_mut() else { return };
    own.link.timeline = built.timeline;
    own.link.timeline.content = content(&built.rows);
    own.link.timeline.epoch_ns = epoch_ns.wrapping_sub(phases.offset_ns);
    renew(&mut own.link.timeline);
    own.timeline = Some(Rows {
        longest_wait_ns: wait_ns(&built, &own.link, max_rate),
        longest_delay_ns: longest.unwrap_or(0),
        max_rate: max_rate.unwrap_or(0),
        rows: built.rows,
    });
}

/// Time begins so much later.
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

/// Rows as the map has them, but for where they are in it.
struct Built {
    timeline: abi::emud_timeline,
    rows: Vec<abi::emud_row>,
}

fn build(link: &Link, trace: &Trace) -> Built {
    match &trace.source {
        TraceSource::Rows { rows, period_ns } => {
            let max_jitter_ns = rows.iter().filter_map(|row| row.jitter_ns).max();
            let own_mean_ns = own_mean(link);
            let steps: Vec<_> = rows
                .iter()
                .map(|row| Step::of_trace(row, max_jitter_ns, own_mean_ns))
                .collect();
            assemble(&steps, if trace.repeat { *period_ns } else { 0 }, false)
        }
        TraceSource::Mahimahi(ms) => {
            let step = |ms: &u32| Step::new(u64::from(*ms) * 1_000_000, Rate::Own);
            let steps: Vec<_> = ms.iter().map(step).collect();
            let period_ns = steps.last().map_or(0, |s| s.at_ns);
            assemble(&steps, if trace.repeat { period_ns } else { 0 }, true)
        }
        TraceSource::InForce(_) => Built {
            timeline: abi::emud_timeline::default(),
            rows: Vec::new(),
        },
    }
}

fn assemble(steps: &[Step], period_ns: u64, opportunities: bool) -> Built {
    // In bit/s times ns: exact.
    let mut carried = 0u128;
    let mut before = Vec::with_capacity(steps.len() + 1);
    for (i, step) in steps.iter().enumerate() {
        before.push(carried);
        let end = steps.get(i + 1).map_or(period_ns, |next| next.at_ns);
        carried += match step.rate {
            Rate::Own => 0,
            Rate::Unlimited => u128::from(UNLIMITED_BYTES) * BYTE,
            Rate::Bits(bits) => u128::from(end.saturating_sub(step.at_ns)) * u128::from(bits),
        };
    }
    let max_rate = steps.iter().map(|step| match step.rate {
        Rate::Bits(bits) => bits,
        _ => 0,
    });
    let frac = fraction_bits(carried / BYTE, max_rate.max().unwrap_or(0));
    let bytes = |carried: u128| ((carried << frac) / BYTE) as u64;
    let mut rows: Vec<_> = (steps.iter().zip(&before))
        .map(|(step, before)| finished(step, bytes(*before), frac))
        .collect();
    rows.push(abi::emud_row {
        at_ns: match (opportunities, period_ns) {
            (false, ns) if ns > 0 => ns,
            _ => u64::MAX,
        },
        sent: if period_ns > 0 {
            bytes(carried)
        } else {
            u64::MAX
        },
        ..Default::default()
    });
    let kind = match (opportunities, steps.first().map(|s| s.rate)) {
        (true, _) => abi::EMUD_TIMELINE_OPPORTUNITIES,
        (false, None | Some(Rate::Own)) => abi::EMUD_TIMELINE_FIGURES,
        (false, Some(_)) => abi::EMUD_TIMELINE_RATES,
    };
    Built {
        timeline: abi::emud_timeline {
            period_ns,
            sent: bytes(carried),
            count: steps.len() as u32,
            kind,
            frac,
            ..Default::default()
        },
        rows,
    }
}

/// As many as the classifier's 64 bits have room for.
fn fraction_bits(bytes: u128, max_rate: u64) -> u32 {
    let fits = |frac: u32| {
        (bytes + 1) << frac < 1 << 62
            && (u128::from(max_rate) << (frac + abi::EMUD_BYTE_RATE_SHIFT)) / BYTE < 1 << 63
    };
    (1..=abi::EMUD_FRAC_MAX)
        .rev()
        .find(|frac| fits(*frac))
        .unwrap_or(1)
}

fn finished(step: &Step, sent: u64, frac: u32) -> abi::emud_row {
    let mut row = abi::emud_row {
        at_ns: step.at_ns,
        sent,
        ..step.row
    };
    match step.rate {
        Rate::Own => return row,
        Rate::Unlimited => {}
        Rate::Bits(0) => row.rate_mult = STOPPED,
        Rate::Bits(bits) => {
            (row.rate_mult, row.rate_shift) = ns_per_byte(bits);
            let shift = frac + abi::EMUD_BYTE_RATE_SHIFT;
            row.byte_rate = ((u128::from(bits) << shift) / BYTE) as u64;
        }
    }
    row.set |= abi::EMUD_SET_RATE;
    row
}

fn content(rows: &[abi::emud_row]) -> u64 {
    let words = |row: &abi::emud_row| {
        let small = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        [
            row.at_ns,
            row.rate_mult,
            row.sent,
            row.delay_ns,
            row.loss,
            small(row.rate_shift, row.jitter),
            small(row.set, row.number),
        ]
    };
    rows.iter()
        .flat_map(words)
        .fold(1, |hash, word| mix(hash ^ word).wrapping_add(1))
}

/// How long the queue's last packet may wait, at the worst time to come.
fn wait_ns(built: &Built, link: &abi::emud_link, rate: Option<u64>) -> u64 {
    let in_packets = match link.queue_packets {
        0 => u64::MAX,
        n => u64::from(n) * queueing::wire_bytes(link, FRAME_MAX as f64) as u64,
    };
    let in_time = rate.map_or(u64::MAX, |rate| {
        let bytes = u128::from(link.queue_wait_ns) * u128::from(rate) / BYTE;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    });
    let bytes = match link.queue_bytes {
        0 => in_packets,
        bytes => in_packets.min(bytes.into()),
    };
    let worst = match bytes.min(in_time) {
        u64::MAX => 0,
        _ if link.queue_wait_ns < u64::MAX => worst_ns(built, FRAME_MAX),
        bytes => worst_ns(built, bytes),
    };
    match link.queue_wait_ns {
        u64::MAX => worst,
        limit => limit.saturating_add(worst),
    }
}

/// The longest that `bytes` may take from the start of a row on.
fn worst_ns(built: &Built, bytes: u64) -> u64 {
    let t = &built.timeline;
    let count = t.count as usize;
    if t.kind == abi::EMUD_TIMELINE_OPPORTUNITIES {
        let more = (bytes / OPPORTUNITY) as usize + 1;
        // Many rounds of a long trace are more ns than 64 bits have.
        let round = |n: usize| (n / count) as u128 * u128::from(t.period_ns);
        let at = |n: usize| round(n) + u128::from(built.rows[n % count].at_ns);
        let last = if t.period_ns > 0 {
            count
        } else {
            count.saturating_sub(more)
        };
        let waits = (0..last).map(|n| at(n + more) - at(n));
        return u64::try_from(waits.max().unwrap_or(0)).unwrap_or(u64::MAX);
    }
    let units = u128::from(bytes) << t.frac;
    // Two rounds, so that a wait may go over the seam; several where one carries less.
    let rounds = match t.sent {
        0 => 1,
        sent => (units / u128::from(sent)) as u64,
    };
    let sent = |n: usize| {
        u128::from(built.rows[n % count].sent) + (n / count) as u128 * u128::from(t.sent)
    };
    let at = |n: usize| built.rows[n % count].at_ns + (n / count) as u64 * t.period_ns;
    let end = if t.period_ns > 0 { 2 * count } else { count };
    let rest = units - u128::from(rounds) * u128::from(t.sent);
    let (mut worst, mut to) = (0, 0);
    for from in 0..end {
        while to + 1 < end && sent(to) < sent(from) + rest {
            to += 1;
        }
        worst = worst.max(at(to).saturating_sub(at(from)));
    }
    worst.saturating_add(rounds.saturating_mul(t.period_ns))
}

fn phase_period(phases: &Phases, sequence: &[(usize, u64)]) -> u64 {
    let all = sequence.iter().map(|(_, ns)| ns).sum();
    match phases.repeat || phases.chain.is_some() {
        true => all,
        false => 0,
    }
}

/// A row for each phase, many for a ramp.
fn phase_steps(profile: &Profile, direction: u32, sequence: &[(usize, u64)]) -> Vec<Step> {
    let phases = &profile.phases;
    let first = 1 + profile.links.len() as u32;
    let any_rate = profile.links_of(direction).skip(first as usize);
    let any_rate = { any_rate }.any(|link| link.rate.is_some());
    let mut before = match (phases.repeat, phases.list.last()) {
        (true, Some(last)) => last.direction(direction),
        _ => profile.direction(direction),
    };
    let (mut steps, mut at_ns) = (Vec::new(), 0);
    for (place, for_ns) in sequence {
        let (number, phase) = (first + *place as u32, &phases.list[*place]);
        let link = phase.direction(direction);
        let rate = match link.rate {
            _ if !any_rate => Rate::Own,
            None => Rate::Unlimited,
            Some(bits) => Rate::Bits(bits),
        };
        let mut step = Step::new(at_ns, rate);
        step.row.number = number;
        match phase.for_ns {
            Some(ns) if phase.ramp => ramp(&mut steps, step, ns, before, link),
            _ => steps.push(step),
        }
        at_ns += for_ns;
        before = link;
        // The last one lasts, at its own figures.
        if phase.ramp && !phases.repeat && number as usize == first as usize + phases.list.len() - 1
        {
            steps.push(Step { at_ns, ..step });
        }
    }
    steps
}

/// Each row has the figures of its middle: what is sent over all of it is exact.
fn ramp(steps: &mut Vec<Step>, first: Step, for_ns: u64, before: &Link, link: &Link) {
    let rows = for_ns
        .div_ceil(RAMP_ROW_NS)
        .clamp(RAMP_ROWS, RAMP_ROWS_MAX)
        .min(for_ns);
    let loss = |link: &Link| match link.loss.model {
        LossModel::Bernoulli { probability, .. } => probability,
        _ => 0.0,
    };
    for i in 0..rows {
        let part = (i as f64 + 0.5) / rows as f64;
        let between = |from: f64, to: f64| from + (to - from) * part;
        let at = u128::from(for_ns) * u128::from(i) / u128::from(rows);
        let mut step = first;
        step.at_ns += at as u64;
        if let (Some(from), Some(to)) = (before.rate, link.rate) {
            step.rate = Rate::Bits(between(from as f64, to as f64).round() as u64);
        }
        if before.delay.mean_ns != link.delay.mean_ns {
            step.row.set |= abi::EMUD_SET_DELAY;
            let (from, to) = (before.delay.mean_ns, link.delay.mean_ns);
            step.row.delay_ns = between(from as f64, to as f64).round() as u64;
        }
        if before.loss != link.loss {
            step.row.set |= abi::EMUD_SET_LOSS;
            step.row.loss = probability(between(loss(before), loss(link)));
        }
        steps.push(step);
    }
}

/// At most so many points of a curve.
const POINTS: usize = 2000;

/// What a direction's rate is by time: (s, bit/s; infinite: no limit) and its end, s; of a rate
/// that does not change one point. Many rows, and opportunities, are means over some time.
pub fn rates(profile: &Profile, direction: u32) -> (Vec<(f64, f64)>, f64) {
    let link = profile.direction(direction);
    let own = link.rate.map_or(f64::INFINITY, |bits| bits as f64);
    let (steps, end_ns) = match &link.trace {
        Some(trace) => match &trace.source {
            TraceSource::Rows { rows, period_ns } => {
                let step = |row: &TraceRow| Step::of_trace(row, None, None);
                (rows.iter().map(step).collect(), *period_ns)
            }
            TraceSource::Mahimahi(ms) => return of_opportunities(ms),
            TraceSource::InForce(_) => (Vec::new(), 0),
        },
        None => {
            let sequence = profile.phases.shown(profile.seed.unwrap_or(0));
            let steps = phase_steps(profile, direction, &sequence);
            let all: u64 = sequence.iter().map(|(_, ns)| ns).sum();
            // The last one, for ever, is shown for a while.
            let last = steps.last().map_or(0, |s| s.at_ns);
            (steps, all.max(last + last / 10).max(1))
        }
    };
    let points: Vec<_> = steps
        .iter()
        .map(|step| {
            let rate = match step.rate {
                Rate::Own => own,
                Rate::Unlimited => f64::INFINITY,
                Rate::Bits(bits) => bits as f64,
            };
            (step.at_ns as f64 / 1e9, rate)
        })
        .collect();
    match points.len() {
        0 => (vec![(0.0, own)], 1.0),
        _ => (thinned(points, end_ns as f64 / 1e9), end_ns as f64 / 1e9),
    }
}

fn of_opportunities(ms: &[u32]) -> (Vec<(f64, f64)>, f64) {
    let end_ms = ms.last().copied().unwrap_or(1).max(1);
    let bin_ms = end_ms.div_ceil(POINTS as u32).max(100);
    // What is left over at the end is the last one's: a bin of a few ms would be noise.
    let bins = (end_ms / bin_ms).max(1);
    let mut counts = vec![0u32; bins as usize];
    for at in ms {
        // Of the time up to it: the last of all is at the very end.
        let bin = (at.saturating_sub(1) / bin_ms).min(bins - 1);
        counts[bin as usize] += 1;
    }
    let points = (0..).zip(counts).map(|(i, n): (u32, u32)| {
        let start = i * bin_ms;
        let end = if i + 1 == bins {
            end_ms
        } else {
            start + bin_ms
        };
        let bits = f64::from(n) * OPPORTUNITY as f64 * 8.0;
        (f64::from(start) / 1e3, bits * 1e3 / f64::from(end - start))
    });
    (points.collect(), f64::from(end_ms) / 1e3)
}

/// Means over equal times, where there are too many points.
fn thinned(points: Vec<(f64, f64)>, end_s: f64) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points;
    }
    let width = end_s / POINTS as f64;
    let mut bins = vec![0.0; POINTS];
    let ends = points.iter().skip(1).map(|p| p.0).chain([end_s]);
    for ((at, rate), end) in points.iter().zip(ends) {
        let mut from = *at;
        while from < end {
            let bin = ((from / width) as usize).min(POINTS - 1);
            let to = ((bin + 1) as f64 * width).min(end);
            bins[bin] += rate * (to - from) / width;
            from = if to > from { to } else { end };
        }
    }
    let at = |i: usize| i as f64 * width;
    (0..POINTS).map(at).zip(bins).collect()
}
