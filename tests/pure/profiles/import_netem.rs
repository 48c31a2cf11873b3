// SPDX-License-Identifier: MIT OR Apache-2.0
//! netem commands as profiles.

use std::cell::Cell;
use std::path::PathBuf;

use emud::convert::import::{Header, Imported, netem};
use emud::profile::{Profile, Slot, TextError};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use support::chance::same_cases;

use super::parse;

/// The tables of iproute2 and one of the user's.
fn table(name: &str) -> Option<PathBuf> {
    matches!(
        name,
        "normal" | "pareto" | "paretonormal" | "experimental" | "mine"
    )
    .then(|| PathBuf::from(format!("/lib/tc/{name}.dist")))
}

pub fn import(command: &str) -> Imported {
    netem(command, Header::Up, &table).unwrap_or_else(|error| panic!("{command}\n{error}"))
}

/// The keys under [up] without comments and without those of every import.
fn keys(imported: &Imported) -> Vec<&str> {
    let (_, link) = imported.toml.split_once("\n[up]\n").unwrap();
    link.lines()
        .filter(|line| !line.starts_with('#') && *line != "neighbours = \"emulate\"")
        .collect()
}

/// The comments, unwrapped.
fn comments(imported: &Imported) -> String {
    let text: Vec<_> = imported
        .toml
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    text.join(" ")
}

/// Commands and their keys. The first ones are all examples of tc-netem(8) with a netem, from the
/// page of 2011 and from the one since iproute2 6.9; the rest covers every other option.
#[rustfmt::skip]
pub const EXAMPLES: &[(&str, &[&str])] = &[
    ("tc qdisc add dev eth0 root netem delay 100ms", &["delay = \"100ms\""]),
    ("tc qdisc change dev eth0 root netem delay 100ms 10ms 25%",
        &["delay = { mean = \"100ms\", jitter = \"10ms\", distribution = \"uniform\", reorder = \"jitter\", correlation = \"25%\" }"]),
    ("tc qdisc change dev eth0 root netem delay 100ms 20ms distribution normal",
        &["delay = { mean = \"100ms\", jitter = \"20ms\", distribution = \"normal\", reorder = \"jitter\" }"]),
    ("tc qdisc change dev eth0 root netem loss 0.1%", &["loss = \"0.1%\""]),
    ("tc qdisc change dev eth0 root netem duplicate 1%", &["duplicate = \"1%\""]),
    ("tc qdisc change dev eth0 root netem loss 0.3% 25%",
        &["loss = { model = \"bernoulli\", probability = \"0.3%\", correlation = \"25%\" }"]),
    ("tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50%",
        &["delay = \"10ms\"", "reorder = { probability = \"25%\", correlation = \"50%\" }"]),
    ("tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50% gap 5",
        &["delay = \"10ms\"", "reorder = { probability = \"25%\", correlation = \"50%\", gap = 5 }"]),
    ("tc qdisc change dev eth0 root netem delay 100ms 75ms",
        &["delay = { mean = \"100ms\", jitter = \"75ms\", distribution = \"uniform\", reorder = \"jitter\" }"]),
    ("# tc qdisc add dev eth0 root netem rate 5kbit 20 100 5",
        &["rate = { rate = \"5kbit\", overhead = 20, cell = { size = 100, overhead = 5 } }"]),
    ("# tc qdisc add dev eth0 parent 30:1 handle 31: \\\n   netem delay 200ms 10ms distribution normal",
        &["delay = { mean = \"200ms\", jitter = \"10ms\", distribution = \"normal\", reorder = \"jitter\" }"]),
    // The text of the page instead of `gap 5 delay 10ms`, which tc rejects.
    ("netem delay 10ms reorder 100% gap 5",
        &["delay = \"10ms\"", "reorder = { probability = \"100%\", gap = 5 }"]),

    // Abbreviations and synonyms; the part from netem on, and only the options.
    ("sudo /sbin/tc -n red qd rep dev eth0 root netem lat 5ms", &["delay = \"5ms\""]),
    ("netem del 1s dr 2 du 1% c 1%", &["delay = \"1s\"", "loss = \"2%\"", "duplicate = \"1%\"", "corrupt = \"1%\""]),
    ("delay 5ms", &["delay = \"5ms\""]),
    ("netem", &[]),
    ("netem loss 0%", &[]),
    // tc's units.
    ("netem delay 1500us", &["delay = \"1.5ms\""]),
    ("netem delay 0.5SECS", &["delay = \"500ms\""]),
    ("netem delay 20msec", &["delay = \"20ms\""]),
    ("netem delay 50", &["delay = \"50ns\""]),
    ("netem rate 1000", &["rate = \"1kbit\""]),
    ("netem rate 1Kibit", &["rate = \"1.024kbit\""]),
    ("netem rate 2mibit", &["rate = \"2.097152Mbit\""]),
    ("netem rate 125kbps", &["rate = \"1Mbit\""]),
    ("netem rate 1KiBps", &["rate = \"8.192kbit\""]),
    ("netem rate 1.5gbit", &["rate = \"1.5Gbit\""]),
    // Whole bytes per second: 12 bit/s are 1, 7 are 0.
    ("netem rate 12bit", &["rate = \"8bit\""]),
    ("netem rate 7bit", &[]),
    ("netem rate 1mbit -14", &["rate = \"1Mbit\"", "overhead = -14"]),
    ("netem rate 1mbit 0x14", &["rate = \"1Mbit\"", "overhead = 20"]),
    ("netem rate 1mbit 0 48 5", &["rate = { rate = \"1Mbit\", cell = \"atm\" }"]),
    ("netem rate 1mbit 0 100 5", &["rate = { rate = \"1Mbit\", cell = { size = 100, overhead = 5 } }"]),
    ("netem rate 1mbit 8 0 5", &["rate = \"1Mbit\"", "overhead = 8"]),
    ("netem rate 1mbit limit 2k", &["rate = \"1Mbit\"", "queue = \"2048p\""]),
    ("netem rate 1mbit limit 1e6", &["rate = \"1Mbit\"", "queue = \"65536p\""]),
    ("netem limit 0", &["state = \"down\""]),
    // Loss models and their defaults: r = 1 - p, 1-h = 100 %, 1-k = 0; p31 = 1 - p13, p23 = 100 %.
    ("netem loss random 1%", &["loss = \"1%\""]),
    ("netem loss gemodel 1%",
        &["loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"99%\", bad = \"100%\", good = \"0%\" }"]),
    ("netem loss gemodel 1% 10%",
        &["loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"10%\", bad = \"100%\", good = \"0%\" }"]),
    ("netem loss gemodel 1% 10% 70% 0.1%",
        &["loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"10%\", bad = \"70%\", good = \"0.1%\" }"]),
    ("netem loss state 2%",
        &["loss = { model = \"four-state\", p13 = \"2%\", p31 = \"98%\", p32 = \"0%\", p23 = \"100%\", p14 = \"0%\" }"]),
    ("netem loss state 2% 20% 10% 30% 0.5%",
        &["loss = { model = \"four-state\", p13 = \"2%\", p31 = \"20%\", p32 = \"10%\", p23 = \"30%\", p14 = \"0.5%\" }"]),
    // Before the rate.
    ("netem loss 1% rate 1mbit",
        &["rate = \"1Mbit\"", "loss = { model = \"bernoulli\", probability = \"1%\", stage = \"before-queue\" }"]),
    ("netem rate 1mbit delay 20ms 5ms",
        // 20,000 bits in flight are 2 packets of netem's 1000.
        &["rate = \"1Mbit\"", "queue = \"998p\"", "delay = { mean = \"20ms\", jitter = \"5ms\", distribution = \"uniform\", reorder = \"never\" }"]),
    // 8 Mbit/s are 10^6 bytes/s: 100,000 bytes in 100 ms, 67 frames.
    ("netem rate 8mbit delay 100ms", &["rate = \"8Mbit\"", "queue = \"933p\"", "delay = \"100ms\""]),
    ("netem rate 8mbit delay 100ms limit 1067", &["rate = \"8Mbit\"", "delay = \"100ms\""]),
    ("netem rate 100mbit delay 100ms limit 100", &["rate = \"100Mbit\"", "queue = \"1p\"", "delay = \"100ms\""]),
    ("netem delay 100ms limit 20", &["delay = \"100ms\""]),
    ("netem delay 100ms 10ms distribution mine",
        &["delay = { mean = \"100ms\", jitter = \"10ms\", distribution = { file = \"/lib/tc/mine.dist\" }, reorder = \"jitter\" }"]),
    ("netem delay 100ms 10ms distribution uniform",
        &["delay = { mean = \"100ms\", jitter = \"10ms\", distribution = \"uniform\", reorder = \"jitter\" }"]),
    ("netem corrupt 0.1% 10%", &["corrupt = { probability = \"0.1%\", correlation = \"10%\" }"]),
    ("netem duplicate 1% 20%", &["duplicate = { probability = \"1%\", correlation = \"20%\" }"]),
    // A second delay keeps the first one's jitter, as tc does.
    ("netem delay 100ms 10ms delay 50ms",
        &["delay = { mean = \"50ms\", jitter = \"10ms\", distribution = \"uniform\", reorder = \"jitter\" }"]),
];

#[test]
fn every_option_is_imported() {
    let mut wrong = Vec::new();
    for (command, want) in EXAMPLES {
        let imported = import(command);
        if keys(&imported) != *want {
            wrong.push(format!("{command}\nwanted {want:#?}\n{}", imported.toml));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A custom distribution without a file.
pub fn names_a_file(keys: &[&str]) -> bool {
    keys.iter().any(|line| line.contains("{ file ="))
}

/// The printed text is a profile with those figures.
#[test]
fn what_is_imported_reads_back() {
    let mut read = 0;
    for (command, keys) in EXAMPLES {
        if names_a_file(keys) {
            continue;
        }
        let profile = parse(&import(command).toml);
        let nothing = parse("[up]\nneighbours = \"emulate\"");
        assert_eq!(profile.up == nothing.up, keys.is_empty(), "{command}");
        assert_eq!(profile.down, nothing.down, "{command}");
        read += 1;
    }
    assert_eq!(read, EXAMPLES.len() - 1);
    let profile = parse(&import("netem delay 100ms 20ms distribution normal seed 7").toml);
    let jitter = profile.up.delay.jitter.as_ref().unwrap();
    assert_eq!((profile.up.delay.mean_ns, jitter.sd_ns), (100_000_000, 2e7));
    assert_eq!(profile.seed, Some(7));
    assert_eq!(
        profile.source,
        "imported: netem delay 100ms 20ms distribution normal seed 7"
    );
}

/// Values close to the limits of netem and of profiles: a profile, or a mistake.
#[test]
fn whatever_is_imported_is_a_profile() {
    for command in [
        "netem delay 100ms 0ms 100%",
        "netem loss 0% 100% duplicate 100% 100%",
        "netem loss 1% 99.9999999%",
        "netem reorder 100% gap 1000000 delay 10ms",
        "netem reorder 100% 100% delay 10ms",
        "netem slot 10ms packets 2147483647 bytes 4294967295",
        "netem loss state 50% 40% 60%",
        "netem loss state 33.3% 66.7% 33.3% 1% 66.7%",
        "netem delay 1ns 1ns",
        "netem delay 0 1ns",
        "netem delay 3600s 2147483647ns distribution pareto",
        "netem rate 1tbit 4096 65535 255 limit 4294967295",
        "netem seed 18446744073709551615 loss 100%",
    ] {
        if let Ok(imported) = netem(command, Header::Up, &table) {
            let read = Profile::parse(&imported.toml, "x.toml");
            assert!(read.is_ok(), "{command}\n{}", imported.toml);
        }
    }
    let at_once = import("netem reorder 100% 100% delay 10ms");
    assert_eq!(parse(&at_once.toml).up.reorder.unwrap().correlation, 0.0);
}

#[test]
fn directions() {
    for (header, want) in [
        (Header::Up, "\n[up]\n"),
        (Header::Down, "\n[down]\n"),
        (Header::Link, "\n[link]\n"),
    ] {
        let imported = netem("netem delay 5ms", header, &table).unwrap();
        assert!(imported.toml.contains(want), "{}", imported.toml);
        let profile = Profile::parse(&imported.toml, "x.toml").unwrap();
        let ms = |direction: bool| if direction { 5_000_000 } else { 0 };
        assert_eq!(profile.up.delay.mean_ns, ms(header != Header::Down));
        assert_eq!(profile.down.delay.mean_ns, ms(header != Header::Up));
    }
}

/// A comment notes where netem differs from its manual or from emud.
#[test]
#[rustfmt::skip]
fn differences_are_said() {
    for (command, said) in [
        ("netem delay 100ms 10ms", "uniform, not normal"),
        ("netem delay 100ms 10ms", "packets overtake"),
        ("netem delay 100ms", "above about 10000 packets per second"),
        ("netem delay 50ms limit 20", "above about 400 packets per second"),
        ("netem delay 100ms 10ms 25%", "nearly all of the correlation"),
        ("netem delay 100ms 20ms distribution pareto", "standard deviation is 0.82"),
        // 0.033 of 20 ms.
        ("netem delay 100ms 20ms distribution pareto", "its mean 660us lower"),
        ("netem delay 100ms 20ms distribution paretonormal", "standard deviation is 0.834"),
        ("netem delay 50ms 20ms distribution normal", "its mean is higher"),
        ("netem delay 100ms 10ms distribution uniform", "has no table `uniform`"),
        ("netem delay 3s 2200ms", "2.147483647 s"),
        ("netem delay 50", "microseconds for earlier ones"),
        ("netem loss 1% 25%", "squeezes its random numbers"),
        ("netem loss 1% rate 1mbit", "before its rate"),
        ("netem loss 1% duplicate 1%", "one of two copies"),
        ("netem loss 1% duplicate 1%", "copies pass the loss again"),
        ("netem rate 1mbit duplicate 1%", "emud's takes no bandwidth"),
        ("netem duplicate 1% 25%", "tc forgets to send"),
        ("netem corrupt 1%", "one bit of the packet's first buffer"),
        ("netem rate 1mbit delay 10ms 1ms", "its jitter is before the rate"),
        ("netem rate 1mbit delay 10ms", "includes packets in flight, at this rate and delay 1 of"),
        ("netem rate 12bit", "whole bytes"),
        ("netem rate 7bit", "no limit"),
        ("netem rate 1mbit limit 70000", "70000 packets"),
        ("netem rate 1mbit 8 0 5", "ignores the cell overhead"),
        // 4 delayed, then 1 / 0.25 tries.
        ("netem delay 10ms reorder 25% gap 5", "one packet in 8 overtakes"),
        ("netem rate 1mbit delay 10ms reorder 25%", "bypass its rate"),
        ("netem seed 5", "not those of netem"),
        ("netem limit 0", "loses every packet"),
        ("tc qdisc add dev ifb0 root netem delay 1ms", "--direction down"),
        ("netem", "neighbour discovery"),
    ] {
        let comments = comments(&import(command));
        assert!(comments.contains(said), "{command}: {said}\n{comments}");
    }
    let silent = comments(&import("netem duplicate 1%"));
    assert!(!silent.contains("bandwidth"), "{silent}");
    let silent = comments(&import("netem duplicate 1% 25% loss 1% 5%"));
    assert!(!silent.contains("tc forgets"), "{silent}");
}

#[test]
fn ecn_marks_instead_of_losing() {
    for command in [
        "netem loss 1% ecn",
        "netem loss gemodel 1% 10% ecn rate 1mbit",
    ] {
        let imported = import(command);
        assert_eq!(imported.warnings, [""; 0], "{command}");
        let profile = Profile::parse(&imported.toml, command).unwrap();
        assert!(profile.up.loss.ecn, "{command}");
    }
}

#[test]
fn slots() {
    let slot = |min_ns, max_ns, packets, bytes| {
        Some(Slot {
            min_ns,
            max_ns,
            packets,
            bytes,
        })
    };
    for (command, asked) in [
        ("netem slot 800us", slot(800_000, 800_000, None, None)),
        (
            "netem slot 5ms 10ms packets 3 bytes 2k",
            slot(5_000_000, 10_000_000, Some(3), Some(2048)),
        ),
        ("netem slot 0 1ms", slot(1, 1_000_000, None, None)),
        ("netem slot 0", None),
    ] {
        let imported = import(command);
        assert_eq!(imported.warnings, [""; 0], "{command}");
        let profile = Profile::parse(&imported.toml, command).unwrap();
        assert_eq!(profile.up.slot, asked, "{command}");
    }
}

/// Text before and after tc.
#[test]
fn whatever_the_shell_sees_is_around_it() {
    for text in [
        "sudo -E tc qdisc add dev eth0 root netem delay 5ms",
        "$TC qdisc add dev eth0 root netem delay 5ms",
        "\"$TC\" qdisc add dev \"$IFACE\" root netem delay 5ms",
        "$(which tc) qdisc add dev eth0 root netem delay 5ms",
        "TC=/sbin/tc\nDEV=eth0\nexport DELAY=\"5\" # ms\n$TC qdisc add dev $DEV root netem delay ${DELAY}ms",
        "ip netns exec red tc qdisc add dev eth0 root netem delay 5ms",
        "docker exec --privileged web tc qdisc add dev eth0 root netem delay 5ms",
        "nsenter -t 42 -n tc qdisc replace dev eth0 root netem delay 5ms",
        "kubectl exec pod/web -c app -- tc qdisc add dev eth0 root netem delay 5ms",
        "ssh host \"sudo tc qdisc add dev eth0 root netem delay 5ms\"",
        "docker exec web sh -c 'tc qdisc add dev eth0 root netem delay 5ms'",
        "tc qdisc add dev eth0 root netem delay 5ms # slow",
        "tc qdisc add dev eth0 root netem delay 5ms 2>/dev/null",
        "tc qdisc add dev eth0 root netem delay 5ms >> /tmp/log 2>&1",
        "tc qdisc add dev eth0 root netem delay 5ms || true",
        "tc qdisc add dev eth0 root netem delay 5ms; sleep 10; tc qdisc del dev eth0 root",
        "tc qdisc del dev eth0 root 2> /dev/null && tc qdisc add dev eth0 root netem delay 5ms",
        "#!/bin/sh\nset -e\nwhich tc || exit 1\n# tc qdisc add dev eth0 root netem delay 9ms\nmodprobe sch_netem\n\ntc qdisc add dev eth0 root \\\n  netem delay 5ms\n",
        "tc qdisc add dev eth0 root netem delay 9ms\ntc qdisc change dev eth0 root netem delay 5ms",
        "qdisc add dev eth0 root netem delay 5ms",
        "netem delay 5ms; reboot",
        // The output of tc.
        "qdisc netem 8001: root refcnt 2 limit 1000 delay 5ms",
        "qdisc noqueue 0: dev lo root refcnt 2\nqdisc netem 8001: dev eth0 root refcnt 9 limit 1000 delay 5.0ms seed 17381\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n",
        // A class that every packet passes.
        "tc qdisc add dev eth0 root handle 1: netem delay 9ms; tc qdisc replace dev eth0 root handle 1: netem delay 5ms",
        "tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 5ms",
    ] {
        let imported = import(text);
        assert_eq!(
            keys(&imported),
            ["delay = \"5ms\""],
            "{text}\n{}",
            imported.toml
        );
        assert_eq!(imported.warnings, [""; 0], "{text}");
        let seed = imported.toml.contains("seed = ");
        assert!(!seed, "{}", imported.toml);
    }
}

/// The names with which tc prints values, one line per option.
#[test]
fn what_tc_prints_means_what_was_given() {
    for (printed, given) in [
        (
            "limit 1000 delay 10ms reorder 25% 50% gap 5",
            "delay 10ms reorder 25% 50% gap 5",
        ),
        ("limit 1000 loss 0.3% 25% ecn", "loss 0.3% 25% ecn"),
        (
            "limit 1000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
            "loss gemodel 1% 10% 70% 0.1%",
        ),
        (
            "limit 1000 loss state p13 2% p31 20% p32 10% p23 30% p14 0.5%",
            "loss state 2% 20% 10% 30% 0.5%",
        ),
        (
            "limit 50 rate 1Mbit packetoverhead 20 cellsize 100 celloverhead 5",
            "limit 50 rate 1mbit 20 100 5",
        ),
        (
            "limit 1000 duplicate 1% 20% corrupt 0.1%",
            "duplicate 1% 20% corrupt 0.1%",
        ),
        (
            "limit 1000 slot 5ms 10ms packets 3 bytes 2048",
            "slot 5ms 10ms packets 3 bytes 2k",
        ),
    ] {
        let shown = import(&format!(
            "qdisc netem 8001: dev eth0 root refcnt 2 {printed}"
        ));
        let typed = import(&format!("netem {given}"));
        assert_eq!(keys(&shown), keys(&typed));
    }
}

/// What a class of htb borrows ends at the rate of the highest class, and at each ceil below it.
#[test]
fn what_htb_lends() {
    let of = |top: &str, middle: &str| {
        import(&format!(
            "tc qdisc add dev eth0 root handle 1: htb default 12\n\
             tc class add dev eth0 parent 1: classid 1:1 htb {top}\n\
             tc class add dev eth0 parent 1:1 classid 1:2 htb {middle}\n\
             tc class add dev eth0 parent 1:2 classid 1:12 htb rate 1mbit ceil 9mbit\n\
             tc qdisc add dev eth0 parent 1:12 handle 12: netem loss 1%"
        ))
    };
    for (top, middle, rate) in [
        ("rate 20mbit", "rate 2mbit ceil 20mbit", 9),
        ("rate 20mbit", "rate 2mbit ceil 7mbit", 7),
        ("rate 5mbit ceil 20mbit", "rate 2mbit ceil 7mbit", 5),
    ] {
        let imported = of(top, middle);
        assert_eq!(keys(&imported)[0], format!("rate = \"{rate}Mbit\""));
        let warning = &imported.warnings[0];
        assert!(
            warning.contains(&format!("may grow to {rate}000000 if")),
            "{warning}"
        );
    }
    // Its own rate a class sends whatever those above it have, up to its ceil.
    for (top, middle, rate) in [
        ("rate 500kbit", "rate 2mbit ceil 20mbit", "2Mbit"),
        ("rate 500kbit", "rate 100kbit ceil 200kbit", "1Mbit"),
    ] {
        let own = format!("rate = \"{rate}\"");
        assert_eq!(keys(&of(top, middle))[0], own, "{top}, {middle}");
    }
}

/// Of several limiters the slowest is the link, also one below netem, which enqueues there what is due.
#[test]
fn the_slowest_of_the_limiters_beside_netem() {
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 10ms\n\
                 tc qdisc add dev eth0 parent 1:1 handle 10: htb default 1\n\
                 tc class add dev eth0 parent 10: classid 10:1 htb rate 1mbit\n";
    let queue =
        "tc qdisc add dev eth0 parent 10:1 handle 20: tbf rate 5mbit burst 5k limit 30000\n";
    let deep = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 500kbit ceil 1mbit\n\
                tc qdisc add dev eth0 parent 1:10 handle 10: tbf rate 5mbit burst 5k limit 30000\n\
                tc qdisc add dev eth0 parent 10:1 handle 20: netem delay 10ms\n";
    let faster = "the tbf of 5000000 bit/s beside netem: the htb of 1000000 bit/s is no faster";
    let grows = "of the htb a rate of 500000 bit/s that may grow to 1000000 if others leave room";
    let both = below.to_owned() + queue;
    let slow = both.replace("5mbit", "500kbit");
    let class = "tc class add dev eth0 parent 10: classid 10:2 htb rate 2mbit\n";
    let other = "rate limiters below netem that not every packet meets: htb 10:1, htb 10:2";
    let none = "rate limiters below netem that not every packet meets: htb 10:1";
    for (script, rate, warnings) in [
        (below, Some(1_000_000), &[][..]),
        (&both, Some(1_000_000), &[faster]),
        (
            &slow,
            Some(500_000),
            &["the htb of 1000000 bit/s beside netem: the tbf of 500000 bit/s is no faster"],
        ),
        (deep, Some(1_000_000), &[grows, faster]),
        // Where packets meet one of several, or none.
        (&format!("{below}{class}"), None, &[other]),
        (&below.replace(" default 1", ""), None, &[none]),
    ] {
        let imported = import(script);
        assert_eq!(imported.warnings, warnings, "{script}");
        assert_eq!(parse(&imported.toml).up.rate, rate, "{script}");
    }
    let queue = |script: &str| parse(&import(script).toml).up.queue.bytes;
    assert_eq!((queue(&slow), queue(deep)), (Some(30_000), None));
}

/// A tbf or an htb beside netem determines the link's rate.
#[test]
#[rustfmt::skip]
fn shapers_beside_netem() {
    let tbf = "tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 32kbit latency 400ms\n\
               tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 100ms loss 1%";
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 100ms\n\
                 tc qdisc add dev eth0 parent 1: handle 2: tbf rate 8mbit burst 32kbit latency 400ms";
    let limit = "tc qdisc add dev eth0 root handle 1:0 netem delay 100ms\n\
                 tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 256kbit buffer 1600 limit 3000";
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
               tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:12 htb rate 8mbit ceil 8mbit\n\
               tc qdisc add dev eth0 parent 1:12 handle 12: netem delay 100ms";
    // Nobody lends to the highest class: its ceil has no effect.
    let alone = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
                 tc class add dev eth0 parent 1: classid 1:12 htb rate 8mbit ceil 80mbit\n\
                 tc qdisc add dev eth0 parent 1:12 handle 12: netem delay 100ms";
    let shown = "qdisc tbf 1: dev eth0 root refcnt 2 rate 8Mbit burst 4Kb lat 400ms\n\
                 qdisc netem 10: dev eth0 parent 1:1 limit 1000 delay 100ms";
    let delay = "delay = \"100ms\"";
    let burst = "rate = { rate = \"8Mbit\", burst = \"4096B\" }";
    // 67 of the 1000 packets of netem's limit are in flight.
    let queue = "queue = \"933p\"";
    let loss = "loss = { model = \"bernoulli\", probability = \"1%\", stage = \"before-queue\" }";
    for (text, want) in [
        (tbf, &[burst, queue, delay, loss] as &[&str]),
        (below, &[burst, "queue = \"404096B\"", delay]),
        (limit, &["rate = { rate = \"256kbit\", burst = \"1600B\" }", "queue = \"3000B\"", delay]),
        (htb, &["rate = \"8Mbit\"", queue, delay]),
        (shown, &[burst, queue, delay]),
        (alone, &["rate = \"8Mbit\"", queue, delay]),
    ] {
        let imported = import(text);
        assert_eq!(keys(&imported), want, "{text}");
        assert_eq!(imported.warnings, [""; 0], "{text}");
    }
}

/// Classes with filters become named links, the filters become rules.
#[test]
fn a_script_with_classes_and_filters() {
    let prio = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc qdisc add dev eth0 parent 1:3 handle 30: netem delay 200ms\n\
        tc filter add dev eth0 protocol ip parent 1:0 prio 3 u32 match ip dst 10.0.0.5/24 match ip dport 80 0xffff flowid 1:3\n";
    let imported = import(prio);
    assert_eq!(imported.warnings, [""; 0]);
    let profile = parse(&imported.toml);
    let named = |name: &str| profile.links.iter().find(|l| l.name == name).unwrap();
    assert_eq!(named("class-1-3").up.delay.mean_ns, 200_000_000);
    assert_eq!(profile.up.delay.mean_ns, 0);
    let rule = "match = { destination = \"10.0.0.0/24\", destination-port = 80 }\n\
                link = \"class-1-3\"\ndirection = \"up\"\n";
    assert!(imported.toml.contains(rule), "{}", imported.toml);

    let htb = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:30 htb rate 9mbit\n\
        tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 10ms\n\
        tc qdisc add dev eth0 parent 1:20 handle 20: netem delay 20ms\n\
        tc qdisc add dev eth0 parent 1:30 handle 30: netem delay 30ms\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 17 0xff flowid 1:20\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 flower dst_ip 192.0.2.1 ip_proto tcp dst_port 443 classid 1:10\n\
        tc filter add dev eth0 parent 1: protocol ip prio 3 handle 7 fw flowid 1:10\n";
    let profile = parse(&import(htb).toml);
    let of = |name: &str| {
        let link = &profile.links.iter().find(|l| l.name == name).unwrap().up;
        (link.rate.unwrap(), link.delay.mean_ns)
    };
    assert_eq!(of("class-1-10"), (5_000_000, 10_000_000));
    assert_eq!(of("class-1-20"), (1_000_000, 20_000_000));
    assert_eq!(
        (profile.up.rate, profile.up.delay.mean_ns),
        (Some(9_000_000), 30_000_000)
    );
    let rules = import(htb).toml;
    let (_, rules) = rules.split_once("[[rule]]").unwrap();
    let want = "\nmatch = { destination = \"192.0.2.1/32\", protocol = \"tcp\", destination-port = \"443\" }\n\
                link = \"class-1-10\"\ndirection = \"up\"\n\n[[rule]]\n\
                match = { source = \"0.0.0.0/0\", protocol = 17 }\nlink = \"class-1-20\"\ndirection = \"up\"\n\n[[rule]]\n\
                match = { source = \"0.0.0.0/0\", mark = \"0x7\" }\nlink = \"class-1-10\"\ndirection = \"up\"\n";
    assert_eq!(rules, want);
    assert_eq!(profile.rules.len(), 3);
}

/// As the shell replaces them: the last value, and whole names.
#[test]
fn variables_of_a_script() {
    let text = "A=eth0\nD=10ms\nDELAY=30ms\n\
                tc qdisc add dev $A root netem delay $D loss 1%\nD=20ms # slower\n\
                tc qdisc change dev ${A} root netem delay $DELAY $D\n";
    let up = parse(&import(text).toml).up;
    assert_eq!(up.delay.mean_ns, 30_000_000);
    assert_eq!(up.delay.jitter.unwrap().sd_ns.round(), 11_547_005.0);
    for set in [
        "D=30ms; ",
        "D=30ms && ",
        "A=eth1 D='30ms' B=\"4 5\" C=$D; ",
        "E=30ms D=$E\n",
        "D=9ms\nexport -p A D=30ms B=2\n",
        "readonly D=\"30ms\"; ",
        "start() { local D=30ms A; ",
        "declare -r D=30ms # D=9ms; D=8ms && B=1 \\\n",
        "A=1 \\\n D=30ms && B=2 && ",
        "# no \\\nD=30ms\n",
        "D=30ms\nD=9ms true\n",
        "D=30ms; D=9ms E=1 true || D=8ms; [ -n $1 ] && D=7ms; if false; then D=6ms; fi; ",
        "[ -n \"$D\" ] || D=30ms\n",
        "D=30ms; [ -n \"$1\" ] && D=$1\n",
        "A=$(ip route | awk '{print $5}'); D=30ms # it's long\n",
    ] {
        let text = format!("{set}tc qdisc add dev eth0 root netem delay $D");
        let up = parse(&import(&text).toml).up;
        assert_eq!(up.delay.mean_ns, 30_000_000, "{text}");
    }
    for (text, unknown) in [
        ("D=9ms tc qdisc add dev eth0 root netem delay $D", "$D"),
        (
            "D=9ms; D=$1 E=2; tc qdisc add dev eth0 root netem delay $D",
            "$D",
        ),
        (
            "# D=9ms; D=8ms\ntc qdisc add dev eth0 root netem delay $D",
            "$D",
        ),
        (
            "D=10\ntc qdisc add dev eth0 root netem delay $Dms\n",
            "$Dms",
        ),
        (
            "D=10ms\nD=$(cat delay)\ntc qdisc add dev eth0 root netem delay $D\n",
            "$D",
        ),
    ] {
        let error = netem(text, Header::Up, &table).unwrap_err().to_string();
        let said = format!("`{unknown}` has a variable");
        assert!(error.contains(&said), "{error}");
    }
}

/// netem_change() of the kernel: a rate and a corruption that are not given stay, a loss does not.
#[test]
fn a_change_keeps_what_the_kernel_keeps() {
    let add =
        "tc qdisc add dev eth0 root handle 1: netem rate 1mbit 20 loss 1% corrupt 2% delay 5ms\n";
    for (change, rate, said) in [
        ("change dev eth0 root netem delay 20ms", "1Mbit", 2),
        (
            "replace dev eth0 root handle 1: netem delay 20ms",
            "1Mbit",
            2,
        ),
        (
            "change dev eth0 root netem corrupt 3% rate 2mbit delay 20ms",
            "2Mbit",
            0,
        ),
        // A new one.
        ("replace dev eth0 root handle 2: netem delay 20ms", "", 0),
        ("add dev eth0 root netem delay 20ms", "", 0),
    ] {
        let imported = import(&format!("{add}tc qdisc {change}\n"));
        assert_eq!(
            imported.warnings.len(),
            said,
            "{change}: {:?}",
            imported.warnings
        );
        let up = parse(&imported.toml).up;
        let written = up
            .rate
            .map_or(String::new(), |bits| emud::profile::Rate(bits).to_string());
        assert_eq!(written, rate, "{change}");
        let corrupts = up.corrupt.probability > 0.0;
        assert_eq!(
            (up.delay.mean_ns, corrupts),
            (20_000_000, !rate.is_empty()),
            "{change}"
        );
        assert!(up.loss.is_none(), "{change}");
    }
    // tc sends the correlations of delay, loss and duplication together, and only if it has one.
    let add = "tc qdisc add dev eth0 root netem delay 10ms 5ms 20% loss 1% 30% duplicate 1% 40%\n";
    for (change, want, said) in [
        (
            "delay 20ms 5ms loss 2% duplicate 2%",
            ["20%", "30%", "40%"],
            3,
        ),
        (
            "duplicate 2% loss random 2% latency 9ms 5ms",
            ["20%", "30%", "40%"],
            3,
        ),
        (
            "delay 20ms 5ms loss 2% 10% duplicate 2%",
            ["", "10%", ""],
            0,
        ),
        ("delay 20ms 5ms 0% loss 2%", ["", "", ""], 0),
        ("delay 20ms 5ms loss 2% corrupt 1% 1%", ["", "", ""], 0),
        ("delay 20ms duplicate 2%", ["", "", "40%"], 1),
        ("delay 20ms loss gemodel 1% 10%", ["", "", ""], 0),
    ] {
        let change = format!("tc qdisc change dev eth0 root netem {change}\n");
        let imported = import(&format!("{add}{change}"));
        let warnings = &imported.warnings;
        let kept = warnings
            .iter()
            .filter(|text| text.starts_with("`correlation of"));
        assert_eq!(kept.count(), said, "{change}: {warnings:?}");
        let correlation = |key: &str| {
            let line = keys(&imported)
                .into_iter()
                .find(|line| line.starts_with(key));
            let behind = line.and_then(|line| Some(line.split_once("correlation = \"")?.1));
            behind
                .and_then(|rest| rest.split('"').next())
                .unwrap_or_default()
                .to_owned()
        };
        let found = ["delay", "loss", "duplicate"].map(correlation);
        assert_eq!(found, want, "{change}: {}", imported.toml);
        assert!(!comments(&imported).contains("tc forgets"), "{change}");
        let source = change
            .trim_end()
            .replace("tc qdisc change dev eth0 root ", "");
        assert!(imported.toml.contains(&source), "{}", imported.toml);
        // And again.
        let again = format!("{add}{change}{change}");
        assert_eq!(keys(&import(&again)), keys(&imported), "{change}");
    }
}

/// The qdisc for arriving packets is beside the root.
#[test]
fn an_ingress_qdisc_leaves_the_root() {
    for ingress in ["handle ffff: ingress", "ingress", "clsact"] {
        let text = format!(
            "tc qdisc add dev eth0 root netem delay 5ms\ntc qdisc add dev eth0 {ingress}\n"
        );
        assert_eq!(parse(&import(&text).toml).up.delay.mean_ns, 5_000_000);
    }
}

/// Of netem and the limiter beside it the slower one is the link, with its own overhead and queue.
#[test]
fn the_slower_rate_with_what_belongs_to_it() {
    let bucket = "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 50k latency 50ms\n\
                  tc qdisc add dev eth0 parent 1:1 netem";
    for (rate, want, said) in [
        (
            "rate 1mbit 20 48 5",
            r#"rate = { rate = "1Mbit", overhead = 20, cell = "atm" }"#,
            "the tbf of 10000000 bit/s beside netem",
        ),
        (
            "rate 20mbit 20 48 5",
            r#"rate = { rate = "10Mbit", burst = "51200B" }"#,
            "netem's own rate of 20000000 bit/s",
        ),
    ] {
        let imported = import(&format!("{bucket} {rate}"));
        assert_eq!(keys(&imported)[0], want);
        assert!(
            imported.warnings[0].starts_with(said),
            "{:?}",
            imported.warnings
        );
    }
    // Microseconds, unlike a delay of netem: 6250 bytes, and the burst.
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 1ms\n\
                 tc qdisc add dev eth0 parent 1:1 tbf rate 1mbit burst 5k latency 50000";
    let up = parse(&import(below).toml).up;
    assert_eq!(up.queue.bytes, Some(11_370));
}

/// With a device and an ifb, the ifb is ingress.
#[test]
fn a_device_and_its_ifb() {
    let text = "modprobe ifb numifbs=1\nip link set dev ifb0 up\n\
                tc qdisc add dev eth0 handle ffff: ingress\n\
                tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0\n\
                tc qdisc add dev ifb0 root netem delay 9ms\n\
                tc qdisc add dev eth0 root netem delay 5ms seed 3\n";
    let profile = parse(&import(text).toml);
    assert_eq!(profile.up.delay.mean_ns, 5_000_000);
    assert_eq!(profile.down.delay.mean_ns, 9_000_000);
    assert_eq!(profile.seed, Some(3));
    // Of two seeds one is in the profile, the other one in a warning.
    let imported = import(&text.replace("delay 9ms", "delay 9ms seed 4"));
    assert_eq!(parse(&imported.toml).seed, Some(4));
    assert_eq!(
        imported.warnings,
        ["`seed 3` of another netem: a profile has one seed"]
    );
}

/// A property that a profile does not support is in a comment and a warning, never dropped.
#[test]
#[rustfmt::skip]
fn what_is_not_imported_is_said() {
    for (command, what) in [
        ("netem slot distribution mine 5ms 1ms p 3", "`slot distribution mine 5ms 1ms p 3`"),
        ("netem rate 1mbit delay 9ms 1ms 25%", "the correlation of 25%"),
        ("tc qdisc add dev eth0 parent 1:3 netem delay 5ms", "class 1:3"),
        ("qdisc netem 8001: dev eth0 root limit 1000 delay 100ms  10ms", "does not print it"),
        ("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 32k latency 400ms peakrate 2mbit; tc qdisc add dev eth0 parent 1:1 netem loss 1%", "peakrate 2mbit"),
        ("netem delay 50", "without a unit"),
        ("netem delay 50ms limit 20", "above about 400 packets per second"),
        // 826 frames of 1514 bytes are 10 Mbit; 100 a 100 ms are 1000/s.
        ("netem rate 100mbit delay 100ms limit 100", "carries about 1000 packets per second"),
        ("netem rate 100mbit delay 200ms", "carries about 5000 packets per second"),
        ("netem slot 800", "a slot's time without a unit is nanoseconds"),
        ("netem slot 1ms 2000000", "a slot's time without a unit is nanoseconds"),
        ("netem slot 10ms packets 2147483647", "up to 2147483647 packets per slot"),
    ] {
        let imported = import(command);
        assert_eq!(imported.warnings.len(), 1, "{command}");
        assert!(imported.warnings[0].contains(what), "{command}: {:?}", imported.warnings);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = words(&comments(&imported));
        assert!(said.contains(&words(&imported.warnings[0])), "{said}");
    }
    assert!(import("netem delay 5ms loss 1%").warnings.is_empty());
}

/// Jitter wider than the delay: max(0, uniform(-90 ms, 110 ms)) is 0 for 45 %, and
/// 110^2 / (2 * 200) = 30.25 ms on average.
#[test]
fn a_jitter_wider_than_the_delay_is_written_out() {
    let imported = import("tc qdisc add dev eth0 root handle 1: netem delay 10ms 100ms");
    let delay = keys(&imported)[0].to_owned();
    let (_, values) = delay.split_once("values = \"").unwrap();
    let (values, rest) = values.split_once('"').unwrap();
    assert_eq!(rest, ", unit = \"ms\" }, reorder = \"jitter\" }");
    let values: Vec<f64> = values.split(' ').map(|v| v.parse().unwrap()).collect();
    let zeros = values.iter().filter(|v| **v == 0.0).count();
    assert_eq!(zeros as f64 / values.len() as f64, 0.45);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean - 30.25).abs() < 1e-9, "{mean}");
    assert!(comments(&imported).contains("30.25ms on average"));
    let profile = parse(&imported.toml);
    // 0 for 45 %, up to 110 ms: 110^3 / (3 * 200) - 30.25^2 is the variance.
    let want = (110f64.powi(3) / 600.0 - 30.25f64.powi(2)).sqrt();
    let jitter = profile.up.delay.jitter.as_ref().unwrap();
    assert_eq!(profile.up.delay.mean_ns, 30_250_000);
    assert!((jitter.sd_ns / 1e6 - want).abs() < 1e-3, "{}", jitter.sd_ns);
}

/// A command, what is underlined, and parts of title and help.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("netem dealy 100ms", "dealy", "no option `dealy`", "did you mean `delay`?"),
    ("netem delay", "", "`delay` needs a value", "delay 100ms"),
    ("netem delay 100m", "100m", "`m` is not a unit of a time", "did you mean \"100ms\"?"),
    ("netem delay -5ms", "-5ms", "negative", "100ms"),
    ("netem delay 2h", "2h", "`h` is not a unit", "write \"7200s\""),
    ("netem delay 4000s", "4000s", "too long", "one hour"),
    ("netem delay 100ms .5ms", ".5ms", "does not read `.5ms` as a number", "write 0.5ms"),
    ("netem loss .1%", ".1%", "does not read `.1%` as a number", "write 0.1%"),
    ("netem delay 10ms 1ms 101%", "101%", "more than 100 %", "0% to 100%"),
    ("netem loss 5ms", "5ms", "not a probability", "0.3%"),
    ("netem loss random", "", "needs a value", "1%"),
    ("netem loss gilbert 1%", "gilbert", "not a loss model", "gemodel"),
    ("netem loss 1% loss 2%", "loss", "given twice", "keep one"),
    ("netem loss state 60% 1% 1% 1% 50%", "50%", "p13 and p14 add up", "lower"),
    ("netem loss state 1% 60% 50%", "50%", "p31 and p32 add up", "lower"),
    ("netem ecn", "", "`ecn` without `loss`", "loss 1%"),
    ("netem gap 5 delay 10ms", "5", "`gap` without `reorder`", "reorder 100% gap n"),
    ("netem reorder 25%", "", "`reorder` without `delay`", "delay 10ms"),
    ("netem delay 0ms reorder 25%", "0ms", "`reorder` without `delay`", "delay 10ms"),
    ("netem delay 10ms distribution normal", "normal", "without a delay and a jitter", "100ms 10ms"),
    ("netem delay 10ms 1ms distribution gauss", "gauss", "no table `gauss`", "TC_LIB_DIR"),
    ("netem rate 5mbti", "5mbti", "not a unit of a rate", "did you mean \"5mbit\"?"),
    ("netem rate 10%", "10%", "share of the device's speed", "100mbit"),
    ("netem rate 5tbit", "5tbit", "too fast", "1tbit"),
    ("netem rate 1mbit 5000", "5000", "out of range", "-64 to 4096"),
    ("netem rate 1mbit 0 10 -10", "1mbit", "is not positive", "cell size"),
    ("netem limit ten", "ten", "not a size", "1000"),
    ("netem seed x", "x", "not a seed", "seed 42"),
    // tc's messages: Illegal "slot max_delay", Illegal "slot packets".
    ("netem slot 10ms 5ms", "5ms", "is below the minimum", "first"),
    ("netem slot 10ms packets 4294967295", "4294967295", "out of range", "2147483647"),
    ("netem slot 10ms packets 2k", "2k", "not a whole number", "2147483647"),
    ("netem delay 100ms 10ms 100%", "100%", "draws once", "less than 100%"),
    ("netem loss 1% 100%", "100%", "draws once", "less than 100%"),
    ("netem duplicate 1% 100", "100", "draws once", "less than 100%"),
    ("netem corrupt 1% 100%", "100%", "draws once", "less than 100%"),
    ("netem reorder 25% 100% gap 5 delay 10ms", "100%", "draws once", "less than 100%"),
    ("netem reorder 100% gap 4294967295 delay 10ms", "4294967295", "gap \"4294967295\" is above the maximum", "1000000"),
    ("netem loss state 50% 40% 60.00000001%", "60.00000001%", "p31 and p32 add up", "lower"),
    ("netem slot fast", "fast", "not a slot", "slot 5ms 10ms"),
    ("netem gap 08 delay 1ms reorder 1%", "08", "not a whole number", "0 to"),
    ("tc class add dev eth0", "", "no `netem`", "netem ..."),
    ("tc qdisc show dev eth0", "qdisc", "does not create a netem", "what tc qdisc show prints"),
    ("tc filter add dev eth0 parent 1: matchall flowid 1:3", "filter", "does not create a netem", "netem"),
    ("", "", "there is no command", "only netem"),
    (" # nothing", "", "there is no command", "only netem"),
    ("tc qdisc add dev eth0 root netem delay ${DELAY}ms", "${DELAY}ms", "variable of the shell", "write its value"),
    ("tc qdisc add dev eth0 root netem delay 5ms; tc qdisc add dev eth1 root netem loss 1%", "loss 1%", "netems on eth0, eth1", "one device"),
    ("tc qdisc add dev eth0 parent 1:1 netem delay 5ms; tc qdisc add dev eth0 parent 1:2 netem loss 1%", "netem", "second netem", "import each separately"),
    ("tc qdisc add dev eth0 root handle 1: netem delay 5ms; tc qdisc add dev eth0 parent 1:1 handle 2: netem loss 1%",
        "netem", "a netem below another netem", "with the options of both"),
    ("tc qdisc add dev eth0 root tbf rate 1mbit", "tbf", "is not netem", "only netem"),
    ("tc qdisc add dev eth0 root", "", "no `netem`", "netem ..."),
    ("tc", "", "needs a value", "qdisc"),
    ("tc qdisc add dev eth0 root handle 1: prio; tc qdisc add dev eth0 parent 1:3 netem delay 5ms; tc filter add dev eth0 parent 1: u32 match u16 5 0xff at 2 flowid 1:3",
        "5", "a filter's `5` is not imported", "[[rule]] yourself"),
    ("tc qdisc add dev eth0 root netem delay 5ms; tc filter add dev eth0 egress matchall action drop",
        "add", "a filter without `flowid`", "leave this filter out"),
    ("netem delay 5ms \u{fffd}\u{1b}[31m", "\u{fffd}\u{1b}[31m", "no option", "options are"),
];

#[test]
fn mistakes_are_shown_where_they_are() {
    let mut wrong = Vec::new();
    for (command, underlined, title, help) in MISTAKES {
        let Err(TextError::Mistakes(found)) = netem(command, Header::Up, &table) else {
            wrong.push(format!("{command}: no mistake"));
            continue;
        };
        let one = found.iter().next().unwrap();
        let column = command.rfind(underlined).unwrap() + 1;
        let shown = found.to_string();
        let place = format!("command:1:{column}");
        // A mistake of the whole line is shown at its start.
        let placed = underlined.is_empty() || shown.contains(&place);
        let same = found.underlined(one) == *underlined
            && one.title.contains(title)
            && one.help.contains(help)
            && placed;
        if !same {
            wrong.push(format!(
                "{command}\nwanted {place} {underlined}: {title}: {help}\n{shown}"
            ));
        }
        assert!(
            !shown.contains(|c: char| c.is_control() && c != '\n'),
            "{shown:?}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The second line of a script is not its first one.
#[test]
fn a_mistake_of_a_whole_netem_is_at_its_line() {
    let first = "ip link set dev eth0 up\n";
    let script = format!("{first}tc qdisc add dev eth0 root netem ecn\n");
    let error = netem(&script, Header::Up, &table).unwrap_err().to_string();
    let said = "`ecn` without `loss`\n --> command:2:28";
    assert!(error.contains(said), "{error}");
    // Of a profile that its reader rejects, at the filter.
    let script = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc qdisc add dev eth0 parent 1:3 handle 30: netem delay 200ms\n\
        tc filter add dev eth0 parent 1: protocol ip flower ip_proto bogus classid 1:3\n";
    let error = netem(script, Header::Up, &table).unwrap_err().to_string();
    let place = "command:3:11";
    assert!(
        error.contains("`bogus`") && error.contains(place),
        "{error}"
    );
}

/// Any input is a profile or a mistake, never a panic, and valid TOML in the first case.
#[test]
fn any_command() {
    let single = "(tc|qdisc|add|dev|eth0|root|netem|delay|loss|state|gemodel|random|limit|ecn|corrupt|duplicate|\
        reorder|gap|distribution|normal|pareto|mine|rate|slot|packets|bytes|seed|10ms|1%|25%|100%|\
        4294967295|0[.]000001%|5|0|-14|1mbit|2k|100ms|0x10)";
    let percent = "( (0|1%|25%|100%|0[.]000001%))";
    let number = "(0|5|2k|0x10|4294967295)";
    let group = format!(
        "(delay( (0|5|10ms|100ms)){{1,2}}{percent}?( distribution (normal|pareto|mine))?|loss( random)?{percent}{{1,2}}( ecn)?\
         |loss state{percent}{{1,5}}|loss gemodel{percent}{{1,4}}|(corrupt|duplicate|reorder){percent}{{1,2}}\
         |(limit|gap|seed) {number}|rate (1mbit|2k)( (-14|{number})){{0,3}}|slot( (5|10ms)){{1,2}}( (packets|bytes) {number})?)"
    );
    let group = proptest::string::string_regex(&group).unwrap();
    let words = prop_oneof![12 => group, 1 => single, 1 => "\\PC{0,6}"];
    let commands = (
        "(netem|tc qdisc add dev eth0 root netem|)",
        proptest::collection::vec(words, 0..5),
    );
    let imported = Cell::new(0);
    let tested = TestRunner::new(same_cases(1000)).run(&commands, |(first, words)| {
        let command = format!("{first} {}", words.join(" "));
        match netem(&command, Header::Up, &table) {
            Ok(found) => {
                imported.set(imported.get() + 1);
                let read: Result<toml::Table, _> = found.toml.parse();
                prop_assert!(read.is_ok(), "{command}\n{}\n{read:?}", found.toml);
                // The user's table does not exist.
                let read = Profile::parse(&found.toml, "x.toml");
                prop_assert!(
                    read.is_ok() || found.toml.contains("mine.dist"),
                    "{command}\n{}",
                    found.toml
                );
            }
            Err(error) => prop_assert!(error.to_string().contains("command:")),
        }
        Ok(())
    });
    tested.unwrap();
    assert!(imported.get() > 300, "{imported:?}");
}
