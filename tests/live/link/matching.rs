// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules and pairs on a live link: which packets take which link.

use std::fmt::Write;

use support::lab::{Engine, Lab, Verdict};
use support::probe::{HEADERS, Probe};
use support::stats::quantile;

/// Fastest round trip of some pings, ms: the machine only adds to it.
fn round_trip(lab: &Lab, options: &str) -> f64 {
    fastest(&lab.ping(&format!("-c 5 -i 0.2 -q {options}")))
}

/// The same from what ping printed.
pub fn fastest(said: &str) -> f64 {
    let times = said.split(" = ").nth(1).unwrap_or_default();
    let least = times.split('/').next().unwrap_or_default();
    least
        .parse()
        .unwrap_or_else(|_| panic!("no round trip in {said}"))
}

/// What the links take differs by 30 ms and more. A busy machine added 5.3 ms to the fastest of three
/// connections.
pub fn takes(verdict: &mut Verdict, what: &str, asked_ms: f64, got_ms: f64) {
    verdict.at_least(what, asked_ms, got_ms);
    verdict.at_most(what, asked_ms + 20.0, got_ms);
}

/// A rule by the DS field, one that lets packets pass, and both removed.
pub fn rules(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(
        engine,
        "[link]\ndelay = \"5ms\"\n[links.far]\ndelay = \"40ms\"\n\
         [[rule]]\nmatch = { dscp = \"ef\", protocol = \"icmp\" }\nlink = \"far\"\nper = \"pair\"\n\
         [[rule]]\nmatch = { tos = 4 }\nlink = \"none\"\n",
        &[],
    );
    let ef = "-Q 184";
    for (what, options, asked) in [
        ("no rule", "", 10.0),
        ("to a link", ef, 80.0),
        ("untouched", "-Q 4", 0.0),
    ] {
        takes(&mut verdict, what, asked, round_trip(&lab, options));
    }
    verdict.same("of the first rule", 10, lab.shown("/rules/0/packets"));
    verdict.same(
        "passed by the second",
        5,
        lab.shown("/up/counters/passed/rule"),
    );
    verdict.same(
        "instances, one a direction",
        2,
        lab.shown("/instances/used"),
    );
    lab.emud(&["set", "va", "links.far.delay=60ms"]).expect(0);
    takes(&mut verdict, "set of its link", 120.0, round_trip(&lab, ef));
    lab.emud(&["set", "va", "rule=none"]).expect(0);
    takes(&mut verdict, "without rules", 10.0, round_trip(&lab, ef));
    verdict.end();
}

/// Pairs from attach, changed by apply, printed and read back.
pub fn matrix(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(
        engine,
        "[link]\ndelay = \"5ms\"\n[matrix]\ncapacity = 300\n",
        &[],
    );
    takes(&mut verdict, "no pair", 10.0, round_trip(&lab, ""));
    let apply = |rows: &str| {
        let file = lab.profile(rows);
        lab.emud(&["apply", &file, "va"]).expect(0);
        drop(std::fs::remove_file(file));
    };
    let mut rows = "source,destination,delay\n".to_owned();
    for host in 0..250 {
        let _ = writeln!(rows, "10.99.0.{host},10.99.1.1,1ms");
    }
    let _ = writeln!(rows, "{},{},50ms", Lab::A4, Lab::B4);
    apply(&rows);
    takes(
        &mut verdict,
        "one way of a pair",
        55.0,
        round_trip(&lab, ""),
    );
    apply(&format!("{},{},,20ms\n", Lab::B4, Lab::A4));
    takes(&mut verdict, "both directions", 70.0, round_trip(&lab, ""));
    verdict.same("pairs", 252, lab.shown("/matrix/pairs"));
    let shown = lab.emud(&["show", "--matrix", "va"]).expect(0);
    let line = format!("{},{},,50ms,", Lab::A4, Lab::B4);
    verdict.same("printed", true, shown.out.lines().any(|l| l == line));
    verdict.end();
}

/// Two links before one bottleneck: together they have its rate, each has a separate delay.
pub fn shared(engine: Engine) {
    const RATE: f64 = 2e6;
    const FRAME: usize = 1250;
    let lab = Lab::new();
    lab.attach(
        engine,
        "[link]\ndelay = \"5ms\"\nrate = \"2Mbit\"\nqueue = \"500p\"\nshared = \"uplink\"\n\
         [links.far]\ndelay = \"45ms\"\nshared = \"uplink\"\n\
         [[rule]]\nmatch = { protocol = \"udp\", destination-port = 7004 }\nlink = \"far\"\n",
        &["--direction", "up"],
    );
    let probe = |port: u16| Probe {
        payload_len: FRAME - HEADERS,
        port,
        source_port: port - 1000,
        ..Probe::new(&lab, 150, 5_000_000)
    };
    let (near, far) = std::thread::scope(|scope| {
        let far = scope.spawn(|| probe(7004).run());
        (probe(7002).run(), far.join().expect("the other probe"))
    });
    let mut verdict = Verdict::default();
    verdict.same("arrived", (150, 150), (near.0.len(), far.0.len()));
    // Alone each would be sent on arrival; 300 of them take 1.5 s.
    let sent = near.0.iter().chain(&far.0).map(|a| a.sent_ns);
    let begin = sent.min().unwrap_or_default();
    let end = near
        .0
        .iter()
        .map(|a| a.arrived_ns)
        .max()
        .unwrap_or_default();
    let all_s = 300.0 * FRAME as f64 * 8.0 / RATE;
    verdict.near("s for all", all_s, (end - begin) as f64 / 1e9, 0.02 * all_s);
    let median = |arrivals: &support::probe::Arrivals| quantile(&arrivals.delays_ms(), 0.5);
    verdict.near(
        "ms between the two",
        40.0,
        median(&far) - median(&near),
        8.0,
    );
    verdict.end();
}
