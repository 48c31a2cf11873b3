// SPDX-License-Identifier: MIT OR Apache-2.0

use super::hosts::{Hosts, Setup};

/// Agents without nodes carry out whole runs; more than etcd takes in a transaction are an error
/// that names the remedy.
pub fn thirty_agents() {
    let etcd = ["--max-txn-ops".to_owned(), "40".to_owned()];
    let hosts = Hosts::with(&Setup {
        etcd: &etcd,
        ..Setup::default()
    });
    let printed = hosts.emud(&["simulate", "--agents", "2,30,60", "--links", "20"]);
    println!("{printed}");
    let rows: Vec<Vec<&str>> = (printed.lines())
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .filter(|row: &Vec<&str>| row.len() == 13)
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    // Six of each agent, and five of the run.
    let expected = [["2", "40", "17"], ["30", "600", "185"]];
    for (row, expected) in rows[1..].iter().zip(expected) {
        assert_eq!(row[..3], expected);
        assert!(
            row[3..]
                .iter()
                .all(|cell| cell.ends_with(" ms") || cell.ends_with(" MiB")),
            "{row:?}"
        );
    }
    assert!(printed.contains("--max-txn-ops 64"), "{printed}");
    assert!(hosts.emud(&["status"]).contains("no run"));
}
