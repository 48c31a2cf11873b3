// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a sample that must be the same when the network repeats.

use std::hash::{DefaultHasher, Hash, Hasher};

use emud_monitor::log::{ClassCounted, Counted, StationCounted};

/// Counts by what they count. Times are not among them: they contain those of the programs.
pub(super) type Totals = Vec<(&'static str, u64)>;

pub(super) fn of_link(x: &Counted) -> Totals {
    vec![
        ("packets came", x.packets),
        ("bytes came", x.bytes),
        ("packets lost", x.lost),
        ("packets dropped", x.dropped),
        ("packets marked", x.marked),
        ("packets duplicated", x.duplicated),
        ("packets corrupted", x.corrupted),
        ("packets reset", x.reset),
    ]
}

pub(super) fn of_class(x: &ClassCounted) -> Totals {
    vec![
        ("packets sent", x.sent_packets),
        ("bytes sent", x.sent_bytes),
        ("packets marked", x.marked),
        ("packets dropped", x.dropped()),
    ]
}

pub(super) fn of_station(x: &StationCounted) -> Totals {
    vec![
        ("packets sent", x.sent_packets),
        ("bytes sent", x.sent_bytes),
        ("packets given up", x.given_up),
        ("packets dropped", x.dropped()),
        ("packets received", x.received_packets),
        ("bytes received", x.received_bytes),
        ("attempts", x.attempts),
        ("attempts without an answer", x.failed),
    ]
}

/// Returns the fingerprint of samples with one more.
pub(super) fn fingerprint(before: u64, sample: &Totals) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, sample).hash(&mut hasher);
    hasher.finish()
}
