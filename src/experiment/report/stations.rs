// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations of radio channels as a table.

use super::Table;
use crate::experiment::results::{Run, StationTrack, count, number, rate, share};

const COLUMNS: &[[&str; 2]] = &[
    ["medium", ""],
    ["node", ""],
    ["sent", "n first"],
    ["received", "n"],
    ["sent", "n first"],
    ["retried", "n"],
    ["given up", "n"],
    ["dropped", "n"],
    ["received", "n"],
    ["rate", "n first"],
    ["collided", "n"],
    ["bit errors", "n"],
    ["on air", "n first"],
    ["busy", "n"],
    ["queue", "n first"],
    ["energy", "n"],
];

const GROUPS: &[(&str, usize)] = &[
    ("medium", 1),
    ("node", 1),
    ("rate", 2),
    ("packets", 5),
    ("frames", 3),
    ("time", 2),
    ("longest queue at a sample", 1),
    ("energy", 1),
];

pub fn table(runs: &[Run]) -> Table {
    let rows = |run: &Run| {
        let measured = run.stations.iter().filter(|s| s.interval_ns > 0);
        measured.map(row).collect()
    };
    Table::of_hosts(COLUMNS, runs, rows).grouped(GROUPS)
}

fn row(station: &StationTrack) -> Vec<String> {
    let counted = &station.counted;
    let text = |bit_s: Option<f64>| bit_s.map(rate).unwrap_or_default();
    let of_time = |ns| station.share_of_time(ns).map(share).unwrap_or_default();
    let energy = station.energy_j.map(|j| format!("{} J", number(j)));
    vec![
        station.medium.clone(),
        station.node.clone(),
        text(station.sent_bit_s()),
        text(station.received_bit_s()),
        count(counted.sent_packets),
        count(counted.retried()),
        count(counted.given_up),
        count(counted.dropped()),
        count(counted.received_packets),
        text(counted.data_bit_s()),
        count(counted.collided),
        count(counted.damaged),
        of_time(counted.air_ns),
        of_time(counted.busy_ns),
        count(station.backlog_packets),
        energy.unwrap_or_default(),
    ]
}
