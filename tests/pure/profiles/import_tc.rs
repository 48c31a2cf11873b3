// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of qdiscs as bottlenecks.

use std::io::Write;
use std::process::Command;

use emud::bottleneck::{Class, Limits, Schedule};
use emud::convert::import::{self, Header, Imported};
use emud::profile::{Aqm, Length, Profile, Queue, Red, Rule, Stage, Target};

use super::parse;

const MBIT: u64 = 1_000_000;

fn import(script: &str, rate: Option<u64>) -> Imported {
    import::tc(script, "x.sh", Header::Up, None, rate, &|_| None)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn refused(script: &str) -> String {
    let result = import::tc(script, "x.sh", Header::Up, None, None, &|_| None);
    result.unwrap_err().to_string()
}

fn limited(packets: u32) -> Limits {
    Limits {
        packets: Some(packets),
        ..Limits::default()
    }
}

/// The tree of the WANemulator, as its script makes it, but for r2q.
const TREE: &str = "\
DEV=eth1
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 30 r2q 100
tc class add dev $DEV parent 1: classid 1:1 htb rate 100mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 1mbit ceil 100mbit
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 10mbit ceil 100mbit prio 2
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 89mbit ceil 100mbit
tc qdisc add dev $DEV parent 1:10 handle 10: netem loss 1% delay 50ms
tc qdisc add dev $DEV parent 1:20 handle 20: netem loss 2% delay 200ms
tc qdisc add dev $DEV parent 1:30 handle 30: pfifo limit 50
tc filter add dev $DEV protocol ip parent 1: prio 1 u32 match ip dst 10.0.1.0/24 flowid 1:10
tc filter add dev $DEV protocol ip parent 1: prio 1 u32 match ip dst 10.0.2.0/24 flowid 1:20
";

#[test]
fn a_tree_of_htb() {
    let imported = import(TREE, None);
    assert_eq!(imported.warnings, [""; 0]);
    let profile = parse(&imported.toml);
    let plan = profile.bottlenecks[0].plan();
    assert_eq!((plan.rate, plan.schedule), (100 * MBIT, Schedule::Htb));
    let class = |rate, priority, packets| Class {
        rate: Some(rate * MBIT),
        ceil: Some(100 * MBIT),
        priority,
        limits: limited(packets),
        ..Class::default()
    };
    // Of netem's 1000 packets 5 and 166 are in flight.
    let want = [class(1, 0, 995), class(10, 2, 834), class(89, 0, 50)];
    assert_eq!(plan.classes, want);
    assert_eq!(profile.up.class.as_deref(), Some("tree.class-1-30"));
    let link = |name: &str| profile.links.iter().find(|l| l.name == name).unwrap();
    let near = &link("class-1-10").up;
    assert_eq!(near.delay.mean_ns, 50_000_000);
    assert_eq!(near.loss.share_of(1514), 0.01);
    assert_eq!(near.class.as_deref(), Some("tree.class-1-10"));
    let rules: Vec<_> = profile.rules.iter().map(|r| r.matches.keys()).collect();
    assert_eq!(
        rules,
        [
            "destination = \"10.0.1.0/24\"",
            "destination = \"10.0.2.0/24\""
        ]
    );
}

/// The program reads standard input, and needs no name for it.
#[test]
fn a_script_in_a_pipe() {
    let run = |script: &str| {
        // Less than a pipe holds.
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(script.as_bytes()).unwrap();
        drop(writer);
        let mut emud = Command::new(env!("CARGO_BIN_EXE_emud"));
        let out = emud.args(["import", "tc", "-"]).stdin(reader);
        let out = out.output().unwrap();
        let [toml, said] = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
        (out.status.code(), toml, said)
    };
    let expected = import(TREE, None).toml;
    assert_eq!(run(TREE), (Some(0), expected, String::new()));
    let (code, toml, said) = run(&TREE.replace("rate 10mbit", "rate ten"));
    assert_eq!((code, toml.as_str()), (Some(65), ""), "{said}");
    assert!(said.contains("ten"), "{said}");
}

/// The pilot's: strict bands, one of them with a bucket of one frame. The first number of a flowid has no effect.
#[test]
fn bands_of_prio() {
    let script = "\
        tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n\
        tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 50\n\
        tc qdisc add dev eth0 parent 1:2 handle 20: tbf rate 1.5mbit burst 1514 limit 30000\n\
        tc qdisc add dev eth0 parent 20:1 handle 21: bfifo limit 60000\n\
        tc qdisc add dev eth0 parent 1:3 handle 30: sfq\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 5001 flowid 7:1\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 handle 6 fw flowid 1:4\n";
    let imported = import(script, Some(10 * MBIT));
    let profile = parse(&imported.toml);
    let plan = profile.bottlenecks[0].plan();
    assert_eq!((plan.rate, plan.schedule), (10 * MBIT, Schedule::Priority));
    let priorities: Vec<_> = plan.classes.iter().map(|c| c.priority).collect();
    assert_eq!(priorities, [0, 1, 2, 3]);
    assert_eq!(plan.classes[0].limits, limited(50));
    assert_eq!(plan.classes[1].ceil, Some(MBIT * 3 / 2));
    assert_eq!(plan.classes[1].limits.bytes, Some(60_000));
    // sfq is said not to be there.
    assert_eq!(plan.classes[2].limits, limited(1000));
    let [warning] = &imported.warnings[..] else {
        panic!("{:?}", imported.warnings);
    };
    assert!(warning.contains("`sfq` in class 1:3"), "{warning}");
    assert_eq!(profile.up.class.as_deref(), Some("tree.class-1-2"));
    let rules: Vec<_> = profile
        .rules
        .iter()
        .map(|r| (r.matches.keys(), r.target.clone()))
        .collect();
    let to = |name: &str| emud::profile::Target::Named(name.to_owned());
    let want = [
        (
            "source = \"0.0.0.0/0\", protocol = \"udp\", destination-port = \"5001\"",
            "class-1-1",
        ),
        ("source = \"0.0.0.0/0\", mark = \"0x6\"", "class-1-4"),
        ("source = \"0.0.0.0/0\", tos = \"0x10/0x18\"", "class-1-1"),
        ("source = \"0.0.0.0/0\", tos = \"0x8/0x18\"", "class-1-3"),
    ];
    assert_eq!(rules, want.map(|(keys, name)| (keys.to_owned(), to(name))));
}

/// Nobody lends to a class without a class above it: its ceil has no effect, and is no limit of the server.
#[test]
fn the_highest_class_has_its_rate() {
    let slow = TREE.replace("htb rate 100mbit", "htb rate 50mbit ceil 100mbit");
    assert_ne!(slow, TREE);
    assert_eq!(
        parse(&import(&slow, None).toml).bottlenecks[0].plan().rate,
        50 * MBIT
    );
    let two = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
               tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 8mbit\n\
               tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit\n";
    let plan = parse(&import(two, Some(10 * MBIT)).toml).bottlenecks[0].plan();
    let of: Vec<_> = plan
        .classes
        .iter()
        .map(|class| (class.rate, class.ceil))
        .collect();
    let both = |rate| (Some(rate), Some(rate));
    assert_eq!(of, [both(MBIT), both(2 * MBIT)]);
}

/// htb serves a class within its rate whatever those above it have, so it sends more than emud.
#[test]
fn rates_that_are_promised_twice() {
    let inner = TREE
        .replace("default 30", "default 21")
        .replace("flowid 1:20", "flowid 1:21")
        .replace("parent 1:20 handle", "parent 1:21 handle")
        + "tc class add dev eth1 parent 1:20 classid 1:21 htb rate 60mbit\n\
           tc class add dev eth1 parent 1:20 classid 1:22 htb rate 45mbit\n";
    let of = |above: &str, sum: u32, has: u32| {
        format!(
            "the rates below {above} add up to {sum}000000 bit/s, and it has {has}000000: htb sends all of \
             them, emud {has}000000 bit/s, in proportion"
        )
    };
    for (script, want) in [
        (
            TREE.replace("rate 89mbit", "rate 90mbit"),
            vec![of("the server", 101, 100)],
        ),
        // Those of a class below a class, which has 10 itself.
        (
            inner.clone(),
            vec![of("the server", 195, 100), of("class 1:20", 105, 100)],
        ),
        (
            inner
                .replace("rate 89mbit", "rate 1mbit")
                .replace("rate 60mbit", "rate 50mbit"),
            vec![],
        ),
        // The device is the limit.
        (
            TREE.replace("parent 1:1 ", "parent 1: ")
                .replace("rate 1mbit", "rate 50mbit"),
            vec![],
        ),
    ] {
        let imported = import(&script, Some(50 * MBIT));
        assert_eq!(imported.warnings, want, "{script}");
    }
}

/// htb lends by quanta, which it chooses between 1000 and 200000 bytes.
#[test]
fn quanta_that_are_not_in_proportion() {
    let of = |quanta: [u32; 2], rates: [u32; 2]| {
        let ([a, b], [first, last]) = (quanta, rates);
        vec![format!(
            "class 1:30 and class 1:10 borrow in proportion to their quanta in htb, {a} and {b} bytes, and to \
             their rates in emud, {first}000000 and {last}000000 bit/s"
        )]
    };
    let usual = TREE.replace(" r2q 100", "");
    for (script, want) in [
        (usual.clone(), of([200_000, 12_500], [89, 1])),
        (
            TREE.replace("r2q 100", "r2q 1000"),
            of([11_125, 1000], [89, 1]),
        ),
        // None of another priority, and none that borrows nothing.
        (usual.replace("rate 89mbit", "prio 1 rate 89mbit"), vec![]),
        (
            usual.replace("rate 1mbit ceil 100mbit", "rate 1mbit"),
            vec![],
        ),
        (
            usual
                .replace("rate 89mbit", "quantum 142400 rate 89mbit")
                .replace("rate 1mbit", "quantum 1600 rate 1mbit"),
            vec![],
        ),
        (
            usual.replace("rate 89mbit", "quantum 1514 rate 89mbit"),
            of([1514, 12_500], [89, 1]),
        ),
    ] {
        assert_eq!(import(&script, None).warnings, want, "{script}");
    }
}

/// prio with the rate of a shaper above it.
#[test]
fn bands_below_a_shaper() {
    let bands = "\
        tc qdisc add dev eth0 parent 1:10 handle 10: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n\
        tc qdisc add dev eth0 parent 10:1 handle 11: pfifo limit 50\n\
        tc qdisc add dev eth0 parent 10:2 handle 12: pfifo limit 60\n\
        tc filter add dev eth0 parent 10: protocol ip prio 1 flower ip_tos 0xb8/0xfc flowid 10:1\n";
    for shaper in [
        "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 10k limit 30000",
        // The class above lends what its own rate lacks.
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 10mbit",
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 20mbit",
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit",
        // Its own rate it has in any case.
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit",
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit ceil 20mbit",
    ] {
        let imported = import(&format!("{shaper}\n{bands}"), None);
        assert_eq!(imported.warnings, [""; 0], "{shaper}");
        let profile = parse(&imported.toml);
        let plan = profile.bottlenecks[0].plan();
        assert_eq!((plan.rate, plan.schedule), (10 * MBIT, Schedule::Priority));
        let class = |priority, packets| Class {
            priority,
            limits: limited(packets),
            ..Class::default()
        };
        assert_eq!(plan.classes, [class(0, 50), class(1, 60)]);
        assert_eq!(profile.up.class.as_deref(), Some("tree.class-10-2"));
        let rules: Vec<_> = profile.rules.iter().map(|r| r.matches.keys()).collect();
        assert_eq!(rules, ["source = \"0.0.0.0/0\", dscp = 46"]);
    }
}

const RED: &str = "red limit 60KB min 15KB max 45KB avpkt 1000 burst 20 probability 0.1";

/// Sizes in tc's units, and the weight as tc computes it.
fn red(probability: f64, ecn: bool) -> Queue {
    Queue {
        bytes: Some(60 * 1024),
        aqm: Some(Aqm::Red(Red {
            min: Length::Bytes(15 * 1024),
            max: Length::Bytes(45 * 1024),
            probability,
            weight: 1.0 / 8.0,
            ecn,
        })),
        ..Queue::default()
    }
}

#[test]
fn red_alone_is_the_queue_of_a_link() {
    let root = format!("tc qdisc add dev eth0 root handle 1: {RED}");
    let below = format!(
        "tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 10k latency 50ms\n\
         tc qdisc add dev eth0 parent 1:1 handle 2: {} ecn",
        RED.replace("probability 0.1", "bandwidth 2mbit")
    );
    for (script, rate, queue) in [
        (root, Some(MBIT), red(0.1, false)),
        (below, None, red(0.02, true)),
    ] {
        let imported = import(&script, rate);
        assert_eq!(imported.warnings, [""; 0]);
        let up = parse(&imported.toml).up;
        assert_eq!(
            (up.rate, up.queue),
            (rate.or(Some(2 * MBIT)), queue),
            "{script}"
        );
    }
    // Without an equivalent, or a mistake of which tc says the same.
    let imported = import(
        &format!("tc qdisc add dev eth0 root {RED} harddrop adaptative"),
        Some(MBIT),
    );
    assert_eq!(imported.warnings.len(), 2, "{:?}", imported.warnings);
    for (options, said) in [
        ("min 15KB", "red without `limit`"),
        ("limit 60KB min 45KB max 15KB", "`max` is not above"),
        (
            "limit 60KB min 15KB max 45KB burst 9",
            "`burst` of 9 is too small",
        ),
        ("limit 60KB probability 2", "`2` is not a probability"),
    ] {
        let text = refused(&format!("tc qdisc add dev eth0 root red {options}"));
        assert!(text.contains(said), "{options}: {text}");
    }
    // tc's defaults: max is a quarter of limit, min a third of that.
    let up = parse(&import("tc qdisc add dev eth0 root red limit 120000", Some(MBIT)).toml).up;
    let Some(Aqm::Red(red)) = up.queue.aqm else {
        panic!()
    };
    assert_eq!(
        (red.min, red.max),
        (Length::Bytes(10_000), Length::Bytes(30_000))
    );
}

/// In a class the queue has the same keys.
#[test]
fn red_in_a_class() {
    let script = TREE.replace("pfifo limit 50", RED);
    let imported = import(&script, None);
    let profile = parse(&imported.toml);
    let classes = &profile.bottlenecks[0].classes;
    let class = classes.iter().find(|class| class.name == "class-1-30");
    assert_eq!(class.unwrap().queue, red(0.1, false));
}

/// What is below a bucket is read, or said not to be.
#[test]
fn a_queue_below_a_bucket() {
    let bucket = "tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 10k latency 50ms\n";
    let below = |kind: &str| {
        import(
            &format!("{bucket}tc qdisc add dev eth0 parent 1:1 {kind}"),
            None,
        )
    };
    let plan = parse(&below("pfifo limit 30").toml).bottlenecks[0].plan();
    assert_eq!(plan.classes[0].limits, limited(30));
    let warnings = below("sfq").warnings;
    assert!(warnings[0].contains("`sfq` below tbf"), "{warnings:?}");
}

/// As import netem reads it.
#[test]
fn a_netem_for_all_packets_is_a_link() {
    let root = "tc qdisc add dev eth0 root handle 1:";
    let below = "tc qdisc add dev eth0 parent 1:1 handle 10:";
    let class = "tc class add dev eth0 parent 10: classid 10:1 htb rate 2mbit";
    for script in [
        format!("{root} netem delay 5ms limit 500"),
        format!("{root} tbf rate 2mbit burst 10k latency 50ms\n{below} netem delay 5ms"),
        format!("{root} netem delay 5ms\n{below} tbf rate 2mbit burst 10k latency 50ms"),
        format!("{root} netem delay 5ms\n{below} htb default 1\n{class}"),
    ] {
        let imported = import(&script, None);
        let up = parse(&imported.toml).up;
        assert_eq!(up.delay.mean_ns, 5_000_000, "{script}");
        let rate = script.contains("2mbit").then_some(2 * MBIT);
        assert_eq!((up.rate, up.class), (rate, None), "{script}");
        let netem = import::netem(&script, Header::Up, &|_| None).unwrap();
        assert_eq!(imported, netem, "{script}");
        let warnings = import(&script, Some(MBIT)).warnings;
        assert!(
            warnings.iter().any(|w| w.starts_with("`--rate`")),
            "{script}"
        );
    }
}

#[test]
fn a_queue_at_the_root_is_that_of_a_link() {
    for (kind, packets, bytes) in [
        ("pfifo limit 30", Some(30), None),
        ("bfifo limit 30000", None, Some(30_000)),
        ("codel limit 30", Some(30), None),
    ] {
        let script = format!("tc qdisc add dev eth0 root {kind}");
        let imported = import(&script, Some(MBIT));
        assert_eq!(imported.warnings, [""; 0]);
        let up = parse(&imported.toml).up;
        assert_eq!((up.rate, up.class), (Some(MBIT), None));
        let limits = (up.queue.packets, up.queue.bytes);
        assert_eq!(limits, (packets, bytes), "{script}");
        assert!(refused(&script).contains("the tree has no rate"));
    }
}

/// Of a script for two devices.
#[test]
fn one_device_is_chosen() {
    let other = TREE.replace("eth1", "eth2").replace("100mbit", "200mbit");
    let netem = "tc qdisc add dev eth3 root netem delay 7ms\n";
    // A mistake of another device does not matter.
    let filter = "tc filter add dev eth5 parent 1: u32 match u8 5 f at 0 flowid 1:1\n";
    let script = format!("{TREE}{other}{netem}{filter}");
    let of = |device| import::tc(&script, "x.sh", Header::Up, Some(device), None, &|_| None);
    let rate = |device| parse(&of(device).unwrap().toml).bottlenecks[0].plan().rate;
    assert_eq!([rate("eth1"), rate("eth2")], [100 * MBIT, 200 * MBIT]);
    let netem = parse(&of("eth3").unwrap().toml);
    assert_eq!(netem.up.delay.mean_ns, 7_000_000);
    assert_eq!((netem.rules.len(), netem.links.len()), (0, 0));
    let text = of("eth4").unwrap_err().to_string();
    assert!(text.contains("no qdisc at the root of eth4"), "{text}");
    assert!(refused(&script).contains("choose one with --dev eth1"));
}

#[test]
fn a_bucket_alone_is_a_server() {
    let script = "tc qdisc add dev eth0 root tbf rate 2mbit burst 10k latency 50ms";
    let profile: Profile = parse(&import(script, None).toml);
    let plan = profile.bottlenecks[0].plan();
    assert_eq!((plan.rate, plan.classes.len()), (2 * MBIT, 1));
    // 12,500 bytes in 50 ms, and the burst.
    assert_eq!(plan.classes[0].limits.bytes, Some(22_740));
    assert_eq!(profile.up.class.as_deref(), Some("tree"));
}

#[test]
fn what_is_no_tree_is_refused() {
    for (script, wanted) in [
        (
            "tc qdisc add dev eth0 root handle 1: prio",
            "the tree has no rate",
        ),
        (
            "tc qdisc add dev eth0 root sfq",
            "`sfq` at the root is not imported",
        ),
        (
            "tc qdisc add dev eth0 parent 1:1 pfifo",
            "no qdisc at the root",
        ),
        (
            "tc qdisc add dev eth0 root htb\ntc qdisc add dev eth1 root htb\n",
            "a second device",
        ),
        (
            "tc qdisc add dev eth0 root handle 1: htb default 2\n\
             tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n\
             tc qdisc add dev eth0 parent 1:2 handle 2: netem delay 1ms\n\
             tc qdisc add dev eth0 parent 2:1 netem loss 1%\n",
            "a netem below another netem",
        ),
    ] {
        let text = refused(script);
        assert!(text.contains(wanted), "{script}: {text}");
    }
    // A filter that leads to no leaf is not left out in silence.
    let script = TREE.replace("flowid 1:10", "flowid 1:11");
    let imported = import(&script, None);
    assert!(imported.warnings[0].contains("a filter to class 1:11"));
}

/// Bands have no guarantee: they share that of the class, the best first.
#[test]
fn a_prio_in_a_class_of_htb() {
    let bands = "\
        tc qdisc add dev eth1 parent 1:30 handle 30: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n\
        tc qdisc add dev eth1 parent 30:1 handle 31: pfifo limit 50\n\
        tc qdisc add dev eth1 parent 30:2 handle 32: netem delay 5ms limit 60\n\
        tc filter add dev eth1 parent 30: protocol ip prio 1 u32 match ip dst 10.0.0.0/23 flowid 30:1\n\
        tc filter add dev eth1 parent 30: protocol ip prio 2 u32 match ip tos 0xb8 0xfc flowid 30:1\n\
        tc filter add dev eth1 parent 30: protocol ip prio 3 u32 match ip dst 10.0.2.0/24 flowid 30:1\n\
        tc filter add dev eth1 parent 30: protocol ip prio 4 u32 match ip protocol 6 0xff flowid 30:2\n";
    let tree = TREE.replace(
        "parent 1:30 handle 30: pfifo limit 50",
        "parent 1:30 handle 30: PRIO",
    );
    let tree = tree
        .lines()
        .filter(|line| !line.contains("PRIO"))
        .map(|line| format!("{line}\n"));
    // Of the packets that the filters of the root lead to the class, and of those that none takes.
    let to_it = "tc filter add dev eth1 parent 1: protocol ip prio 2 u32 match ip dst 10.0.0.0/16 \
                 match ip tos 0x08 0x1c flowid 1:30\n";
    let script = tree.collect::<String>() + to_it + bands;
    let imported = import(&script, None);
    assert_eq!(imported.warnings, [""; 0]);
    let profile = parse(&imported.toml);
    let plan = profile.bottlenecks[0].plan();
    assert_eq!((plan.schedule, plan.classes.len()), (Schedule::Htb, 5));
    let above = plan.classes[2];
    assert_eq!(
        (above.parent, above.rate, above.ceil),
        (None, Some(89 * MBIT), Some(100 * MBIT))
    );
    let band = |priority, packets| Class {
        parent: Some(2),
        priority,
        limits: limited(packets),
        ..Class::default()
    };
    assert_eq!(plan.classes[3..], [band(0, 50), band(1, 60)]);
    assert_eq!(profile.up.class.as_deref(), Some("tree.class-30-2"));
    assert_eq!(profile.up.delay.mean_ns, 5_000_000);
    let ds = "tos = \"0x8/0x1c\"";
    let want = [
        ("destination = \"10.0.1.0/24\"".to_owned(), "class-1-10"),
        ("destination = \"10.0.2.0/24\"".to_owned(), "class-1-20"),
        (format!("destination = \"10.0.0.0/23\", {ds}"), "class-30-1"),
        // No packet has both fields, and those to 10.0.2.0/24 are in class 1:20.
        (
            format!("destination = \"10.0.0.0/16\", protocol = \"tcp\", {ds}"),
            "class-30-2",
        ),
        (format!("destination = \"10.0.0.0/16\", {ds}"), "class-30-2"),
        ("destination = \"10.0.0.0/23\"".to_owned(), "class-30-1"),
        ("source = \"0.0.0.0/0\", dscp = 46".to_owned(), "class-30-1"),
        (
            "source = \"0.0.0.0/0\", protocol = \"tcp\"".to_owned(),
            "class-30-2",
        ),
    ];
    assert_eq!(
        rules(&imported),
        want.map(|(keys, class)| format!("{keys}: {class}"))
    );
    // By ToS, too, in a band of a prio.
    let nested = "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n\
                  tc qdisc add dev eth0 parent 1:2 prio\n";
    let imported = import(nested, Some(MBIT));
    let plan = parse(&imported.toml).bottlenecks[0].plan();
    let places: Vec<_> = plan
        .classes
        .iter()
        .map(|c| (c.parent, c.priority))
        .collect();
    assert_eq!(
        places,
        [
            (None, 0),
            (None, 1),
            (Some(1), 0),
            (Some(1), 1),
            (Some(1), 2)
        ]
    );
    assert_eq!(rules(&imported).len(), 2);
    for (kind, under, said) in [
        ("htb default 1", "1:2", "`htb` in class 1:2 is not imported"),
        ("htb default 1", "1:2", "x.sh:2:34"),
        ("drr", "1:2", "write those, or a single queue"),
        ("prio", "1:2 handle 1:", "has classes of another qdisc"),
    ] {
        let script = nested.replace("1:2 prio", &format!("{under} {kind}"));
        let text = refused(&script);
        assert!(text.contains(said), "{text}");
    }
    let script = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10k limit 30000\n\
                  tc qdisc add dev eth0 parent 1:1 handle 2: htb\n";
    assert!(refused(script).contains("`htb` below tbf is not imported"));
}

/// Where no class of htb is guaranteed more than a packet in a minute, quanta and priorities are all there is.
#[test]
fn classes_that_borrow_everything() {
    let of = |options: [&str; 2]| {
        let [a, b] = options;
        let script = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 200bit ceil 10mbit {a}\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb ceil 5mbit {b}\n"
        );
        let imported = import(&script, None);
        let plan = parse(&imported.toml).bottlenecks[0].plan();
        let figures = |c: &Class| (c.priority, c.weight, c.rate, c.ceil);
        let classes: Vec<_> = plan.classes.iter().map(figures).collect();
        (plan.schedule, classes, imported.warnings.len())
    };
    let five = Some(5 * MBIT);
    let same = of(["prio 3 quantum 8000", "rate 8bit prio 3 quantum 2000"]);
    assert_eq!(
        same,
        (
            Schedule::Drr,
            vec![(0, 4, None, None), (0, 1, None, five)],
            0
        )
    );
    let other = of(["quantum 8000", "rate 200bit prio 1"]);
    assert_eq!(
        other,
        (
            Schedule::Priority,
            vec![(0, 1, None, None), (1, 1, None, five)],
            0
        )
    );
    let (schedule, classes, _) = of(["quantum 8000", "rate 208bit"]);
    assert_eq!((schedule, classes[0].2), (Schedule::Htb, Some(200)));
}

/// A profile has one seed, and a seed that is not in it is in a warning.
#[test]
fn the_seed_of_a_netem_in_a_tree() {
    let seeds = |first: &str, second: &str| {
        let script = (TREE.replace("delay 50ms", &format!("delay 50ms {first}")))
            .replace("delay 200ms", &format!("delay 200ms {second}"));
        let imported = import(&script, None);
        (parse(&imported.toml).seed, imported.warnings)
    };
    assert_eq!(seeds("", ""), (None, vec![]));
    assert_eq!(seeds("", "seed 7"), (Some(7), vec![]));
    assert_eq!(seeds("seed 7", "seed 7"), (Some(7), vec![]));
    let other = "`seed 8` of another netem: a profile has one seed".to_owned();
    assert_eq!(seeds("seed 7", "seed 8"), (Some(7), vec![other]));
}

/// The user wrote a script and has never seen the profile.
#[test]
fn a_mistake_of_the_profile_is_shown_in_the_script() {
    for (from, to, at, line, title) in [
        (
            "htb rate 1mbit",
            "htb rate 0",
            "x.sh:5:47",
            "tc class add dev eth1 parent 1:1 classid 1:10 htb rate 0 ceil",
            "a profile cannot represent this: the class `class-1-10` has no `rate`",
        ),
        (
            "pfifo limit 50",
            "pie limit 100000",
            "x.sh:10:46",
            "tc qdisc add dev eth1 parent 1:30 handle 30: pie limit 100000",
            "a profile cannot represent this: `100000p` is too long",
        ),
        (
            "u32 match ip dst 10.0.2.0/24",
            "flower ip_proto bogus",
            "x.sh:12:11",
            "prio 1 flower ip_proto bogus flowid 1:20",
            "a profile cannot represent this: there is no protocol `bogus`",
        ),
    ] {
        let text = refused(&TREE.replace(from, to));
        for said in [at, line, title] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(!text.contains("the profile:"), "{text}");
    }
    // The line of the profile is in the help.
    let text = refused(&TREE.replace("pfifo limit 50", "pie limit 100000"));
    let line = "of the profile is `queue = { limit = \"100000p\", aqm = \"pie\" }`)";
    assert!(text.contains(line), "{text}");
}

/// One reader for both: what tc prints of a tbf, beside netem and as a server.
#[test]
fn a_bucket_is_read_alike_beside_netem_and_in_a_tree() {
    let bucket = "qdisc tbf 1: dev eth0 root refcnt 2 rate 8Mbit burst 4Kb mpu 64b lat 50ms";
    let imported = import(bucket, None);
    assert_eq!(imported.warnings, ["`mpu 64` of tbf"]);
    let limits = parse(&imported.toml).bottlenecks[0].plan().classes[0].limits;
    assert_eq!(limits.bytes, Some(54_096));
    let beside = format!("{bucket}\nqdisc netem 10: dev eth0 parent 1:1 limit 1000 delay 5ms");
    let link = import::netem(&beside, Header::Up, &|_| None).unwrap();
    let rate = "rate = { rate = \"8Mbit\", burst = \"4096B\", mpu = 64 }";
    assert!(link.toml.contains(rate), "{}", link.toml);
}

/// The keys of its rules, and where they lead.
fn rules(imported: &Imported) -> Vec<String> {
    let rules = parse(&imported.toml).rules;
    let line = |rule: &Rule| match &rule.target {
        Target::Named(name) => format!("{}: {name}", rule.matches.keys()),
        other => panic!("{other:?}"),
    };
    rules.iter().map(line).collect()
}

/// Without a priority the kernel gives 49152, and one less for each further filter (tc filter show).
#[test]
fn the_last_filter_without_a_priority_is_checked_first() {
    let add = "tc filter add dev eth1 parent 1: protocol ip";
    let script = TREE.replace("prio 1 u32", "u32");
    let script = format!(
        "{script}{add} prio 60000 u32 match ip dst 10.0.3.0/24 flowid 1:10\n\
         {add} prio 40000 u32 match ip dst 10.0.4.0/24 flowid 1:10\n\
         {add} u32 match ip dst 10.0.5.0/24 flowid 1:10\n\
         {add} prio 7 u32 match ip dst 10.0.6.0/24 flowid 1:10\n"
    );
    let want = [(6, 10), (5, 10), (4, 10), (2, 20), (1, 10), (3, 10)];
    let want =
        want.map(|(net, class)| format!("destination = \"10.0.{net}.0/24\": class-1-{class}"));
    assert_eq!(rules(&import(&script, None)), want);
}

/// fl_classify() compares all filters of a priority that have the same mask, then those of the next mask.
#[test]
fn flowers_of_one_mask_are_checked_together() {
    let flower = |priority: u32, keys: &str, class: u32| {
        format!(
            "tc filter add dev eth1 parent 1: protocol ip prio {priority} flower {keys} flowid 1:{class}\n"
        )
    };
    let tree = TREE.lines().filter(|line| !line.contains("filter"));
    let tree = tree.map(|line| format!("{line}\n")).collect::<String>();
    let script = tree
        + &flower(2, "dst_ip 10.1.0.0/16", 10)
        + &flower(2, "dst_ip 10.1.2.0/24", 20)
        + &flower(2, "dst_ip 10.3.0.0/16", 20)
        + &flower(2, "src_ip 10.1.0.0/16", 20)
        + &flower(2, "src_ip 10.0.0.1 dst_ip 10.2.0.0/24", 10)
        + &flower(2, "dst_ip 10.3.2.0/24 src_ip 10.0.0.2", 20)
        + &flower(2, "dst_ip 10.2.2.0/24", 10)
        // Each priority has separate masks.
        + &flower(1, "dst_ip 10.9.0.0/24", 20)
        + &flower(3, "dst_ip 10.4.0.0/16", 10);
    let pair = |source: u32, net: &str| {
        format!("source = \"10.0.0.{source}/32\", destination = \"{net}\"")
    };
    let to = |net: &str| format!("destination = \"{net}\"");
    let want = [
        (to("10.9.0.0/24"), 20),
        (to("10.1.0.0/16"), 10),
        (to("10.3.0.0/16"), 20),
        (to("10.1.2.0/24"), 20),
        (to("10.2.2.0/24"), 10),
        ("source = \"10.1.0.0/16\"".to_owned(), 20),
        (pair(1, "10.2.0.0/24"), 10),
        (pair(2, "10.3.2.0/24"), 20),
        (to("10.4.0.0/16"), 10),
    ];
    let want = want.map(|(keys, class)| format!("{keys}: class-1-{class}"));
    assert_eq!(rules(&import(&script, None)), want);
}

#[test]
fn a_filter_is_for_its_protocol() {
    let tree = TREE.lines().filter(|line| !line.contains("filter"));
    let tree = tree.collect::<Vec<_>>().join("\n");
    let with = |filters: &[&str]| {
        let filters = filters
            .iter()
            .map(|f| format!("\ntc filter add dev eth1 parent 1: {f}"));
        format!("{tree}{}", filters.collect::<String>())
    };
    let udp = "match ip protocol 17 0xff flowid 1:10";
    for (filters, want) in [
        (
            &["protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10"][..],
            &["source = \"0.0.0.0/0\", protocol = \"udp\": class-1-10"][..],
        ),
        // A prefix of a port is a range.
        (
            &["protocol ip prio 1 u32 match ip dport 85 0xfff0 match ip sport 0 fc00 flowid 1:10"],
            &[
                "source = \"0.0.0.0/0\", source-port = \"0-1023\", destination-port = \"80-95\": class-1-10",
            ],
        ),
        (
            &["protocol ipv6 prio 1 matchall flowid 1:10"],
            &["source = \"::/0\": class-1-10"],
        ),
        (
            &["protocol all prio 1 handle 010/0xff fw flowid 1:10"],
            &["mark = \"0x8/0xff\": class-1-10"],
        ),
        // Masks of u32 are hexadecimal, also without 0x.
        (
            &[
                "protocol ip prio 1 u32 match ip tos 24 10 flowid 1:10",
                "protocol ip prio 2 u32 match ip protocol 17 ff match ip dport 53 ffff flowid 1:20",
            ],
            &[
                "source = \"0.0.0.0/0\", tos = \"0x10/0x10\": class-1-10",
                "source = \"0.0.0.0/0\", protocol = \"udp\", destination-port = \"53\": class-1-20",
            ],
        ),
        (
            &[
                "protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10",
                "protocol ipv6 prio 2 u32 match ip6 protocol 17 0xff flowid 1:10",
            ],
            &["protocol = \"udp\": class-1-10"],
        ),
    ] {
        let imported = import(&with(filters), None);
        assert_eq!(imported.warnings, [""; 0]);
        assert_eq!(rules(&imported), want);
    }
    // What arrives meets no class.
    let ingress = format!(
        "{}\ntc qdisc add dev eth1 handle ffff: ingress\n\
         tc filter add dev eth1 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate \
         8mbit burst 10k drop flowid 1:10\n",
        with(&[])
    );
    assert_eq!(rules(&import(&ingress, None)), [""; 0]);
    let inner =
        with(&[]) + &format!("\ntc filter add dev eth1 parent 1:1 protocol all u32 {udp}\n");
    let imported = import(&inner, None);
    assert!(
        imported.warnings[0].contains("it is of 1:1"),
        "{:?}",
        imported.warnings
    );
    assert_eq!(rules(&imported), [""; 0]);
    for (filter, said) in [
        (
            "protocol arp prio 1 u32 match u32 0 0 flowid 1:10",
            "`arp` is not imported",
        ),
        (
            "protocol 802.1q prio 1 matchall flowid 1:10",
            "`802.1q` is not imported",
        ),
        // Bytes of the header of IP.
        (
            "protocol ip prio 1 u32 match tcp dst 80 0xffff flowid 1:10",
            "write match ip dport 80 0xffff",
        ),
        (
            "protocol ip prio 1 u32 match udp src 53 0xffff flowid 1:10",
            "`udp` is not imported",
        ),
        (
            "protocol ip prio 1 u32 match ip dport 80 65535 flowid 1:10",
            "`65535` is not imported, in `match ip dport 80 65535`",
        ),
        (
            "protocol ip prio 1 u32 match u8 0x05 0x0f at 0 flowid 1:10",
            "in `match u8 0x05 0x0f at 0`",
        ),
        (
            "protocol ip prio 1 u32 match ip src 10.0.0.1 match ip dport 80 0xfff1 flowid 1:10",
            "in `match ip dport 80 0xfff1`",
        ),
        // What the kernel does with those depends on no class of the text.
        ("protocol ip prio 1 handle 1: cgroup", "without `flowid`"),
        ("protocol ip prio 1 fw", "without `flowid`"),
        ("protocol ip prio 1 fw flowid 1:10", "`fw` is not imported"),
        (
            "protocol ip prio 1 u32 match ip dport 22 0xffff action drop",
            "without `flowid`",
        ),
    ] {
        let text = refused(&with(&[filter]));
        assert!(text.contains(said), "{text}");
    }
    let shown = format!(
        "{tree}\nfilter parent 1: protocol ip pref 49152 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 \
         *flowid 1:10 not_in_hw\n  match 0a000100/ffffff00 at 16\n"
    );
    assert!(refused(&shown).contains("as tc prints it"));
    // Those that redirect what arrives to an ifb.
    let ifb = with(&["protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0"]);
    let ifb = ifb.replace("parent 1: protocol all", "ingress protocol all");
    assert_eq!(rules(&import(&ifb, None)), [""; 0]);
    let deleted = with(&[]) + "\ntc filter del dev eth1 parent 1: prio 1\n";
    assert_eq!(rules(&import(&deleted, None)), [""; 0]);
}

#[test]
fn a_bucket_as_tc_reads_and_prints_it() {
    let queue = |text: &str| {
        let script = format!("tc qdisc add dev eth0 root tbf rate 2mbit burst 10k {text}");
        let imported = import(&script, None);
        let plan = parse(&imported.toml).bottlenecks[0].plan();
        (plan.classes[0].limits.bytes, imported.warnings)
    };
    for (text, bytes) in [
        ("latency 50000", 22_740),
        ("lat 50ms", 22_740),
        ("latency 1s", 260_240),
    ] {
        assert_eq!(queue(text), (Some(bytes), vec![]), "{text}");
    }
    for text in ["peakrate 3mbit", "overhead 20", "mpu 64", "linklayer atm"] {
        let (_, warnings) = queue(&format!("latency 50ms {text}"));
        assert_eq!(warnings, [format!("`{}` of tbf", text)]);
    }
    let (bytes, warnings) = queue("latency 50ms linklayer ethernet overhead 0 mpu 0b");
    assert_eq!((bytes, warnings), (Some(22_740), vec![]));
}

#[test]
fn classes_as_htb_takes_them() {
    let script = TREE.replace(
        "htb rate 10mbit ceil 100mbit prio 2",
        "htb rate 10mbit ceil 5mbit overhead 24",
    );
    let imported = import(&script, None);
    let class = &parse(&imported.toml).bottlenecks[0].classes[1];
    assert_eq!((class.rate, class.ceil), (Some(5 * MBIT), Some(5 * MBIT)));
    let [wire, ceil] = &imported.warnings[..] else {
        panic!("{:?}", imported.warnings);
    };
    assert_eq!(wire, "`overhead 24` of htb");
    assert!(ceil.contains("above its ceil"), "{ceil}");
    // A class above others has no priority, and takes no packets.
    let script = TREE.replace("default 30", "default 20")
        + "tc class add dev eth1 parent 1:20 classid 1:21 htb rate 1mbit prio 3\n";
    let imported = import(&script, None);
    let gone = "`netem` in class 1:20, which has classes below it: no packet waits there";
    assert_eq!(imported.warnings[0], gone);
    let profile = parse(&imported.toml);
    let priority = |name: &str| {
        let mut classes = profile.bottlenecks[0].classes.iter();
        classes.find(|class| class.name == name).unwrap().priority
    };
    assert_eq!((priority("class-1-20"), priority("class-1-21")), (0, 3));
    assert_eq!(profile.up.class, None);
}

#[test]
fn red_as_tc_prints_it() {
    let shown = |more: &str| {
        import(
            &format!("qdisc red 1: dev eth0 root refcnt 2 limit 60Kb min 15Kb max 45Kb ecn {more}"),
            Some(MBIT),
        )
    };
    let imported = shown("ewma 3 probability 0.1 Scell_log 15");
    assert_eq!(imported.warnings, [""; 0]);
    assert_eq!(parse(&imported.toml).up.queue, red(0.1, true));
    assert!(shown("").warnings[0].contains("with -d only"));
}

/// Without a queue below it, netem is the queue of its class, also below a tbf.
#[test]
fn the_limit_of_netem_is_that_of_its_class() {
    let of = |netem: &str, below: &str| {
        let script = TREE.replace("netem loss 1% delay 50ms", netem) + below;
        let imported = import(&script, None);
        assert_eq!(imported.warnings, [""; 0]);
        parse(&imported.toml).bottlenecks[0].plan().classes[0].limits
    };
    assert_eq!(of("netem limit 50 loss 1%", ""), limited(50));
    // 1 Mbit/s for 50 ms: 5 packets are in flight.
    assert_eq!(of("netem limit 50 delay 50ms", ""), limited(45));
    assert_eq!(of("netem limit 6 delay 50ms", ""), limited(1));
    // tc prints the default.
    for limit in ["", "limit 1000"] {
        assert_eq!(of(&format!("netem {limit} delay 50ms"), ""), limited(995));
    }
    for limit in [3, 5] {
        let netem = format!("netem limit {limit} delay 50ms");
        let imported = import(&TREE.replace("netem loss 1% delay 50ms", &netem), None);
        let [warning] = &imported.warnings[..] else {
            panic!("{:?}", imported.warnings);
        };
        let said = format!("netem carries about {} packets per second", limit * 20);
        assert!(warning.contains(&said), "{warning}");
        let plan = parse(&imported.toml).bottlenecks[0].plan();
        assert_eq!(plan.classes[0].limits, limited(1));
    }
    let below = "tc qdisc add dev eth1 parent 10:1 pfifo limit 20\n";
    assert_eq!(of("netem delay 50ms limit 1000000", below), limited(20));
    let below = below.replace("20", "1000");
    assert_eq!(of("netem delay 50ms limit 1000000", &below), limited(1000));
    let script = "tc qdisc add dev eth0 root handle 1: prio\n\
                  tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 5k latency 20ms\n\
                  tc qdisc add dev eth0 parent 10:1 handle 11: netem delay 5ms\n";
    let plan = parse(&import(script, Some(10 * MBIT)).toml).bottlenecks[0].plan();
    assert_eq!(
        (plan.classes[0].ceil, plan.classes[0].limits),
        (Some(MBIT), limited(999))
    );
    let short = TREE.replace("pfifo limit 50", "bfifo limit 100");
    let imported = import(&short, None);
    assert!(imported.warnings[0].starts_with("a limit of 100 bytes"));
}

/// The kernel finds a class that is changed by its id.
#[test]
fn a_class_is_changed_without_its_parent() {
    let script =
        TREE.to_owned() + "tc class change dev eth1 classid 1:10 htb rate 2mbit ceil 50mbit\n";
    let imported = import(&script, None);
    let classes = &parse(&imported.toml).bottlenecks[0].classes;
    let names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["class-1-10", "class-1-20", "class-1-30"]);
    let changed = (classes[0].rate, classes[0].ceil);
    assert_eq!(changed, (Some(2 * MBIT), Some(50 * MBIT)));
}

/// netem loses packets when they arrive, before htb serves them.
#[test]
fn a_netem_in_a_class_loses_packets_before_the_queue() {
    let imported = import(TREE, None);
    let profile = parse(&imported.toml);
    for link in &profile.links {
        let stage = match link.up.loss.is_none() {
            true => Stage::AfterQueue,
            false => Stage::BeforeQueue,
        };
        assert_eq!(link.up.loss.stage, stage, "{}", link.name);
    }
    let lossy = profile.links.iter().filter(|link| !link.up.loss.is_none());
    assert_eq!(lossy.count(), 2);
}

/// A bucket in a class of htb does not raise what the class may send.
#[test]
fn a_bucket_in_a_class_of_htb() {
    let of = |class: &str, rate: &str| {
        let bucket = format!("tbf rate {rate} burst 10k limit 60000");
        let script = TREE
            .replace("pfifo limit 50", &bucket)
            .replace("htb rate 89mbit ceil 100mbit", &format!("htb {class}"));
        let imported = import(&script, None);
        assert_eq!(imported.warnings, [""; 0]);
        let class = &parse(&imported.toml).bottlenecks[0].classes[2];
        let mbit = |rate: Option<u64>| rate.map(|bits| bits / MBIT);
        (mbit(class.rate), mbit(class.ceil))
    };
    let both = |rate, ceil| (Some(rate), Some(ceil));
    assert_eq!(of("rate 50mbit ceil 80mbit", "90mbit"), both(50, 80));
    assert_eq!(of("rate 50mbit ceil 80mbit", "70mbit"), both(50, 70));
    assert_eq!(of("rate 50mbit ceil 80mbit", "20mbit"), both(20, 20));
    // tc's default of the ceil is the rate.
    assert_eq!(of("rate 50mbit", "90mbit"), both(50, 50));
}

/// htb_classify(): what a filter sends to no leaf is not for the next filter, but for the default class, and without
/// one it passes all classes.
#[test]
fn a_filter_of_htb_to_no_leaf() {
    let add =
        "tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 10.0.3.0/24 flowid";
    let to = |tree: &str, class: &str| {
        let imported = import(&format!("{tree}{add} {class}\n"), None);
        let said =
            format!("a filter to class {class}, in which no packet waits: htb sends its packets ");
        let is_said = imported.warnings.iter().any(|text| text.starts_with(&said));
        assert_eq!(is_said, class != "1:0", "{class}: {:?}", imported.warnings);
        let rules = parse(&imported.toml).rules;
        assert_eq!(rules.len(), 3, "{}", imported.toml);
        match &rules[2].target {
            Target::Named(name) => name.clone(),
            Target::Untouched => "none".to_owned(),
            other => panic!("{other:?}"),
        }
    };
    // The class above all others, and some that are not there.
    for class in ["1:1", "1:99", "2:10", ":10"] {
        assert_eq!(to(TREE, class), "class-1-30", "{class}");
        for default in ["default 99", "default 1", ""] {
            let tree = TREE.replace("default 30", default);
            assert_eq!(to(&tree, class), "none", "{class} {default}");
        }
    }
    assert_eq!(to(TREE, "1:0"), "none");
    // A class above others, whose filters choose among these.
    let below = "tc class add dev eth1 parent 1:30 classid 1:31 htb rate 1mbit\n";
    let tree = TREE.replace("default 30", "default 31");
    let tree = tree.replace(
        "tc qdisc add dev $DEV parent 1:30 handle 30: pfifo limit 50\n",
        below,
    );
    assert_eq!(to(&tree, "1:30"), "class-1-31");
    let own = "tc filter add dev eth1 parent 1:30 protocol ip prio 1 matchall flowid 1:31\n";
    let imported = import(&format!("{tree}{add} 1:30\n{own}"), None);
    let said = "a filter to class 1:30, in which no packet waits";
    assert!(
        imported.warnings.iter().any(|w| w == said),
        "{:?}",
        imported.warnings
    );
    assert_eq!(rules(&imported).len(), 2);
}
