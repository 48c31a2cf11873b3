// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a ping log to a measured profile: both directions are equal and independent.

use super::Imported;
use super::ping::PingLog;
use super::writer::{Writer, inline_samples, quoted, string, table};
use crate::profile::quantile::{Table, largest_sd_ns, moments_of};
use crate::profile::{Percent, Shape, Time};
use crate::text::clipped;

/// A profile must fit into the kernel with the rest of the record; more samples than this are
/// replaced by this many means.
const MOST_SAMPLES: usize = 1000;
/// Minimum number of samples for a distribution.
const LEAST_SAMPLES: usize = 10;

pub(crate) fn profile(log: &PingLog, origin: &str) -> Imported {
    let mut out = Writer::default();
    source(&mut out, log, origin);
    out.header("link");
    delay(&mut out, log);
    loss(&mut out, log);
    duplicates(&mut out, log);
    out.finish()
}

pub(super) fn source(out: &mut Writer, log: &PingLog, origin: &str) {
    let of = match log.destination.as_str() {
        "" => String::new(),
        destination => format!(" of {}", clipped(destination)),
    };
    out.key(
        "source",
        string(&format!(
            "measured: ping{of}, {} echoes ({})",
            log.sent,
            clipped(origin)
        )),
    );
}

/// Says that replies overtook others, which those of the profile do not.
pub(super) fn late(out: &mut Writer, log: &PingLog) {
    if log.late > 0 {
        out.note(&format!(
            "{} replies arrived after a later one: their delay differed by more than the time \
             between two echoes. emud keeps packets in order; reorder = \"jitter\" lets them \
             overtake.",
            log.late
        ));
    }
}

fn delay(out: &mut Writer, log: &PingLog) {
    let n = log.rtts_ns.len();
    let values = samples(&log.rtts_ns);
    let (mean, sd) = moments_of(&values);
    let of = match values.len() < n {
        true => format!("the means of {MOST_SAMPLES} equal parts of {n} sorted replies"),
        false => format!("{n} replies"),
    };
    let one_way = (mean / 2.0).round() as u64;
    let one_way_sd = (sd / 2f64.sqrt()).round() as u64;
    out.note(&format!(
        "Round-trip time {} on average, standard deviation {}, from {of}. Two independent \
         halves: mean {} and, because variances add up, standard deviation {} / sqrt(2) = {} in each \
         direction.",
        Time(mean.round() as u64),
        Time(sd.round() as u64),
        Time(one_way),
        Time(sd.round() as u64),
        Time(one_way_sd)
    ));
    late(out, log);
    if one_way_sd == 0 {
        out.key("delay", quoted(Time(one_way)));
        return;
    }
    if n < LEAST_SAMPLES {
        out.warning(format!(
            "the distribution: {n} replies are too few, the minimum is {LEAST_SAMPLES}"
        ));
        out.key("delay", quoted(Time(one_way)));
        return;
    }
    out.note(match values.len() < n {
        true => "The samples are these means.",
        false => "The samples are the measured round-trip times.",
    });
    let most = most_sd_ns(&values, one_way).filter(|most| *most < one_way_sd);
    if let Some(most) = most {
        out.note(&format!(
            "Delays of this shape and mean cannot vary by more than {} without going below zero, \
             so that value is used: the two directions of the measured path were not independent.",
            Time(most)
        ));
    }
    let one_way_sd = most.unwrap_or(one_way_sd);
    out.key(
        "delay",
        table(&[
            ("mean", Some(quoted(Time(one_way)))),
            ("sd", Some(quoted(Time(one_way_sd)))),
            ("samples", Some(inline_samples(&values, true))),
        ]),
    );
}

/// Returns the largest standard deviation in ns of delays with the shape of `values`.
fn most_sd_ns(values: &[f64], mean_ns: u64) -> Option<u64> {
    let (mean, sd) = moments_of(values);
    let standard: Vec<_> = values.iter().map(|v| (v - mean) / sd).collect();
    let table = Table::new(&standard).ok()?;
    // Smaller by a millionth: the values in the profile are rounded.
    let most = largest_sd_ns(Shape::Table(table.into()), mean_ns) * (1.0 - 1e-6);
    Some(most.floor() as u64)
}

/// Returns all values, or the means of as many equal parts of them as the limit permits: unlike quantiles
/// they have the whole tail.
fn samples(rtts_ns: &[f64]) -> Vec<f64> {
    let n = rtts_ns.len();
    if n <= MOST_SAMPLES {
        return rtts_ns.to_vec();
    }
    let mut sorted = rtts_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let part = |i: usize| {
        // Each reply is MOST_SAMPLES long, each part n.
        let (start, end) = (i * n, (i + 1) * n);
        let replies = start / MOST_SAMPLES..end.div_ceil(MOST_SAMPLES);
        let share = |reply: usize| {
            let (from, to) = (reply * MOST_SAMPLES, (reply + 1) * MOST_SAMPLES);
            (to.min(end) - from.max(start)) as f64 / n as f64
        };
        replies.map(|reply| share(reply) * sorted[reply]).sum()
    };
    (0..MOST_SAMPLES).map(part).collect()
}

fn loss(out: &mut Writer, log: &PingLog) {
    if !log.has_summary {
        out.note(
            "The log has no summary: losses are counted from gaps in icmp_seq; losses after the \
             last reply are unknown.",
        );
    } else if log.answered != log.rtts_ns.len() as u64 {
        out.note(&format!(
            "The log has {} replies of the {} that ping counted; losses are ping's count.",
            log.rtts_ns.len(),
            log.answered
        ));
    }
    let lost = log.sent - log.answered;
    if lost == 0 {
        return;
    }
    let share = lost as f64 / log.sent as f64;
    let one_way = Percent(rounded(1.0 - (1.0 - share).sqrt()));
    out.note(&format!(
        "{lost} of {} echoes were lost, {}. Both directions must succeed, so each loses \
         1 - sqrt(1 - {lost}/{}) = {one_way}.",
        log.sent,
        Percent(rounded(share)),
        log.sent
    ));
    out.key("loss", quoted(one_way));
}

pub(super) fn duplicates(out: &mut Writer, log: &PingLog) {
    if log.duplicates == 0 {
        return;
    }
    let share = log.duplicates as f64 / log.rtts_ns.len() as f64;
    let one_way = Percent(rounded(((1.0 + share).sqrt() - 1.0).min(1.0)));
    out.note(&format!(
        "{} of {} replies arrived twice: each direction duplicates sqrt(1 + {0}/{1}) - 1 = {one_way} \
         of the packets.",
        log.duplicates,
        log.rtts_ns.len()
    ));
    out.key("duplicate", quoted(one_way));
}

/// Rounds to six significant digits: more precise than any log.
fn rounded(share: f64) -> f64 {
    format!("{share:.5e}").parse().unwrap_or(share)
}
