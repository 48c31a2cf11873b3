// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::fleet::merge::{HostClock, HostLog, merge};
use serde_json::Value;

fn log(host: &str, offset: i64, lines: &[&str]) -> HostLog {
    HostLog {
        host: host.to_owned(),
        text: lines.join("\n").into_bytes(),
        clock: HostClock {
            start: (0, offset),
            end: None,
            bound_ns: 10,
        },
    }
}

fn lines(logs: &[HostLog]) -> Vec<Value> {
    let merged = String::from_utf8(merge(logs)).unwrap();
    merged
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn lines_are_in_the_order_of_the_reference() {
    let a = log(
        "a",
        0,
        &[
            r#"{"type":"x","mono_ns":100}"#,
            r#"{"type":"y","mono_ns":300}"#,
        ],
    );
    // Its clock is 1000 ns ahead of the reference.
    let b = log("b", -1000, &[r#"{"type":"z","mono_ns":1200}"#]);
    let all = lines(&[a, b]);
    let of = |key: &str| all.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("type"), ["x", "z", "y"]);
    assert_eq!(of("host"), ["a", "b", "a"]);
    assert_eq!(of("reference_ns"), [100, 200, 300]);
    assert_eq!(of("mono_ns"), [100, 1200, 300]);
}

#[test]
fn lines_of_one_host_keep_their_order() {
    let equal: Vec<String> = (0..20)
        .map(|n| format!(r#"{{"n":{n},"mono_ns":5}}"#))
        .collect();
    let equal: Vec<&str> = equal.iter().map(String::as_str).collect();
    let all = lines(&[log("a", 0, &equal), log("b", 0, &[r#"{"mono_ns":5}"#])]);
    let numbers: Vec<_> = all.iter().filter_map(|line| line["n"].as_u64()).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[test]
fn the_machine_of_a_start_line_is_kept() {
    let start = r#"{"type":"start","mono_ns":1,"host":{"cpus":2}}"#;
    let all = lines(&[log("a", 0, &[start])]);
    assert_eq!(all[0]["host"], "a");
    assert_eq!(all[0]["machine"]["cpus"], 2);
}

#[test]
fn a_log_that_was_cut_is_merged_up_to_there() {
    let all = lines(&[log("a", 0, &[r#"{"mono_ns":1}"#, r#"{"mono_"#])]);
    assert_eq!(all.len(), 1);
}

#[test]
fn between_two_measurements_the_offset_is_linear() {
    let clock = HostClock {
        start: (1_000, 10),
        end: Some((2_000, 20)),
        bound_ns: 0,
    };
    assert_eq!(clock.reference_ns(1_000), 1_010);
    assert_eq!(clock.reference_ns(1_500), 1_515);
    assert_eq!(clock.reference_ns(2_000), 2_020);
    // Outside, it is that of the nearest one.
    assert_eq!(clock.reference_ns(500), 510);
    assert_eq!(clock.reference_ns(3_000), 3_020);
}
