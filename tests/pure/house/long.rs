// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long files have a reason: that of code is in the file, that of tests here.

use std::fs;
use std::path::PathBuf;

use super::{files, without_tests};

/// Lines of a file, without its tests.
const MOST_LINES: usize = 400;

/// Long files of tests, by the reason.
static LONG_TESTS: [(&str, &[&str]); 4] = [
    (
        "the cases of one reader, stage or page are beside each other: a missing one shows",
        &[
            "tests/kernel/classifier/alter.rs",
            "tests/kernel/classifier/aqm.rs",
            "tests/kernel/classifier/delay.rs",
            "tests/kernel/classifier/loss.rs",
            "tests/kernel/classifier/matrix.rs",
            "tests/kernel/classifier/phases.rs",
            "tests/kernel/classifier/report.rs",
            "tests/kernel/classifier/rules.rs",
            "tests/kernel/classifier/timeline.rs",
            "tests/kernel/json.rs",
            "tests/kernel/netlink/restore.rs",
            "tests/pure/fleet/divided.rs",
            "tests/pure/medium/rules.rs",
            "tests/pure/profiles/bottleneck.rs",
            "tests/pure/profiles/delays.rs",
            "tests/pure/profiles/import_netem.rs",
            "tests/pure/profiles/import_ping.rs",
            "tests/pure/profiles/import_rates.rs",
            "tests/pure/profiles/import_scripts.rs",
            "tests/pure/profiles/import_tc.rs",
            "tests/pure/profiles/queue.rs",
            "tests/pure/profiles/random.rs",
            "tests/pure/profiles/rules.rs",
            "tests/pure/profiles/tc_round_trip.rs",
            "tests/pure/profiles/together.rs",
            "tests/pure/profiles/trace.rs",
            "tests/pure/report_page/compared.rs",
            "tests/pure/report_page/page.rs",
            "tests/pure/report_page/reading.rs",
            "tests/pure/reproduction.rs",
            "tests/pure/scenario/medium.rs",
            "tests/pure/scenario/mistakes.rs",
        ],
    ),
    (
        "each test is a whole run on a machine, and most lines prepare it",
        &[
            "tests/kernel/record.rs",
            "tests/kernel/verify/mod.rs",
            "tests/live/fleet/same.rs",
            "tests/live/link/bottleneck.rs",
            "tests/live/link/frames.rs",
            "tests/live/link/odd.rs",
            "tests/live/link/restore.rs",
            "tests/live/link/senders.rs",
            "tests/live/link/tamper.rs",
            "tests/live/link/timing.rs",
            "tests/live/monitor/alarms.rs",
            "tests/live/monitor/latency.rs",
            "tests/live/run/medium.rs",
            "tests/live/run/verdict.rs",
        ],
    ),
    (
        "the tests of a folder share it",
        &[
            "tests/kernel/classifier/mod.rs",
            "tests/live/container/mod.rs",
            "tests/live/fleet/hosts.rs",
            "tests/pure/report_page/made_up.rs",
            "tests/support/src/lab.rs",
            "tests/support/src/site.rs",
        ],
    ),
    (
        "a part of emud is written once more, or runs without a kernel, in one piece",
        &[
            "tests/kernel/classifier/aqm_room.rs",
            "tests/pure/bottleneck/reference.rs",
            "tests/pure/monitor/counts.c",
            "tests/pure/monitor/episodes.c",
            "tests/pure/qdisc.c",
        ],
    ),
];

fn is_long(text: &str) -> bool {
    without_tests(text).lines().count() > MOST_LINES
}

fn below(folders: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders {
        files(&support::root().join(folder), &["rs", "c", "h"], &mut all);
    }
    all
}

#[test]
fn long_files_say_why() {
    let all = below(&["src", "monitor", "bpf"]);
    let is_silent = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let is_test = path.ends_with("tests.rs");
        !is_test && is_long(&text) && !text.contains("Longer than 400 lines: ")
    };
    assert!(all.len() > 500, "{}", all.len());
    let silent: Vec<_> = all.iter().filter(|path| is_silent(path)).collect();
    assert!(silent.is_empty(), "split them, or say why: {silent:?}");
}

#[test]
fn long_tests_have_a_reason() {
    let root = support::root();
    let listed = LONG_TESTS.iter().flat_map(|(_, files)| *files);
    let listed: Vec<&str> = listed.copied().collect();
    let all = below(&["tests", "benches"]);
    assert!(all.len() > 200, "{}", all.len());
    let is_silent = |path: &&PathBuf| {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        !listed.contains(&name) && is_long(&fs::read_to_string(path).unwrap())
    };
    let silent: Vec<_> = all.iter().filter(is_silent).collect();
    assert!(
        silent.is_empty(),
        "split them, or give a reason: {silent:?}"
    );
    let is_gone = |file: &&&str| !root.join(file).is_file();
    let gone: Vec<_> = listed.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "no such files: {gone:?}");
}
