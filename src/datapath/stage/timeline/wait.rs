// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a packet may wait for a rate that changes.

use super::OPPORTUNITY;
use super::rows::{BYTE, Built, STOPPED};
use crate::abi;
use crate::datapath::stage::queueing;
use crate::profile::Summary;

/// The longest frame, bytes: a queue in packets may be of those.
const FRAME_MAX: u64 = 1538;

/// Returns how long the queue's last packet may wait, at the worst time to come; `worst_ns` is how long so
/// many bytes may take.
pub(super) fn wait_ns(
    worst_ns: impl Fn(u64) -> u64,
    link: &abi::emud_link,
    rate: Option<u64>,
) -> u64 {
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
        _ if link.queue_wait_ns < u64::MAX => worst_ns(FRAME_MAX),
        bytes => worst_ns(bytes),
    };
    match link.queue_wait_ns {
        u64::MAX => worst,
        limit => limit.saturating_add(worst),
    }
}

/// Returns an upper bound of the time that `bytes` take, by the summary of rows that only the kernel has.
pub(super) fn longest_ns(rows: &Summary, bytes: u64) -> u64 {
    let ns = (u128::from(bytes) * BYTE).checked_div(rows.long_rate.into());
    let ns = u64::try_from(ns.unwrap_or(0)).unwrap_or(u64::MAX);
    ns.saturating_add(rows.period_ns)
}

/// Returns the longest that `bytes` may take from the start of a row on. A last row that stays in force
/// counts for all of them.
pub(super) fn worst_ns(built: &Built, bytes: u64) -> u64 {
    let t = &built.timeline;
    let count = t.count as usize;
    if t.kind == abi::EMUD_TIMELINE_OPPORTUNITIES {
        let more = (bytes / OPPORTUNITY) as usize + 1;
        // Many rounds of a long trace are more ns than 64 bits have.
        let at = |n: usize| {
            let round = match t.period_ns {
                0 => n.min(count - 1), // nothing is sent after the last one
                _ => n,
            };
            let rounds = (round / count) as u128 * u128::from(t.period_ns);
            rounds + u128::from(built.rows[round % count].at_ns)
        };
        let waits = (0..count).map(|n| at(n + more) - at(n));
        let from_the_start = at(more - 1);
        return u64::try_from(waits.fold(from_the_start, u128::max)).unwrap_or(u64::MAX);
    }
    let units = u128::from(bytes) << t.frac;
    // Two rounds, so that a wait may go over the seam; several where one carries less.
    let rounds = match (t.period_ns, t.sent) {
        (0, _) => 0,
        (_, 0) => 1,
        (_, sent) => (units / u128::from(sent)) as u64,
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
    let last = match t.period_ns {
        0 => time_ns(&built.rows[count - 1], bytes),
        _ => 0,
    };
    worst
        .saturating_add(rounds.saturating_mul(t.period_ns))
        .saturating_add(last)
}

/// Returns the time that `bytes` take at the rate of a row, in ns; 0 if it has no rate or sends nothing.
fn time_ns(row: &abi::emud_row, bytes: u64) -> u64 {
    if row.rate_mult == STOPPED {
        return 0;
    }
    let ns = (u128::from(bytes) * u128::from(row.rate_mult)) >> row.rate_shift;
    u64::try_from(ns).unwrap_or(u64::MAX)
}
