// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud import mobility`: traces become scenarios with the same motion.

use std::fs;
use std::path::Path;

use emud::convert::import::{Imported, mobility};
use emud::experiment::scenario::{Overrides, Plan, Scenario};
use emud::medium::motion::{Track, read};
use emud::text::TextError;

use super::traffic::{MS, S};

/// Two receivers in one file: the first goes 0.001 degrees north in 10 s, at 60 degrees north.
pub const GPX: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1">
  <metadata><time>2024-05-01T10:00:00Z</time></metadata>
  <trk><name>Alice's phone</name><trkseg>
    <trkpt lat="60.000" lon="10.000"><ele>12</ele><time>2024-05-01T10:00:00Z</time></trkpt>
    <trkpt lat="60.001" lon="10.000"><time>2024-05-01T10:00:10Z</time></trkpt>
  </trkseg></trk>
  <trk><trkseg>
    <trkpt lat="60.001" lon="10.001"><time>2024-05-01T10:00:05.5Z</time></trkpt>
    <trkpt lat="60.000" lon="10.001"><time>2024-05-01T10:00:15Z</time></trkpt>
  </trkseg></trk>
</gpx>
"#;

fn one(text: &str, beside: Option<&str>) -> Result<Imported, TextError> {
    mobility(&[("trace".to_owned(), text.to_owned())], beside)
}

fn plan(toml: &str, folder: &Path) -> Plan {
    let scenario = Scenario::parse(toml, "imported.toml", folder);
    let planned = scenario.and_then(|scenario| scenario.plan(&Overrides::default()));
    planned.unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

#[track_caller]
fn same(plan: &Plan, tracks: &[(String, Track)]) {
    let stations = &plan.media[0].stations;
    assert_eq!(stations.len(), tracks.len());
    for (station, (name, track)) in stations.iter().zip(tracks) {
        for ns in (0..200).map(|n| n * 97 * MS) {
            let (found, wanted) = (station.track.at(ns), track.at(ns));
            let off = (found[0] - wanted[0]).hypot(found[1] - wanted[1]);
            assert!(off < 2e-3, "{name} at {ns}: {found:?} {wanted:?}");
        }
    }
}

const SETDEST: &str = "$node_(0) set X_ 100.0\n$node_(0) set Y_ 50.0\n$node_(0) set Z_ 0.0\n\
    $node_(1) set X_ 0.0\n$node_(1) set Y_ 0.0\n$node_(2) set X_ 7\n$node_(2) set Y_ 8\n\
    $ns_ at 2.0 \"$node_(0) setdest 100.0 150.0 10.0\"\n\
    $ns_ at 5.0 \"$node_(0) setdest 200.0 100.0 20.0\"\n\
    $ns_ at 0.5 \"$node_(1) setdest 30.0 40.0 5.0\"\n";

#[test]
fn a_trace_becomes_paths() {
    for (text, names) in [
        (SETDEST, vec!["n0", "n1", "n2"]),
        ("0.0 1 2 10.0 11 2\n3.25 5 5 9 1 1\n", vec!["n0", "n1"]),
        (
            "time,node,x,y\n0,walker,0,0\n0,gate way,3,4\n1,7,3,4\n60,walker,60,-5\n",
            vec!["walker", "gate-way", "n7"],
        ),
        (
            "0,Bus,0,0\n0,bus,3,4\n0,LOCALHOST,1,1\n",
            vec!["Bus", "bus-2", "n-LOCALHOST"],
        ),
        (GPX, vec!["Alice-s-phone", "track2"]),
    ] {
        let imported = one(text, None).unwrap();
        assert_eq!((&imported.beside, &imported.warnings), (&None, &vec![]));
        let plan = plan(&imported.toml, Path::new(""));
        let nodes: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes, names);
        same(&plan, &read(text).unwrap());
    }
    let still = one(SETDEST, None).unwrap().toml;
    assert!(still.contains("[node.n2]\nat = [7, 8]\n"), "{still}");
}

#[test]
fn a_long_trace_goes_into_a_file_beside() {
    let mut text = String::from("time,node,x,y\n");
    for n in 0..600 {
        let x = (n * 37) % 100;
        text += &format!("{}.{:03},a,{x},1\n{n},b,{n},{x}\n", n / 10, n % 10);
    }
    let error = one(&text, None).unwrap_err();
    assert!(
        error.to_string().contains("write a file with -o"),
        "{error}"
    );
    let imported = one(&text, Some("long.csv")).unwrap();
    let folder = std::env::temp_dir().join(format!("emud-mobility-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("long.csv"), imported.beside.unwrap()).unwrap();
    let plan = plan(&imported.toml, &folder);
    fs::remove_dir_all(&folder).unwrap();
    same(&plan, &read(&text).unwrap());
}

/// One degree of latitude at 60 degrees is 111,412 m, one of longitude 55,800 m (WGS 84).
#[test]
fn gpx_is_in_metres_and_seconds() {
    let tracks = read(GPX).unwrap();
    let [(first, alice), (second, other)] = &tracks[..] else {
        panic!("{tracks:?}")
    };
    assert_eq!([first, second], ["Alice's phone", "track2"]);
    let near = |[x, y]: [f64; 2], [a, b]: [f64; 2]| {
        assert!((x - a).hypot(y - b) < 0.05, "{x} {y}");
    };
    near(alice.at(0), [0.0, 0.0]);
    near(alice.at(5 * S), [0.0, 55.71]);
    near(alice.at(10 * S), [0.0, 111.41]);
    near(other.at(5_500 * MS), [55.80, 111.41]);
    near(other.at(99 * S), [55.80, 0.0]);
    // Across the date line.
    let east = GPX.replace("lon=\"10.000\"", "lon=\"179.9995\"");
    let east = east.replace("lon=\"10.001\"", "lon=\"-179.9995\"");
    let tracks = read(&east).unwrap();
    near(tracks[1].1.at(99 * S), [55.80, 0.0]);
}

#[test]
fn several_files_of_gpx_have_one_clock_and_one_origin() {
    let later = GPX
        .replace("10:00:", "10:01:")
        .replace("lat=\"60.", "lat=\"60.1");
    let files = [GPX.to_owned(), later].map(|text| ("x.gpx".to_owned(), text));
    let imported = mobility(&files, None).unwrap();
    let plan = plan(&imported.toml, Path::new(""));
    let names: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        ["Alice-s-phone", "track2", "Alice-s-phone-2", "track4"]
    );
    let third = &plan.media[0].stations[2].track;
    // 0.1 degrees farther north, and a minute later.
    assert!((third.at(0)[1] - 11_141.0).abs() < 2.0, "{:?}", third.at(0));
    assert_eq!(third.at(0), third.at(60 * S));
    assert_ne!(third.at(60 * S), third.at(61 * S));
    let mixed = [
        files[0].clone(),
        ("b.csv".to_owned(), "0,a,1,1\n".to_owned()),
    ];
    let error = mobility(&mixed, None).unwrap_err().to_string();
    assert!(
        error.contains("only GPX") && error.contains("b.csv:1"),
        "{error}"
    );
}

#[test]
fn mistakes_are_shown_at_their_line() {
    let point = "<trkpt lat=\"60.001\" lon=\"10.000\">";
    for (text, line, problem) in [
        (
            SETDEST.replace("setdest 30.0", "setdest x"),
            10,
            "`x` is no number",
        ),
        ("0,a,1,1\n1,b,1\n".to_owned(), 2, "time, node, x, y"),
        ("0 1 1\n0 1 x\n".to_owned(), 2, "`x`"),
        (
            GPX.replace(point, "<trkpt lat=\"91\" lon=\"1\">"),
            6,
            "no valid `lat`",
        ),
        (GPX.replace("10:00:10Z", "noon"), 6, "is no time"),
        (GPX.replace("10:00:10Z", "09:00:10Z"), 6, "do not ascend"),
        (
            GPX.replace("</trkseg></trk>\n</gpx>", "</gpx>"),
            11,
            "expected",
        ),
        (
            GPX.replace("<trk>", "<rte>").replace("</trk>", "</rte>"),
            1,
            "no track",
        ),
        ("<html></html>".to_owned(), 1, "not GPX"),
    ] {
        let error = one(&text, None).unwrap_err();
        assert_eq!(error.exit_code(), 65);
        let error = error.to_string();
        assert!(error.contains(&format!("trace:{line}:")), "{line}: {error}");
        assert!(error.contains(problem), "{problem}: {error}");
    }
}

/// 10,000 levels of elements, and an entity that doubles itself: no stack and no memory overflows.
#[test]
fn hostile_xml_is_rejected() {
    let deep = "<gpx>".repeat(10_000);
    assert!(read(&deep).is_err());
    let closed = format!("{deep}{}", "</gpx>".repeat(10_000));
    assert!(read(&closed).is_err());
    let entity = "<!DOCTYPE gpx [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><gpx>&b;</gpx>";
    assert!(read(entity).is_err());
}
