// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wired segments: stations, lines between them, and mistakes.

use emud::experiment::scenario::{Overrides, Plan};
use emud::medium::air::Access;
use emud::medium::phy::{Line, Spread};

use super::read;

const TEXT: &str = "network = \"10.0.0.0/24\"
[segment.lan]
nodes = [\"n*\", \"router\"]
rate = \"10Mbit\"
delay = \"2ms\"
loss = \"1%\"
queue = 20
pairs = [
    { from = \"n*\", to = \"n*\", loss = \"5%\" },
    { from = \"n1\", to = [\"n2\", \"router\"], delay = \"7ms\", ber = 1e-6 },
    { to = \"n3\", loss = \"100%\" },
    { from = \"router\", to = \"n3\", loss = \"0%\" },
]
[node.n1]
command = \"true\"
[node.n2]
[node.n3]
[node.router]
[node.server]
[link.up]
between = [\"router\", \"server\"]
";

fn planned(text: &str) -> Result<Plan, String> {
    let plan = read(text).and_then(|scenario| scenario.plan(&Overrides::default()));
    plan.map_err(|error| error.to_string())
}

#[test]
fn figures_of_a_segment_reach_the_air() {
    let plan = planned(TEXT).unwrap();
    let [lan] = &plan.media[..] else { panic!() };
    let air = lan.air(1);
    assert_eq!((air.access, air.queue_packets), (Access::None, 20));
    assert_eq!((air.timing.kbit(0), lan.modes()), (10_000, vec![0; 4]));
    assert_eq!((lan.word(), lan.watts()), ("segment", None));
    let geometry = lan.geometry();
    let Spread::Wire(wire) = &geometry.spread else {
        panic!()
    };
    let line = |delay_ms: u64, loss, ber| Line {
        delay_ns: delay_ms * 1_000_000,
        loss,
        ber,
    };
    assert_eq!(wire.line, line(2, 0.01, 0.0));
    let expected = [
        ([0, 1], line(7, 0.05, 1e-6)),
        ([0, 2], line(2, 1.0, 0.0)),
        ([0, 3], line(7, 0.01, 1e-6)),
        ([1, 0], line(2, 0.05, 0.0)),
        ([1, 2], line(2, 1.0, 0.0)),
        ([2, 0], line(2, 0.05, 0.0)),
        ([2, 1], line(2, 0.05, 0.0)),
        ([3, 2], line(2, 0.0, 0.0)),
    ];
    assert_eq!(wire.pairs, expected);
    // Only the router reaches n3, and is the way to it.
    let routes = |node: &str| -> Vec<String> {
        let node = plan.nodes.iter().find(|n| n.name == node).unwrap();
        let routes = node.routes.iter();
        let via = |via: Option<std::net::Ipv4Addr>| via.map(|via| via.to_string());
        routes
            .map(|route| format!("{} {}", route.to, via(route.via).unwrap_or_default()))
            .collect()
    };
    let [n1, _, n3, router] = [0, 1, 2, 3].map(|n| lan.stations[n].address.addr());
    assert!(routes("n1").contains(&format!("{n3}/32 {router}")));
    assert!(routes("router").contains(&format!("{n3}/32 ")));
    assert!(routes("server").contains(&format!("{n1}/32 10.0.0.1")));
}

#[test]
fn its_line_is_what_a_file_has() {
    let plan = planned(TEXT).unwrap();
    let line = plan.media[0].line();
    let (_, keys) = line.split_once("stations, ").unwrap();
    // A comma is between keys, and inside of brackets.
    let mut depth = 0;
    let keys: String = keys
        .chars()
        .map(|c| {
            depth += i32::from("[{".contains(c)) - i32::from("]}".contains(c));
            if c == ',' && depth == 0 { '\n' } else { c }
        })
        .collect();
    let (_, nodes) = TEXT.split_once("]\n[node").unwrap();
    let again = format!("network = \"10.0.0.0/24\"\n[segment.lan]\n{keys}\n[node{nodes}");
    let again = planned(&again).unwrap();
    assert_eq!(again.media[0].line(), line);
    assert_eq!(again.media[0].geometry(), plan.media[0].geometry());
}

#[test]
fn a_topology_is_on_a_segment_and_defaults_are_a_plain_wire() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 3\nmedium = \"lan\"\n[segment.lan]\n\
                routes = \"none\"\n[node.n1]\ncommand = \"true\"\n";
    let plan = planned(text).unwrap();
    let lan = &plan.media[0];
    assert_eq!(lan.air(1).timing.kbit(0), 100_000);
    assert!(plan.nodes.iter().all(|node| node.routes.is_empty()));
    for (from, to) in [(0, 1), (1, 0), (2, 1)] {
        let reach = *lan.matrix().reach(from, to).unwrap();
        assert_eq!((reach.frame_kept, reach.delay_ns), (1.0, 0));
    }
}

/// (Text of the segment, parts of the message.)
const MISTAKES: &[(&str, &[&str])] = &[
    ("range = 5", &["no key `range`", "of a segment"]),
    ("radio = \"802.11b\"", &["radio", "[medium.NAME]"]),
    ("rate = \"1500bit\"", &["cannot have this rate", "1kbit"]),
    ("rate = \"5Tbit\"", &["too fast", "1Tbit"]),
    ("delay = 5", &["delay", "ms"]),
    ("loss = \"101%\"", &["101%"]),
    ("pairs = 3", &["pairs", "{ from = \"a\""]),
    (
        "pairs = [{ from = \"a\" }]",
        &["a pair without a figure", "`loss`"],
    ),
    (
        "pairs = [{ from = \"a\", ber = 2 }]",
        &["bit-error rate of more than 1"],
    ),
    (
        "pairs = [{ form = \"a\", loss = \"1%\" }]",
        &["a pair has no `form`", "from, to"],
    ),
    (
        "pairs = [{ to = [\"b\", \"x\"], loss = \"1%\" }]",
        &["segment `w` has no station `x`", "nodes"],
    ),
    (
        "nodes = [\"a\", \"b\"]\npairs = { from = \"c\", loss = \"1%\" }",
        &["segment `w` has no station `c`"],
    ),
    (
        "pairs = { from = \"a\", to = \"a\", loss = \"1%\" }",
        &["a pair of `a` and itself"],
    ),
    ("nodes = [\"a\"]", &["segment `w` has fewer than two"]),
    (
        "[medium.w]",
        &["a medium and a segment `w`", "different name"],
    ),
    (
        "[link.w]\nbetween = [\"a\", \"b\"]",
        &["there is a link `w`", "a segment's interfaces"],
    ),
    ("[segment.\"a b\"]", &["not a valid name", "a b"]),
];

#[test]
fn mistakes_are_explained() {
    for (line, parts) in MISTAKES {
        let nodes = "[node.a]\ncommand = \"true\"\n[node.b]\n[node.c]\n";
        let text = format!("{nodes}[segment.w]\n{line}\n");
        let found = planned(&text).expect_err(line);
        assert!(
            parts.iter().all(|part| found.contains(part)) && found.contains("x.toml:"),
            "{parts:?}\n{found}"
        );
    }
}
