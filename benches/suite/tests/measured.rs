// SPDX-License-Identifier: MIT OR Apache-2.0
//! How figures are computed from what was measured.

use std::fs;

use super::{folder, sample, suite, text};
use crate::accuracy::{reached, sending_rate, spread};
use crate::case::cases;
use crate::cost::WAYS;
use crate::hold::delivered_per_s;
use crate::pktgen::{self, Sent};
use crate::report;
use support::probe::{Arrival, Arrivals};

const PKTGEN: &str = "\
Params: count 5000  min_pkt_size: 200  max_pkt_size: 200
     frags: 0  delay: 0  clone_skb: 0  ifname: va@0
Current:
     pkts-sofar: 5000  errors: 3
     started: 93421021us  stopped: 93462418us idle: 12us
Result: OK: 41397(c41385+d12) usec, 5000 (200byte,0frags)
  120781pps 193Mb/sec (193249600bps) errors: 3
";

#[test]
fn the_time_of_pktgen_is_that_of_its_result() {
    let sent = Sent {
        took_us: 41_397,
        refused: 3,
    };
    assert_eq!(pktgen::result(PKTGEN, 5000), Some(sent));
    assert_eq!(pktgen::result(PKTGEN, 50), None);
    let running = PKTGEN.replace("Result: OK", "Result: Starting");
    assert_eq!(pktgen::result(&running, 5000), None);
}

/// Packets sent and received at this distance, each 1 ms on its way.
fn arrivals(count: u32, interval_ns: u64) -> Arrivals {
    let arrival = |number: u32| {
        let sent_ns = 1_000_000 + u64::from(number) * interval_ns;
        Arrival {
            number,
            sent_ns,
            arrived_ns: sent_ns + 1_000_000,
        }
    };
    Arrivals((0..count).map(arrival).collect())
}

#[test]
fn a_rate_takes_two_packets() {
    for (count, interval_ns, rate) in [
        (0, 100_000, None),
        (1, 100_000, None),
        (2, 0, None),
        (2, 100_000, Some(10_000.0)),
        (1001, 10_000, Some(100_000.0)),
    ] {
        let arrivals = arrivals(count, interval_ns);
        assert_eq!(sending_rate(&arrivals), rate, "{count}, {interval_ns}");
        assert_eq!(delivered_per_s(&arrivals.0), rate, "{count}, {interval_ns}");
    }
}

#[test]
fn early_packets_are_off_too() {
    // 99 packets 100 us early, and one at its time.
    let mut arrivals = arrivals(100, 100_000);
    for early in &mut arrivals.0[1..] {
        early.arrived_ns -= 100_000;
    }
    let off = spread(&arrivals, 1.0).map(|(name, us)| (name, us.round()));
    let expected = [
        ("median", -100.0),
        ("p99", 100.0),
        ("worst", 100.0),
        ("earliest", -100.0),
    ];
    assert_eq!(off, expected);
}

#[test]
fn the_earliest_has_no_ratio_to_netem() {
    let mut results = sample::all().remove(0);
    for (metric, netem, emud) in [
        ("departure error, p99", 4.0, 8.0),
        ("departure error, earliest", 1.5, -8.0),
    ] {
        results.add("delay 1 ms", "netem", metric, "us", netem);
        results.add("delay 1 ms", "emud", metric, "us", emud);
    }
    let ratios = |metric: &str| {
        let cases = cases(&results);
        let case = cases.iter().find(|c| c.metric == metric).unwrap();
        let ratios = case.sides.iter().map(|figure| case.ratio(figure));
        ratios.collect::<Vec<_>>()
    };
    assert_eq!(ratios("departure error, p99"), [None, Some(2.0)]);
    assert_eq!(ratios("departure error, earliest"), [None, None]);
}

#[test]
fn a_sender_that_is_too_slow_measures_no_errors() {
    for (rate, is) in [
        (Some(100_000.0), true),
        (Some(98_001.0), true),
        (Some(97_999.0), false),
        (Some(69_546.0), false),
        (Some(53_994.0), false),
        (None, false),
    ] {
        assert_eq!(reached(rate, 100_000), is, "{rate:?}");
    }
}

/// `make bench-check` compares cases by their names.
#[test]
fn each_way_to_send_has_a_name() {
    let names = WAYS.map(|way| way.name());
    let expected = [
        "forwarded, 1 flow",
        "forwarded, 1000 flows",
        "locally sent, 1 flow",
        "locally sent, 1000 flows",
        "locally sent, default buffer, 1 flow",
        "locally sent, connected, 1 flow",
    ];
    assert_eq!(names, expected);
}

#[test]
fn what_is_missing_in_each_turn_is_listed_once() {
    let mut results = sample::all().remove(0);
    for what in ["a case", "another case", "a case"] {
        results.miss(what);
    }
    assert_eq!(results.missing, ["a case", "another case"]);
}

#[test]
fn a_value_that_is_no_number_is_missing() {
    let mut all = sample::all();
    for value in [f64::NAN, f64::NEG_INFINITY] {
        all[0].add("a flood", "emud", "delivered", "packets/s", value);
    }
    assert!(all[0].figures.iter().all(|f| f.case != "a flood"));
    let dir = folder(&all);
    suite(&["report", "--dir", text(&dir)]).unwrap();
    let report = fs::read_to_string(dir.join("report.md")).unwrap();
    for line in [
        "- a flood: emud: delivered is NaN",
        "- a flood: emud: delivered is -inf",
    ] {
        assert!(report.lines().any(|l| l == line), "{line}\n{report}");
    }
}

#[test]
fn each_section_has_a_title() {
    let measured = crate::SECTIONS.map(|(section, _)| section);
    let reported = report::SECTIONS.map(|(section, _)| section);
    assert_eq!(measured, reported);
}
