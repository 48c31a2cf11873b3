// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations that move: traces, random waypoints, and when a link over the air breaks.

use std::sync::Arc;

use emud::convert::import;
use emud::medium::air::{Air, Frame, Outcome, To};
use emud::medium::motion::{RandomWaypoint, Track, read};
use emud::medium::phy::{Disk, Geometry, PathLoss, Radio, Spread, Standard};
use proptest::prelude::*;
use support::chance::same_cases;
use support::damage::{damaged, edit};

use super::import::GPX;
use super::traffic::{MS, S, plan};

#[test]
fn a_track_is_straight_between_waypoints() {
    let mut track = Track::still([0.0, 0.0]);
    track.push(S, [0.0, 0.0]);
    track.push(3 * S, [20.0, -10.0]);
    assert_eq!(track.at(0), [0.0, 0.0]);
    assert_eq!(track.at(S), [0.0, 0.0]);
    assert_eq!(track.at(2 * S), [10.0, -5.0]);
    assert_eq!(track.at(99 * S), [20.0, -10.0]);
    assert!(track.moves() && !Track::still([1.0, 2.0]).moves());
}

const SETDEST: &str = r#"
# nodes: 2
$node_(0) set X_ 100.0
$node_(0) set Y_ 50.0
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$god_ set-dist 0 1 1
$ns_ at 10.0 "$node_(0) setdest 100.0 150.0 10.0"
$ns_ at 15.0 "$node_(0) setdest 200.0 100.0 20.0"
$ns_ at 5.0 "$node_(1) setdest 30.0 40.0 5.0"
$ns_ at 7.0 "$node_(1) setdest 30.0 40.0 0.0"
"#;

#[test]
fn setdest_of_ns_2() {
    let tracks = read(SETDEST).unwrap();
    let [(name, first), (_, second)] = &tracks[..] else {
        panic!()
    };
    assert_eq!(name, "0");
    assert_eq!(first.at(10 * S), [100.0, 50.0]);
    assert_eq!(first.at(12 * S), [100.0, 70.0]);
    // The second order finds it at (100, 100), 100 m from its target: 5 s.
    assert_eq!(first.at(15 * S), [100.0, 100.0]);
    assert_eq!(first.at(17_500 * MS), [150.0, 100.0]);
    assert_eq!(first.at(20 * S), [200.0, 100.0]);
    // Stopped after 2 s of 10.
    assert_eq!(second.at(9 * S), [6.0, 8.0]);
}

/// Where it is set at a later time, it is from then on.
#[test]
fn a_node_of_ns_2_jumps() {
    let text = "$ns_ at 0.0 \"$node_(0) set X_ 5.0\"\n$ns_ at 4.0 \"$node_(0) set X_ 100.0\"\n\
                $ns_ at 4.0 \"$node_(0) set Y_ 7.0\"\n$ns_ at 1.0 \"$node_(0) setdest 15.0 0.0 1.0\"\n";
    let (_, track) = &read(text).unwrap()[0];
    let positions = [0, 2000, 3999, 4000, 9000].map(|ms| track.at(ms * MS));
    let expected = [
        [5.0, 0.0],
        [6.0, 0.0],
        [7.999, 0.0],
        [100.0, 7.0],
        [100.0, 7.0],
    ];
    for (found, expected) in positions.iter().zip(expected) {
        let off = (found[0] - expected[0]).hypot(found[1] - expected[1]);
        assert!(off < 1e-9, "{positions:?}");
    }
}

#[test]
fn bonnmotion_and_csv() {
    let tracks = read("0.0 1 2 10.0 11 2\n0 5 5\n").unwrap();
    assert_eq!(tracks.len(), 2);
    assert_eq!(tracks[0].1.at(5 * S), [6.0, 2.0]);
    assert_eq!(tracks[1].1.at(5 * S), [5.0, 5.0]);
    // With heights: twelve fields could be four waypoints without.
    let tracks = read("#3D\n0 0 0 0 50 50 0 0 100 100 0 0\n").unwrap();
    assert_eq!(tracks[0].1.at(25 * S), [25.0, 0.0]);
    let tracks = read("time,node,x,y\n0,walker,0,0\n0,gateway,3,4\n60,walker,60,0\n").unwrap();
    assert_eq!(tracks[0].0, "walker");
    assert_eq!(tracks[0].1.at(50 * S), [50.0, 0.0]);
    assert_eq!(tracks[1].1.at(50 * S), [3.0, 4.0]);
}

#[test]
fn mistakes_name_their_line() {
    for (text, line, problem) in [
        ("", 1, "empty"),
        ("0 1\n", 1, "time, x and y"),
        ("#3D\n0 1 1\n", 2, "x, y and z"),
        ("#3D\n0 1 1 z\n", 2, "`z`"),
        ("0 1 1\n0 1 x\n", 2, "`x`"),
        ("0 1 1 5 2 2 4 3 3\n", 1, "ascend"),
        ("-1 1 1\n", 1, "before the beginning"),
        ("0,a,1\n", 1, "time, node, x, y"),
        ("when,node,x,y\n", 1, "columns"),
        ("0,a,1,1\n1,a,1,1e9\n", 2, "1e9"),
        ("$node_(0) set X_ 1\n$node_(0) fly 3\n", 2, "setdest"),
        ("$node_(x) set X_ 1\n", 1, "number of a node"),
        ("$node_(0) setdest 1 1 1\n", 1, "without a time"),
        // It ends behind its last line.
        ("<?xml version='1.0'\n", 1, "'?>'"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.problem.contains(problem), "{text}: {error}");
    }
}

proptest! {
    #![proptest_config(same_cases(support::cases(60_000)))]

    /// Damaged traces are read or rejected with a line that they have, tracks have finite positions,
    /// and what can be imported is.
    #[test]
    fn a_damaged_trace_never_panics(
        which in 0..4_usize,
        damage in prop::collection::vec(edit(), 0..8),
        times in prop::collection::vec(any::<u64>(), 4),
    ) {
        let texts = [SETDEST, "0.0 1 2 10.0 11 2\n0 5 5\n", "time,node,x,y\n0,a,0,0\n9,a,1,1\n", GPX];
        let text = damaged(texts[which], &damage);
        match read(&text) {
            Ok(tracks) => for (_, track) in tracks {
                for ns in &times {
                    prop_assert!(track.at(*ns).iter().all(|m| m.is_finite()));
                }
            }
            Err(error) => prop_assert!(error.line <= text.lines().count().max(1), "{}", error),
        }
        if let Err(error) = import::mobility(&[("trace".to_owned(), text)], Some("trace.csv")) {
            prop_assert_eq!(error.exit_code(), 65);
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn random_waypoints_stay_in_their_area_and_keep_their_speed() {
    let model = RandomWaypoint {
        area_m: [1500.0, 300.0],
        speed_m_s: [1.0, 20.0],
        pause_ns: 30 * S,
    };
    let mut distinct = Vec::new();
    for station in 0..50 {
        let track = model.track(7, station, 900 * S);
        assert_eq!(track, model.track(7, station, 900 * S));
        assert!(track.end_ns() >= 900 * S);
        assert_eq!(track.at(0), track.at(30 * S));
        let mut before = track.at(0);
        for second in 1..900 {
            let now = track.at(second * S);
            assert!((0.0..=1500.0).contains(&now[0]) && (0.0..=300.0).contains(&now[1]));
            let went = (now[0] - before[0]).hypot(now[1] - before[1]);
            assert!(went <= 20.000_001, "{went} m in a second");
            before = now;
        }
        distinct.push(track.at(100 * S));
    }
    distinct.sort_by(|a, b| a[0].total_cmp(&b[0]));
    distinct.dedup();
    assert_eq!(distinct.len(), 50);
}

/// A packet every 10 ms to a station that walks away by 1 m/s, one geometry each 100 ms: the last
/// one arrives within a step of the formula.
#[test]
fn a_walk_breaks_where_the_formula_says() {
    let wavelan = Standard::named("wavelan-914").unwrap();
    let b = Standard::named("802.11b").unwrap();
    let two_ray = PathLoss::TwoRay { height_m: 1.5 };
    let log = PathLoss::LogDistance { exponent: 3.8 };
    let rows = [
        (
            "wavelan-914",
            Spread::Radio(Radio::new(wavelan, two_ray)),
            250.01,
        ),
        ("802.11b", Spread::Radio(Radio::new(b, log)), 50.8),
        ("802.11b", Spread::Disk(Disk::default()), 250.0),
    ];
    for (standard, spread, breaks_m) in rows {
        let geometry = Geometry { spread, ber: 0.0 };
        let begin = f64::floor(breaks_m) - 3.0;
        let mut track = Track::still([begin, 0.0]);
        track.push(20 * S, [begin + 20.0, 0.0]);
        let matrix = |ns| Arc::new(geometry.matrix(&[[0.0, 0.0], track.at(ns)]));
        let mut air = Air::new(plan(standard, 1), matrix(0), &[]);
        for step in 1..200 {
            air.move_at(step * 100 * MS, matrix(step * 100 * MS));
        }
        for n in 0..2_000 {
            let frame = Frame {
                to: To::Station(1),
                bytes: 100,
                token: 0,
            };
            air.arrive(n * 10 * MS, 0, frame);
        }
        let mut last_ns = 0;
        while let Some(outcome) = air.next(21 * S) {
            if let Outcome::Delivered { at_ns, .. } = outcome {
                last_ns = at_ns;
            }
        }
        let last_m = track.at(last_ns)[0];
        assert!(
            (last_m - breaks_m).abs() < 0.15,
            "{standard}: {last_m} {breaks_m}"
        );
    }
}
