// SPDX-License-Identifier: MIT OR Apache-2.0
//! Export to a tree of htb and import again: the same bottleneck, links and rules.

use std::fmt::Write;

use emud::bottleneck::Schedule;
use emud::convert::export::{ExportDirection, ExportError, Exported, tc};
use emud::convert::import::{self, Header};
use emud::profile::{Link, Loss, Profile, Stage, shipped};
use emud::text::Word;
use proptest::prelude::*;
use proptest::sample::Index;
use support::chance::same_cases;

use super::netem_round_trip::exportable;
use super::parse;

/// A class: minor number, position of its parent among those before, and figures.
#[derive(Debug, Clone)]
struct Made {
    parent: Option<Index>,
    priority: u32,
    weight: u32,
    rate_bytes: u64,
    ceil_bytes: u64,
    queue: Option<String>,
    link: Option<Link>,
}

fn class() -> impl Strategy<Value = Made> {
    let queue = prop_oneof![
        Just(None),
        (1..=65536u32)
            .prop_filter("the default", |n| *n != 1000)
            .prop_map(|n| Some(format!("\"{n}p\""))),
        (1514..=u32::MAX).prop_map(|n| Some(format!("\"{n}B\""))),
        managed().prop_map(Some),
    ];
    (
        prop::option::of(any::<Index>()),
        0..=7u32,
        1..=2_000u32,
        26..=1_000_000u64,
        1..=10_000_000u64,
        queue,
        prop::option::of(exportable()),
    )
        .prop_map(
            |(parent, priority, weight, rate_bytes, ceil_bytes, queue, link)| Made {
                parent,
                priority,
                weight,
                rate_bytes,
                ceil_bytes: rate_bytes + ceil_bytes,
                queue,
                link,
            },
        )
}

/// Queues with managers that tc has, some with figures that tc does not have.
fn managed() -> impl Strategy<Value = String> {
    let bytes = 1514..=10_000_000u32;
    let log = 1..=12i32;
    let red = (bytes, 1..=1_000_000u32, 1..=1_000_000u32, 1..=1000u32, log);
    let red = red.prop_map(|(bytes, min, range, share, log)| {
        format!(
            "bytes = \"{bytes}B\", aqm = \"red\", min = \"{min}B\", max = \"{}B\", probability = \"{}%\", \
             weight = {}",
            min + range,
            f64::from(share) / 10.0,
            0.5f64.powi(log)
        )
    });
    let limit = prop_oneof![
        Just(String::new()),
        (1..=65536u32)
            .prop_filter("the default", |n| *n != 1000)
            .prop_map(|n| format!("limit = \"{n}p\", ")),
    ];
    let us = || 1..=8_000_000u32;
    let codel = (limit.clone(), us(), us()).prop_map(|(limit, target, interval)| {
        format!("{limit}aqm = \"codel\", target = \"{target}us\", interval = \"{interval}us\"")
    });
    let gain = || (0..=32u32).prop_map(|n| f64::from(n) / 16.0);
    let pie = (limit, us(), us(), gain(), gain());
    let pie = pie.prop_map(|(limit, target, tupdate, alpha, beta)| {
        format!(
            "{limit}aqm = \"pie\", target = \"{target}us\", tupdate = \"{tupdate}us\", alpha = {alpha:?}, \
             beta = {beta:?}"
        )
    });
    let ecn = prop_oneof![Just(""), Just(", ecn = true")];
    (prop_oneof![red, codel, pie], ecn).prop_map(|(keys, ecn)| format!("{{ {keys}{ecn} }}"))
}

fn matches() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), 0..=32u8).prop_map(|(bits, len)| {
        let net = ipnet::Ipv4Net::new(bits.into(), len).unwrap();
        net.trunc().to_string()
    });
    let v6 = (any::<u128>(), 0..=128u8).prop_map(|(bits, len)| {
        let net = ipnet::Ipv6Net::new(bits.into(), len).unwrap();
        net.trunc().to_string()
    });
    let nets = |net: BoxedStrategy<String>| {
        (prop::option::of(net.clone()), prop::option::of(net)).prop_map(|(source, destination)| {
            let mut keys = vec![];
            keys.extend(source.map(|net| format!("source = \"{net}\"")));
            keys.extend(destination.map(|net| format!("destination = \"{net}\"")));
            keys
        })
    };
    let transport = (
        prop::option::of(prop::sample::select(vec![6u8, 17, 200])),
        prop::option::of(any::<u16>()),
        prop::option::of(any::<u16>()),
    );
    let tos = prop_oneof![
        2 => Just(None),
        1 => any::<u8>().prop_map(|tos| Some(format!("tos = {tos}"))),
        1 => any::<(u8, u8)>()
            // This mask is that of a DSCP.
            .prop_filter("a mask", |(_, mask)| ![0, 0xfc].contains(mask))
            .prop_map(|(tos, mask)| Some(format!("tos = \"{:#x}/{mask:#x}\"", tos & mask))),
        1 => (0..64u8).prop_map(|dscp| Some(format!("dscp = {dscp}"))),
    ];
    let header = (
        prop_oneof![nets(v4.boxed()), nets(v6.boxed())],
        transport,
        tos,
    )
        .prop_map(|(mut keys, (protocol, source, destination), tos)| {
            keys.extend(protocol.map(|number| format!("protocol = \"{number}\"")));
            // Only these protocols have ports.
            if matches!(protocol, Some(6 | 17)) {
                keys.extend(source.map(|port| format!("source-port = {port}")));
                keys.extend(destination.map(|port| format!("destination-port = {port}")));
            }
            keys.extend(tos);
            keys.join(", ")
        });
    let mark = (1..=u32::MAX, prop::option::of(1..=u32::MAX)).prop_map(|(mark, mask)| {
        let mask = mask.filter(|mask| mark & !mask == 0);
        let mask = mask.map_or(String::new(), |mask| format!("/{mask:#x}"));
        format!("mark = \"{mark:#x}{mask}\"")
    });
    prop_oneof![4 => header, 1 => mark]
}

fn name(place: usize) -> String {
    format!("class-1-{:x}", 2 + 3 * place)
}

fn divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}

/// As the import writes it: a named link for each leaf, of which the default one is also the link
/// of all other packets.
fn profile(
    schedule: Schedule,
    classes: &[Made],
    default: Option<Index>,
    rules: &[(String, Index)],
    rate: u64,
) -> Profile {
    let parents: Vec<Option<usize>> = (classes.iter().enumerate())
        .map(|(place, class)| match (place, &class.parent) {
            (place, Some(parent)) if place > 0 && schedule == Schedule::Htb => {
                Some(parent.index(place))
            }
            _ => None,
        })
        .collect();
    let is_leaf = |place: &usize| !parents.contains(&Some(*place));
    let leaves: Vec<usize> = (0..classes.len()).filter(is_leaf).collect();
    let default = default.map(|default| leaves[default.index(leaves.len())]);
    let mut text = String::from("[up]\n");
    if let Some(default) = default {
        let _ = writeln!(text, "class = \"tree.{}\"", name(default));
    }
    for &leaf in &leaves {
        let _ = writeln!(text, "[links.{0}]\nclass = \"tree.{0}\"", name(leaf));
    }
    let _ = writeln!(
        text,
        "[bottleneck.tree]\nrate = \"{}bit\"\nschedule = \"{}\"",
        rate * 8,
        schedule.word()
    );
    for (place, class) in classes.iter().enumerate() {
        let _ = writeln!(text, "[bottleneck.tree.class.{}]", name(place));
        let is_htb = schedule == Schedule::Htb;
        if is_htb {
            let _ = writeln!(text, "rate = \"{}bit\"", class.rate_bytes * 8);
        } else {
            let beside = classes
                .iter()
                .filter(|other| schedule == Schedule::Drr || other.priority == class.priority);
            // In smallest numbers, as import has them.
            let divisor = beside.map(|other| other.weight).fold(0, divisor);
            let _ = writeln!(text, "weight = {}", class.weight / divisor);
        }
        // The server's is the default.
        if is_htb || class.ceil_bytes < rate {
            let _ = writeln!(text, "ceil = \"{}bit\"", class.ceil_bytes * 8);
        }
        if let Some(parent) = parents[place] {
            let _ = writeln!(text, "parent = \"{}\"", name(parent));
        }
        if leaves.contains(&place) {
            if schedule != Schedule::Drr {
                let _ = writeln!(text, "priority = {}", class.priority);
            }
            if let Some(queue) = &class.queue {
                let _ = writeln!(text, "queue = {queue}");
            }
        }
    }
    let mut before = None;
    for (matches, leaf) in rules {
        let leaf = leaves[leaf.index(leaves.len())];
        // A rule that follows an equal one has no effect; the import leaves it out.
        if before == Some((matches, leaf)) {
            continue;
        }
        before = Some((matches, leaf));
        let keys = match matches.is_empty() {
            true => String::new(),
            false => format!("match = {{ {matches} }}\n"),
        };
        let _ = writeln!(
            text,
            "[[rule]]\n{keys}link = \"{}\"\ndirection = \"up\"",
            name(leaf)
        );
    }
    let mut profile = parse(&text);
    for leaf in leaves {
        let Some(link) = &classes[leaf].link else {
            continue;
        };
        let class = Some(format!("tree.{}", name(leaf)));
        let link = Link {
            class,
            // netem is before the server.
            loss: Loss {
                stage: match link.loss.is_none() {
                    true => Stage::default(),
                    false => Stage::BeforeQueue,
                },
                ..link.loss.clone()
            },
            ..link.clone()
        };
        if default == Some(leaf) {
            profile.up = link.clone();
        }
        let of = name(leaf);
        for named in profile.links.iter_mut().filter(|named| named.name == of) {
            (named.up, named.down) = (link.clone(), link.clone());
        }
    }
    profile
}

/// Where htb sends more than emud, both directions say so.
fn back(exported: &Exported) -> Profile {
    let script = &exported.command;
    let imported = import::tc(script, "x.sh", Header::Up, None, None, &|_| None);
    let imported = imported.unwrap_or_else(|error| panic!("{script}\n{error}"));
    let twice = |texts: &[String]| {
        let said = texts
            .iter()
            .filter(|text| text.contains("htb sends all of them"));
        said.count()
    };
    let (warnings, notes) = (&imported.warnings, &exported.notes);
    assert_eq!(
        (warnings.len(), twice(warnings)),
        (twice(notes), twice(notes)),
        "{script}: {warnings:?}"
    );
    parse(&imported.toml)
}

proptest! {
    #![proptest_config(same_cases(support::cases(2_000)))]

    #[test]
    fn import_of_export_is_the_profile(
        schedule in prop::sample::select(vec![Schedule::Htb, Schedule::Priority, Schedule::Drr]),
        classes in prop::collection::vec(class(), 1..7),
        default in prop::option::of(any::<Index>()),
        rules in prop::collection::vec((matches(), any::<Index>()), 0..5),
        rate in 26..=125_000_000_000u64,
    ) {
        // Of one priority alone weights decide.
        let schedule = match classes.iter().all(|class| class.priority == classes[0].priority) {
            true if schedule == Schedule::Priority => Schedule::Drr,
            _ => schedule,
        };
        let profile = profile(schedule, &classes, default, &rules, rate);
        let exported = match tc(&profile, ExportDirection::Up, "eth0") {
            Ok(exported) => exported,
            // More packets in flight than netem's limit permits, a quantum beyond 32 bits, or a weight
            // that red does not have with these thresholds.
            Err(error) => {
                let text = error.to_string();
                let known = ["maximum limit is", "quantum", "`queue.weight`", "`queue.probability`"];
                let known = known.iter().any(|part| text.contains(part));
                prop_assert!(known, "{text}");
                return Ok(());
            }
        };
        let again = back(&exported);
        prop_assert_eq!(&again.bottlenecks, &profile.bottlenecks, "{}", exported.command);
        prop_assert_eq!(&again.rules, &profile.rules, "{}", exported.command);
        prop_assert_eq!(&again.links, &profile.links, "{}", exported.command);
        prop_assert_eq!(&again.up, &profile.up, "{}", exported.command);
        prop_assert_eq!(&again.down, &profile.down);
    }
}

#[test]
fn the_shipped_tree() {
    let profile = shipped::find("tiainen-tree").unwrap();
    let exported = tc(&profile, ExportDirection::Up, "eth1").unwrap();
    // By name: far, near, rest.
    let want = "\
tc qdisc add dev eth1 root handle 1: htb default 12
tc class add dev eth1 parent 1: classid 1:1 htb rate 100000000bit burst 125000 ceil 100000000bit cburst 125000
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 10000000bit burst 12500 ceil 100000000bit cburst 125000 quantum 16000
tc class add dev eth1 parent 1:1 classid 1:11 htb rate 1000000bit burst 1600 ceil 100000000bit cburst 125000 quantum 1600
tc class add dev eth1 parent 1:1 classid 1:12 htb rate 89000000bit burst 111250 ceil 100000000bit cburst 125000 quantum 142400
tc qdisc add dev eth1 parent 1:10 handle 10: netem delay 200ms loss random 2% limit 1000000
tc qdisc add dev eth1 parent 10:1 handle 11: pfifo limit 1000
tc qdisc add dev eth1 parent 1:11 handle 12: netem delay 50ms loss random 1% limit 1000000
tc qdisc add dev eth1 parent 12:1 handle 13: pfifo limit 1000
tc qdisc add dev eth1 parent 1:12 handle 14: pfifo limit 1000
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 10.0.1.0/24 flowid 1:11
tc filter add dev eth1 parent 1: protocol ip prio 2 u32 match ip dst 10.0.2.0/24 flowid 1:10";
    assert_eq!(exported.command, want);
    assert!(
        exported
            .notes
            .iter()
            .any(|note| note.contains("before htb serves"))
    );
    let again = back(&exported);
    let ours = profile.bottlenecks[0].plan();
    assert_eq!(again.bottlenecks[0].plan(), ours);
    // Another export is the same one.
    assert_eq!(
        tc(&again, ExportDirection::Up, "eth1").unwrap().command,
        want
    );
}

/// With tc's units; thresholds in time are those bytes of the class's rate.
#[test]
#[rustfmt::skip]
fn managers_of_tc() {
    let class = "[up]\nclass = \"t.a\"\n[bottleneck.t]\nrate = \"80Mbit\"\nschedule = \"htb\"\n\
        [bottleneck.t.class.a]\nrate = \"8Mbit\"\nceil = \"80Mbit\"\nqueue = ";
    for (queue, line) in [
        ("{ bytes = \"60kB\", aqm = \"red\", min = \"15kB\", max = \"45kB\", probability = \"10%\", weight = 0.125 }",
            "red limit 60000 min 15000 max 45000 avpkt 1000 burst 18 probability 0.1 bandwidth 8000000bit"),
        ("{ bytes = \"60kB\", aqm = \"red\", min = \"15ms\", max = \"45ms\", weight = 0.001953125, ecn = true }",
            "red limit 60000 min 15000 max 45000 avpkt 1000 burst 91 probability 0.02 bandwidth 8000000bit ecn"),
        ("{ aqm = \"codel\", interval = \"50ms\", ecn = true }", "codel limit 1000 target 5000us interval 50000us ecn"),
        ("{ limit = \"200p\", aqm = \"pie\" }",
            "pie limit 200 target 15000us tupdate 15000us alpha 2 beta 20"),
    ] {
        let profile = parse(&format!("{class}{queue}\n"));
        let exported = tc(&profile, ExportDirection::Up, "e").unwrap();
        assert!(exported.command.ends_with(line), "{}", exported.command);
        let [again, ours] = [&back(&exported), &profile].map(|p| p.bottlenecks[0].plan());
        assert_eq!(again, ours, "{queue}");
    }
    for (queue, said) in [
        ("{ aqm = \"red\", min = \"15kB\", max = \"45kB\", weight = 0.125 }", "write `bytes`"),
        ("{ bytes = \"60kB\", aqm = \"red\", min = \"15kB\", max = \"45kB\" }", "write a power of 1/2"),
        ("{ bytes = \"60kB\", aqm = \"red\", min = \"1kB\", max = \"3kB\", weight = 0.0625 }", "with these thresholds"),
        ("{ bytes = \"60kB\", aqm = \"codel\" }", "write `limit`"),
        ("{ aqm = \"codel\", target = \"1500ns\" }", "`queue.target`: 1500 ns"),
        ("{ aqm = \"pie\", alpha = 0.1 }", "`queue.alpha`: 0.1"),
        ("{ aqm = \"rem\" }", "class `a`: aqm = \"rem\""),
        ("{ limit = \"9p\", ecn = \"5ms\" }", "`queue.ecn` as a time"),
    ] {
        let error = tc(&parse(&format!("{class}{queue}\n")), ExportDirection::Up, "e").unwrap_err();
        assert!(error.to_string().contains(said), "{queue}: {error}");
    }
}

/// A rule for both families is two filters, and one rule again.
#[test]
fn both_families() {
    let text = "[up]\nclass = \"t.a\"\n[bottleneck.t]\nrate = \"8Mbit\"\nschedule = \"htb\"\n\
        [bottleneck.t.class.a]\nrate = \"1Mbit\"\n[bottleneck.t.class.b]\nrate = \"2Mbit\"\nqueue = \"9000B\"\n\
        [[rule]]\nmatch = { dscp = \"ef\", protocol = \"udp\", destination-port = 53 }\nclass = \"t.b\"\n";
    let exported = tc(&parse(text), ExportDirection::Up, "e").unwrap();
    for line in [
        "protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff match ip tos 184 0xfc \
         flowid 1:11",
        "protocol ipv6 prio 2 u32 match ip6 protocol 17 0xff match ip6 dport 53 0xffff match ip6 priority \
         184 0xfc flowid 1:11",
        "classid 1:10 htb rate 1000000bit burst 1600 ceil 8000000bit cburst 10000 quantum 1600",
        "parent 1:11 handle 11: bfifo limit 9000",
    ] {
        assert!(
            exported.command.contains(line),
            "{line}\n{}",
            exported.command
        );
    }
    let [rule] = &back(&exported).rules[..] else {
        panic!("{}", exported.command)
    };
    assert_eq!(rule.matches, parse(text).rules[0].matches);
    assert!(
        exported
            .notes
            .iter()
            .any(|note| note.contains("fixed position"))
    );
    // What htb promises beyond the server is said.
    let exported = tc(
        &parse(&text.replace("2Mbit", "9Mbit")),
        ExportDirection::Up,
        "e",
    )
    .unwrap();
    let said = "the rates below the server add up to 10000000 bit/s, and it has 8000000:";
    assert!(
        exported.notes.iter().any(|note| note.starts_with(said)),
        "{:?}",
        exported.notes
    );
}

/// check_netem_in_tree() of the kernel.
#[test]
fn a_copying_netem_beside_another_is_said() {
    let text = |near: &str, far: &str| {
        format!(
            "[up]\nclass = \"t.a\"\n{near}\n[links.x]\nclass = \"t.b\"\n{far}\n\
             [[rule]]\nmatch = {{ protocol = \"udp\" }}\nlink = \"x\"\n\
             [bottleneck.t]\nrate = \"8Mbit\"\nschedule = \"htb\"\n\
             [bottleneck.t.class.a]\nrate = \"1Mbit\"\n[bottleneck.t.class.b]\nrate = \"1Mbit\"\n"
        )
    };
    let copies = "duplicate = \"1%\"";
    let delay = "delay = \"5ms\"";
    for (near, far, said) in [
        (copies, delay, true),
        (delay, copies, true),
        (copies, copies, true),
        (copies, "", false),
        (delay, delay, false),
    ] {
        let exported = tc(&parse(&text(near, far)), ExportDirection::Up, "e").unwrap();
        let mut notes = exported.notes.iter();
        let found = notes.any(|note| note.contains("cannot mix duplicating netems"));
        assert_eq!(found, said, "{near} {far}: {:?}", exported.notes);
    }
}

#[test]
#[rustfmt::skip]
fn what_a_tree_cannot_do_is_listed() {
    let tree = "[bottleneck.t]\nrate = \"8Mbit\"\nschedule = \"htb\"\n[bottleneck.t.class.a]\nrate = \"1Mbit\"\n";
    let refused = |text: &str| match tc(&parse(text), ExportDirection::Up, "e") {
        Err(error @ ExportError::NoTree(_)) => {
            assert_eq!(error.exit_code(), 65);
            error.to_string()
        }
        other => panic!("{text}: {other:?}"),
    };
    for (rest, said) in [
        ("queue = { time = \"20ms\" }", "class `a`: `queue.time`"),
        ("queue = { limit = \"9p\", bytes = \"9000B\" }", "one limit"),
        ("priority = 8", "priority 8"),
        ("ceil = \"1000001bit\"", "ceil of class `a`: 1000001 bit/s"),
        ("[bottleneck.t.class.b]\nrate = \"1Mbit\"\nparent = \"c\"\n[bottleneck.t.class.c]\nrate = \"1Mbit\"\npriority = 1",
            "class `c`: htb has no priority"),
        ("[bottleneck.t.class.b]\nrate = \"1Mbit\"\n[bottleneck.t.class.c]\nparent = \"b\"", "class `c`: a class of htb has a `rate`"),
        ("[[rule]]\nlink = \"none\"", "rule 1: link = \"none\""),
        ("[links.x]\nclass = \"t.a\"\nrate = \"1Mbit\"\n[[rule]]\nmatch = { vlan = 5 }\nlink = \"x\"", "rule 1: `vlan`"),
        ("[[rule]]\nmatch = { protocol = \"udp\", source-port = \"5-9\" }\nclass = \"t.a\"", "has no range"),
        ("[[rule]]\nmatch = { mark = 5, protocol = \"udp\" }\nclass = \"t.a\"", "`mark`"),
        ("[links.x]\nclass = \"t.a\"\ndelay = \"5ms\"\n[[rule]]\nlink = \"x\"", "packets of different links"),
        ("[links.x]\nclass = \"t.a\"\ndelay = { mean = \"5ms\", jitter = \"1ms\" }", "keeps packets in order"),
        ("[links.x]\nclass = \"t.a\"\n[[rule]]\nlink = \"x\"\nper = \"flow\"", "`per`"),
        ("[[phase]]\ndelay = \"1ms\"", "[[phase]]"),
    ] {
        let text = format!("instances = 8\n[up]\nclass = \"t.a\"\n{tree}{rest}\n");
        let got = refused(&text);
        assert!(got.contains(said), "{rest}: {got}");
    }
    for (text, said) in [
        ("[up]\ndelay = \"5ms\"", "no packet of this direction waits"),
        ("[up]\nclass = \"t\"\n[bottleneck.t]\nrate = \"8Mbit\"", "schedule = \"fifo\""),
        ("[up]\nclass = \"t\"\n[bottleneck.t]\nrate = \"8Mbit\"\nschedule = \"htb\"", "has no classes"),
        ("[up]\nclass = \"t.a\"\n[bottleneck.t]\nrate = \"8Mbit\"\nschedule = \"drr\"\n[bottleneck.t.class.a]\n\
          parent = \"b\"\n[bottleneck.t.class.b]", "class `a`: `parent`: htb has no"),
    ] {
        let got = refused(text);
        assert!(got.contains(said), "{text}: {got}");
    }
    let direct = format!("[up]\ndelay = \"5ms\"\n{tree}[[rule]]\nmatch = {{ protocol = \"udp\" }}\nclass = \"t.a\"\n");
    assert!(refused(&direct).contains("wait in no class, but meet a link"));
}
