// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a ping log to a trace: the delay and the losses of a path over time.

use super::Imported;
use super::ping::{PingLog, Timed};
use super::ping_toml::{duplicates, late, source};
use super::writer::Writer;
use crate::profile::{MAX_ROWS, Time, Trace, TraceRow, TraceSource};
use crate::text::{At, Mistake};

const START: At = At {
    source: 0,
    span: 0..0,
};

pub(crate) fn profile(
    log: &PingLog,
    origin: &str,
    interval_ns: Option<u64>,
    beside: Option<&str>,
) -> Result<Imported, Mistake> {
    // Sequence numbers of a log in 16 bits cannot be more than this apart.
    if log.last - log.first >= MAX_ROWS as i64 {
        let title = format!("more than {MAX_ROWS} echoes");
        return Err(Mistake::new(&START, title, "use a part of the log"));
    }
    let replies = log.replies.len() as u64;
    // The summary of a part of a log counts the echoes before that part, too.
    if log.has_summary && !log.destination.is_empty() && log.answered > replies {
        let title = format!(
            "{replies} replies in the log, and ping counted {}",
            log.answered
        );
        let help = "use the whole log: the row of a reply that is missing would lose all packets";
        return Err(Mistake::new(&START, title, help));
    }
    let times = match interval_ns {
        Some(ns) => (0..=log.last - log.first + 1)
            .map(|n| i128::from(n) * i128::from(ns))
            .collect(),
        None => measured(log)?,
    };
    let (rows, period_ns) = rows(log, &times)?;
    let lost = rows.iter().filter(|row| row.loss == Some(1.0)).count();
    let distances_ns = rows.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns);
    let closest_ns = distances_ns.min();
    let trace = Trace {
        source: TraceSource::Rows {
            rows: rows.into(),
            period_ns,
        },
        repeat: true,
        offset_ns: 0,
    };
    let mut out = Writer::default();
    source(&mut out, log, origin);
    out.header("link");
    out.note(&format!(
        "{} rows, a row for each echo from its transmission on, {}; repeated. Each direction has half of \
         the round-trip time.",
        trace.len(),
        Time(period_ns)
    ));
    if lost > 0 {
        out.note(&format!(
            "{lost} echoes were lost: both directions lose all packets in these rows, because the log \
             does not say which of them lost the packet, and have the delay of the row before."
        ));
        let longest_ns = log.replies.iter().map(|reply| half_ns(Some(reply))).max();
        if longest_ns >= closest_ns {
            out.note(
                "Half of a round trip is not shorter than the distance of echoes: a reply may meet the row of a later \
                 echo, so a ping may lose twice what it lost on the path. Take out the loss of one direction for that.",
            );
        }
    }
    if !log.has_summary {
        out.note("The log has no summary: losses after the last reply are unknown.");
    }
    late(&mut out, log);
    duplicates(&mut out, log);
    let beside = out.trace(&trace, beside, &START)?;
    Ok(Imported {
        beside,
        ..out.finish()
    })
}

/// Returns the time of each echo, and that of one more, from the time stamps of the replies: an echo was
/// sent a round trip before its reply arrived. Between two replies, lost echoes have equal distances.
fn measured(log: &PingLog) -> Result<Vec<i128>, Mistake> {
    let sent = |reply: &Timed| {
        let help = "run ping -D, which writes the time of each reply, or give the interval of ping: \
                    --interval 1s";
        let arrived = reply
            .arrived_ns
            .ok_or_else(|| Mistake::new(&reply.at, "a reply without a time stamp", help))?;
        Ok((reply.sequence, arrived - reply.rtt_ns.round() as i128))
    };
    let known: Vec<(i64, i128)> = log.replies.iter().map(sent).collect::<Result<_, _>>()?;
    let (Some(&first), Some(&last)) = (known.first(), known.last()) else {
        return Err(Mistake::new(&START, "there are no replies in this log", ""));
    };
    if first.0 == last.0 {
        let help = "the time between echoes follows from two of them: give the interval of ping, \
                    --interval 1s";
        return Err(Mistake::new(&START, "a single reply", help));
    }
    for (pair, reply) in known.windows(2).zip(&log.replies[1..]) {
        // Each echo between them needs a nanosecond.
        if pair[1].1 - pair[0].1 < i128::from(pair[1].0 - pair[0].0) {
            let help = "the clock was set while ping ran: use the part before or after it, or give the \
                        interval of ping: --interval 1s";
            return Err(Mistake::new(&reply.at, "time goes back", help));
        }
    }
    let between = |(from, to): ((i64, i128), (i64, i128)), sequence: i64| {
        let share = i128::from(sequence - from.0) * (to.1 - from.1);
        from.1 + share.div_euclid(i128::from(to.0 - from.0))
    };
    let mut next = 0;
    let at = |sequence: i64| {
        while known.get(next).is_some_and(|(known, _)| *known < sequence) {
            next += 1;
        }
        match (next.checked_sub(1).map(|i| known[i]), known.get(next)) {
            (_, Some(reply)) if reply.0 == sequence => reply.1,
            (Some(before), Some(after)) => between((before, *after), sequence),
            // Beyond the replies, in their mean interval.
            _ => between((first, last), sequence),
        }
    };
    let times: Vec<i128> = (log.first..=log.last + 1).map(at).collect();
    let start = times.first().copied().unwrap_or_default();
    Ok(times.into_iter().map(|time| time - start).collect())
}

/// Returns a row for each echo, and their period; `times` has one more.
fn rows(log: &PingLog, times: &[i128]) -> Result<(Vec<TraceRow>, u64), Mistake> {
    let mut replies = log.replies.iter().peekable();
    // Before the first reply the delay is unknown, too.
    let mut delay_ns = half_ns(log.replies.first());
    let has_losses = (log.last - log.first + 1) as usize > log.replies.len();
    let ns = |time: i128| u64::try_from(time).unwrap_or(u64::MAX);
    let mut rows = Vec::new();
    for (sequence, time) in (log.first..=log.last).zip(times) {
        let reply = replies.next_if(|reply| reply.sequence == sequence);
        delay_ns = reply.map_or(delay_ns, |reply| half_ns(Some(reply)));
        rows.push(TraceRow {
            at_ns: ns(*time),
            delay_ns: Some(delay_ns),
            loss: has_losses.then(|| if reply.is_some() { 0.0 } else { 1.0 }),
            ..TraceRow::default()
        });
    }
    // The last row lasts as long as the one before.
    let last = rows.last().map_or(0, |row| row.at_ns);
    let before = rows.iter().rev().nth(1).map(|row| row.at_ns);
    let period_ns = match before {
        Some(before) => last.saturating_add(last - before),
        None => ns(times.last().copied().unwrap_or_default()),
    };
    match Time(period_ns).to_string().parse::<crate::text::Span>() {
        Ok(_) => Ok((rows, period_ns)),
        Err(_) => Err(Mistake::new(
            &START,
            "a log of more than 100 years",
            "check the time stamps, or --interval",
        )),
    }
}

/// Returns the delay of one direction in ns: half of the round trip.
fn half_ns(reply: Option<&Timed>) -> u64 {
    reply.map_or(0, |reply| (reply.rtt_ns / 2.0).round() as u64)
}
