// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped scenarios of media as they are: their programs succeed, and have the figures that their text promises. `broch`,
//! `two-cells`, `segment` and `m-adhoc` are run elsewhere. Ignored with the usual tests: they need a quiet machine.

use serde_json::Value;
use support::runs::{Folder, Ran};

use super::medium_rows::{counted, transferred};

/// Mbit/s.
const MIBIT: f64 = 1.048_576;

/// Runs a shipped scenario with these variables. Only late frames may make the run invalid.
fn run(name: &str, env: &[(&str, &str)]) -> Ran {
    let folder = Folder::new();
    let mut emud = folder.command(&format!("--scenario {name}"), &[]);
    emud.envs(env.iter().copied());
    let ran = folder.ran(&emud.output().unwrap());
    let failed = |exit: &&Value| exit["code"] != 0 && exit["ended_by_emud"] == false;
    let failed: Vec<&Value> = ran.of("exit").filter(failed).collect();
    let ended = ran.of("end").count() == 1 && ran.of("exit").count() > 0;
    assert!(
        ended && failed.is_empty() && [0, 4].contains(&ran.code),
        "{}: {failed:?}\n{}{}",
        ran.code,
        ran.out,
        ran.err
    );
    ran
}

/// The rate that a line of iperf3 of this node has of the receiver, Mbit/s.
fn received(ran: &Ran, node: &str, begin: &str) -> f64 {
    let lines = ran.of("output").filter(|line| line["node"] == *node);
    let mut texts = lines.filter_map(|line| line["text"].as_str());
    let text = texts.find(|text| text.starts_with(begin) && text.trim_end().ends_with("receiver"));
    let rate = |(unit, scale): (&str, f64)| {
        let (before, _) = text?.split_once(unit)?;
        let figure: f64 = before.split_whitespace().next_back()?.parse().ok()?;
        Some(figure * scale)
    };
    let units = [("Kbits/sec", 1e-3), ("Mbits/sec", 1.0)];
    let found = units.into_iter().find_map(rate);
    found.unwrap_or_else(|| panic!("{node} {begin}: {}{}", ran.out, ran.err))
}

/// Prints and checks a figure in Mibit/s, the unit of the wireless pilot.
#[track_caller]
fn within(what: &str, found: f64, least: f64, most: f64) {
    println!("    {what}: {found:.3} Mibit/s, {least} to {most}");
    assert!((least..=most).contains(&found), "{what}: {found}");
}

/// Eight times 20 pings from one corner.
pub fn mesh() {
    let ran = run("mesh", &[]);
    assert_eq!(ran.out.matches("20 received").count(), 8, "{}", ran.out);
}

/// A fifth of 5.1 Mbit/s over four hops.
pub fn air_chain() {
    let ran = run("air-chain", &[]);
    assert!(ran.out.contains("100 received"), "{}", ran.out);
    let mbit = received(&ran, "client", "[");
    println!("    TCP {mbit} Mbit/s");
    assert!((0.7..1.4).contains(&mbit), "{mbit}");
}

/// 1472 of 1500 bytes of 3.86 Mbit/s.
pub fn hidden() {
    let ran = run("hidden", &[]);
    let mbit = ["left", "right"].map(|node| received(&ran, node, "["));
    println!("    UDP {mbit:?} Mbit/s");
    let sum = mbit[0] + mbit[1];
    assert!((3.5..4.1).contains(&sum), "{mbit:?}");
}

/// Data of UDP that `emud traffic receive` has counted, without the first second and the last one, Mibit/s.
fn udp(ran: &Ran) -> f64 {
    let count = counted(ran, "received");
    let bins = count["bins"].as_array().unwrap();
    // Of 100 ms.
    let inner = &bins[10..bins.len() - 10];
    let bytes: f64 = inner.iter().map(|bin| bin.as_f64().unwrap()).sum();
    bytes * 8e-5 / inner.len() as f64 / MIBIT
}

/// With and without line of sight: 4.90 Mibit/s of UDP, to which the bit error rate is fitted, and 3.5 to 4.3 of TCP.
pub fn pilot_standing() {
    for name in ["c-sight", "c-no-sight"] {
        let ran = run(name, &[("TIME", "12")]);
        // The standard error of 5,000 datagrams, of which each ninth frame is repeated, is 0.6 %.
        within(&format!("{name}: UDP"), udp(&ran), 4.90 * 0.97, 4.90 * 1.03);
        within(&format!("{name}: TCP"), transferred(&ran) / MIBIT, 3.5, 4.3);
    }
}

/// 4.15 Mibit/s over 60 s, which end at 50.8 m, within a metre.
pub fn pilot_walk_udp() {
    let ran = run("walk", &[]);
    let count = counted(&ran, "received");
    let of = |key: &str| count[key].as_f64().unwrap();
    let mibit = of("bytes") * 8e-6 / 60.0 / MIBIT;
    within("walk: UDP", mibit, 4.15 * 0.96, 4.15 * 1.04);
    // A metre a second.
    let bins = count["bins"].as_array().unwrap().len() as f64;
    let last = (of("first_bin") + bins) / 10.0 - ran.phase("measurement") as f64 / 1e9;
    println!("    the last datagram at {last:.1} m");
    assert!((last - 50.8).abs() <= 1.0, "{last} m");
}

/// 3.18 Mibit/s were predicted, with 15 %; with an acknowledgement for every second segment it is 3.51.
pub fn pilot_walk_tcp() {
    let ran = run("walk", &[("FLOW", "tcp")]);
    let mibit = transferred(&ran) / MIBIT;
    within("walk: TCP", mibit, 3.18 * 0.85, 3.18 * 1.15);
}

/// The first two bands have what they want, the last one the rest of some 4.14 Mibit/s.
pub fn pilot_tos() {
    let ran = run("c-air-tos", &[("TIME", "20")]);
    let of = |tos: &str| received(&ran, "sender", &format!("{tos}:")) / MIBIT;
    let [first, middle, other, last] = ["0x10", "0x0", "0x4", "0x8"].map(of);
    for (what, found) in [("0x10", first), ("0x0", middle), ("0x4", other)] {
        within(&format!("ToS {what}"), found, 1.06 * 0.97, 1.06 * 1.03);
    }
    within("ToS 0x8", last, 0.968 * 0.9, 0.968 * 1.1);
    assert!(middle > last && other > last, "{middle} {other} {last}");
}
