// SPDX-License-Identifier: GPL-2.0-only
//! Rules and pairs on a live link: which packets take which link.

use std::fmt::Write;

use super::lab::{Engine, Lab, Verdict};

/// Quickest round trip of some pings, ms: what the machine adds is only ever more.
fn round_trip(lab: &Lab, options: &str) -> f64 {
    let said = lab.ping(&format!("-c 5 -i 0.2 -q {options}"));
    let times = said.split(" = ").nth(1).unwrap_or_default();
    let least = times.split('/').next().unwrap_or_default();
    least
        .parse()
        .unwrap_or_else(|_| panic!("no round trip in {said}"))
}

/// The links' delays are further apart than what the machine adds to the quickest of five.
fn takes(verdict: &mut Verdict, what: &str, asked_ms: f64, got_ms: f64) {
    verdict.at_least(what, asked_ms, got_ms);
    verdict.at_most(what, asked_ms + 4.0, got_ms);
}

/// A rule by the DS field, one that lets packets pass, and both taken away.
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

/// Pairs from attach, changed by apply, printed and taken back in.
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
    takes(&mut verdict, "both ways", 70.0, round_trip(&lab, ""));
    verdict.same("pairs", 252, lab.shown("/matrix/pairs"));
    let shown = lab.emud(&["show", "--matrix", "va"]).expect(0);
    let line = format!("{},{},,50ms,", Lab::A4, Lab::B4);
    verdict.same("printed", true, shown.out.lines().any(|l| l == line));
    verdict.end();
}
