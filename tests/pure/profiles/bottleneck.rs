// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[bottleneck.NAME]` as it is written.

use emud::bottleneck::aqm::Choice;
use emud::bottleneck::{Class, Limits, Schedule, Signals};
use emud::profile::{Bottleneck, Profile, Queue, ServiceClass};
use proptest::prelude::*;

use super::mistakes::mistakes;
use super::{parse, set};

const TREE: &str = "\
[up]
class = \"uplink.rest\"

[links.near]
delay = \"50ms\"

[bottleneck.uplink]
rate = \"100Mbit\"
schedule = \"htb\"

[bottleneck.uplink.class.voice]
priority = 0
rate = \"1Mbit\"
ceil = \"2Mbit\"
parent = \"all\"
queue = \"50p\"

[bottleneck.uplink.class.all]
rate = \"90Mbit\"

[bottleneck.uplink.class.rest]
rate = \"10Mbit\"
priority = 3
queue = { bytes = \"64KiB\", time = \"20ms\" }

[bottleneck.hub]
rate = \"10Mbit\"
queue = \"200p\"

[[rule]]
match = { dscp = \"ef\" }
class = \"uplink.voice\"

[[rule]]
match = { protocol = \"udp\" }
link = \"near\"
class = \"hub\"
direction = \"down\"
";

#[test]
fn a_bottleneck_means_what_it_says() {
    let profile = parse(TREE);
    let [hub, uplink] = &profile.bottlenecks[..] else {
        panic!("{:?}", profile.bottlenecks);
    };
    let plan = uplink.plan();
    assert_eq!((plan.rate, plan.schedule), (100_000_000, Schedule::Htb));
    // A parent stands before its children.
    let packets = |packets| Limits {
        packets: Some(packets),
        ..Limits::default()
    };
    let want = [
        Class {
            rate: Some(90_000_000),
            limits: packets(1000),
            ..Class::default()
        },
        Class {
            priority: 3,
            rate: Some(10_000_000),
            limits: Limits {
                packets: None,
                bytes: Some(65536),
                time_ns: Some(20_000_000),
            },
            ..Class::default()
        },
        Class {
            parent: Some(0),
            rate: Some(1_000_000),
            ceil: Some(2_000_000),
            limits: packets(50),
            ..Class::default()
        },
    ];
    assert_eq!(plan.classes, want);
    assert_eq!(hub.plan().classes[0].limits, packets(200));
    let numbers = ["uplink.all", "uplink.voice", "uplink.rest", "hub", "x"];
    let numbers = numbers.map(|name| profile.service(name));
    assert_eq!(numbers, [Some(2), Some(4), Some(3), Some(1), None]);
    assert_eq!(profile.services(), 4);
    assert_eq!(profile.up.class.as_deref(), Some("uplink.rest"));
    assert_eq!(profile.rules[0].class.as_deref(), Some("uplink.voice"));
    // The first rule is for both directions.
    assert!(profile.joins_directions());
    assert_eq!(parse(&profile.to_toml()), profile);
}

#[test]
fn directions_are_joined_by_what_both_use() {
    let one = "[bottleneck.b]\nrate = \"1Mbit\"\n[bottleneck.c]\nrate = \"1Mbit\"\n";
    let joins = |links: &str| parse(&format!("{links}{one}")).joins_directions();
    assert!(joins("[link]\nclass = \"b\"\n"));
    assert!(!joins("[up]\nclass = \"b\"\n"));
    assert!(!joins("[up]\nclass = \"b\"\n[down]\nclass = \"c\"\n"));
}

fn complains(text: &str, wanted: &[&str]) {
    let found = mistakes(Profile::parse(text, "x.toml")).to_string();
    for part in wanted {
        assert!(found.contains(part), "{part:?} in:\n{found}");
    }
}

fn with(class: &str, schedule: &str) -> String {
    format!(
        "[link]\nclass = \"b.x\"\n[bottleneck.b]\nrate = \"1Mbit\"\nschedule = \"{schedule}\"\n\
         [bottleneck.b.class.x]\n{class}\n"
    )
}

#[test]
fn keys_without_effect_are_mistakes() {
    for (key, schedule) in [
        ("priority = 1", "fifo"),
        ("weight = 2", "fifo"),
        ("ceil = \"1Mbit\"", "fifo"),
        ("priority = 1", "drr"),
        ("rate = \"1Mbit\"", "drr"),
        ("rate = \"1Mbit\"", "priority"),
        ("rate = \"1Mbit\"\nweight = 2", "htb"),
    ] {
        let name = key.rsplit('\n').next().unwrap().split(' ').next().unwrap();
        let title = format!("`{name}` with schedule = \"{schedule}\"");
        complains(&with(key, schedule), &[&title, "it counts with"]);
    }
    complains(&with("", "htb"), &["the class `x` has no `rate`"]);
    // What no class guarantees is shared by those below one that has it.
    let below = |keys: &str, others: &str| {
        let class =
            format!("parent = \"p\"\n{keys}\n[bottleneck.b.class.p]\nrate = \"1Mbit\"\n{others}");
        with(&class, "htb")
    };
    let classes = parse(&below("weight = 3\npriority = 1", "")).bottlenecks[0].plan();
    assert_eq!(
        (classes.classes[1].rate, classes.classes[1].weight),
        (None, 3)
    );
    let beside = "[bottleneck.b.class.y]\nparent = \"p\"\nrate = \"1kbit\"";
    complains(
        &below("", beside),
        &["the class `x` has no `rate`", "all have a guaranteed"],
    );
    let lower = "[bottleneck.b.class.y]\nparent = \"x\"\nrate = \"1kbit\"";
    let inner = below("", lower).replace("b.x", "b.y");
    complains(&inner, &["a `rate` below the class `x`, which has none"]);
    let ceil = "rate = \"2Mbit\"\nceil = \"1Mbit\"";
    complains(&with(ceil, "htb"), &["`ceil` is below `rate`"]);
}

#[test]
fn names_are_those_of_something() {
    let two = "[bottleneck.b]\nrate = \"1Mbit\"\nschedule = \"drr\"\n[bottleneck.b.class.voice]\n\
               [bottleneck.b.class.bulk]\n";
    let link = |class: &str| format!("[link]\nclass = \"{class}\"\n{two}");
    complains(&link("c.voice"), &["there is no bottleneck `c`"]);
    complains(
        &link("b.voise"),
        &["no class `voise`", "did you mean `voice`?"],
    );
    complains(
        &link("b"),
        &["the bottleneck `b` has classes", "\"b.bulk\""],
    );
    complains(&link("b.c.d"), &["not a class of a bottleneck"]);
    let inner = format!("{}parent = \"voice\"\n", link("b.voice"));
    complains(&inner, &["the class `b.voice` has classes below it"]);
    let rule = format!(
        "{}[[rule]]\nclass = \"b.x\"\nlink = \"none\"\n",
        link("b.bulk")
    );
    complains(&rule, &["no class `x`", "`class` where `link` is \"none\""]);
    let unknown = format!("{}quantum = 3\n", link("b.bulk"));
    complains(&unknown, &["no key `quantum` of a class"]);
    complains("[link]\n[bottleneck.b]\n", &["a bottleneck without `rate`"]);
    complains(
        "[link]\n[bottleneck.\"b b\"]\nrate = \"1Mbit\"\n",
        &["not the name of a bottleneck"],
    );
    complains("bottleneck = 3\n[link]\n", &["`bottleneck` cannot be"]);
    for name in ["none", "b.class.none"] {
        let called = format!("[link]\n[bottleneck.b]\nrate = \"1Mbit\"\n[bottleneck.{name}]\n");
        complains(&called, &["cannot be called `none`"]);
    }
}

#[test]
fn classes_of_phases_and_states_are_those_of_something() {
    let tree = "[bottleneck.b]\nrate = \"1Mbit\"\nschedule = \"drr\"\n[bottleneck.b.class.top]\n\
                [bottleneck.b.class.bulk]\nparent = \"top\"\n[bottleneck.c]\nrate = \"1Mbit\"\n";
    let slot = "class = \"c\"\nslot = { min = \"1ms\", max = \"2ms\" }";
    for (keys, wanted) in [
        ("class = \"b.bulkk\"", "did you mean `bulk`?"),
        ("class = \"d\"", "there is no bottleneck `d`"),
        ("class = \"b.top\"", "the class `b.top` has classes below"),
        ("class = \"b\"", "the bottleneck `b` has classes"),
        (slot, "`slot` beside `class`"),
        ("down = { class = \"b\" }", "the bottleneck `b` has classes"),
    ] {
        for (kind, time) in [("phase", "for"), ("state", "dwell")] {
            let text = format!(
                "[link]\n{tree}[[{kind}]]\nname = \"one\"\n{time} = \"1s\"\n[[{kind}]]\n\
                 name = \"two\"\n{time} = \"1s\"\n{keys}\n"
            );
            complains(&text, &[wanted]);
        }
    }
    // A phase has the class of its link, whose mistake is said once.
    let wrong = "class = \"d\"\n";
    for (own, near) in [(wrong, ""), ("", wrong)] {
        let text = format!(
            "[link]\n{own}[links.near]\n{near}{tree}[[phase]]\nfor = \"1s\"\n[[phase]]\n\
             link = \"near\"\n"
        );
        let found = mistakes(Profile::parse(&text, "x.toml"));
        assert_eq!(found.iter().count(), 1, "{found}");
    }
    let valid = parse(&format!("[link]\n{tree}[[phase]]\nclass = \"b.bulk\"\n"));
    assert_eq!(valid.phases.list[0].up.class.as_deref(), Some("b.bulk"));
}

#[test]
fn a_tree_has_a_root_and_queues_at_its_leaves() {
    let tree = |rest: &str| {
        format!(
            "[link]\n[bottleneck.b]\nrate = \"1Mbit\"\nschedule = \"drr\"\n\
             [bottleneck.b.class.a]\n{rest}"
        )
    };
    let circle = "parent = \"c\"\n[bottleneck.b.class.c]\nparent = \"a\"\n";
    complains(&tree(circle), &["the class `a` is above itself"]);
    complains(
        &tree("parent = \"a\"\n"),
        &["the class `a` is above itself"],
    );
    complains(&tree("parent = \"d\"\n"), &["there is no class `d`"]);
    let queue = "queue = \"9p\"\n[bottleneck.b.class.c]\nparent = \"a\"\n";
    complains(
        &tree(queue),
        &["a `queue` of a class with classes below it"],
    );
    let beside = "[bottleneck.b]\nrate = \"1Mbit\"\nqueue = \"9p\"\n[bottleneck.b.class.c]\n";
    complains(&format!("[link]\n{beside}"), &["a `queue` beside classes"]);
    let mark = "queue = { limit = \"9p\", ecn = true }\n";
    complains(&tree(mark), &["`ecn = true` without `aqm`"]);
    let red = "queue = { aqm = \"red\" }\n";
    complains(&tree(red), &["aqm = \"red\" without `min` and `max`"]);
    complains(&tree("queue = \"100B\"\n"), &["smaller than one packet"]);
    let slot = "[up]\nclass = \"b\"\nslot = { min = \"1ms\", max = \"2ms\" }\n[bottleneck.b]\nrate = \"1Mbit\"\n";
    complains(slot, &["`slot` beside `class`"]);
}

#[test]
fn a_rule_puts_no_packets_of_a_link_with_slots_into_a_class() {
    let slot = "slot = { min = \"1ms\", max = \"2ms\" }";
    let text = |phases: &str, rule: &str| {
        format!(
            "[up]\n{slot}\n[links.near]\n[links.far]\ndown = {{ {slot} }}\n\
             [bottleneck.b]\nrate = \"1Mbit\"\n{phases}[[rule]]\nclass = \"b\"\n{rule}\n"
        )
    };
    for (rule, accepted) in [
        ("", false),
        ("direction = \"down\"", true),
        ("link = \"near\"", true),
        ("link = \"far\"", false),
        ("link = \"far\"\ndirection = \"up\"", true),
    ] {
        match accepted {
            true => drop(parse(&text("", rule))),
            false => complains(&text("", rule), &["`slot` beside `class`"]),
        }
    }
    let phases = format!("[[phase]]\n{slot}\n");
    let down = text(&phases, "direction = \"down\"");
    complains(&down, &["`slot` beside `class`"]);
}

#[test]
fn a_class_lets_in_the_packets_of_all_links_that_lead_there() {
    let text = |links: &str, bytes: u32| {
        format!("{links}\n[bottleneck.b]\nrate = \"1Mbit\"\nqueue = \"{bytes}B\"\n")
    };
    let rule = "[[rule]]\nclass = \"b\"\nlink = \"near\"\n";
    for (links, bytes) in [
        ("[up]\nclass = \"b\"\noverhead = 4\n".to_owned(), 1518),
        (
            "[up]\nclass = \"b\"\nrate = { rate = \"1Mbit\", mpu = 2000 }\n".to_owned(),
            2000,
        ),
        (
            "[up]\nclass = \"b\"\nrate = { rate = \"1Mbit\", cell = \"atm\" }\n".to_owned(),
            1696,
        ),
        (
            "[link]\nclass = \"b\"\n[[phase]]\noverhead = 24\n".to_owned(),
            1538,
        ),
        (
            format!("[up]\noverhead = 9\n[links.near]\noverhead = 8\n{rule}"),
            1522,
        ),
        (
            format!("[up]\nclass = \"b\"\noverhead = 3\n[links.near]\noverhead = 5\n{rule}"),
            1519,
        ),
    ] {
        let wanted = format!("write at least \"{bytes}B\"");
        let found = mistakes(Profile::parse(&text(&links, 1514), "x.toml"));
        assert_eq!(found.iter().count(), 1, "{found}");
        assert!(found.to_string().contains(&wanted), "{wanted} in:\n{found}");
        complains(&text(&links, bytes - 1), &[&wanted]);
        parse(&text(&links, bytes));
    }
    let valid = parse(&text("[up]\nclass = \"b\"\n", 1514));
    let error = set(&valid, &["up.overhead=8"]).unwrap_err().to_string();
    assert!(error.contains("\"1522B\""), "{error}");
}

#[test]
fn figures_are_set_and_the_tree_is_not() {
    let before = parse(TREE);
    let after = set(
        &before,
        &[
            "bottleneck.uplink.rate=50Mbit",
            "bottleneck.uplink.class.voice.ceil=none",
            "bottleneck.uplink.class.rest.queue.time=5ms",
            "bottleneck.uplink.class.voice.queue.aqm=codel",
            "bottleneck.uplink.class.voice.queue.target=7ms",
            "bottleneck.hub.queue.ecn=3ms",
            "up.class=hub",
        ],
    );
    let after: Profile = after.unwrap();
    let plan = after.bottlenecks[1].plan();
    assert_eq!((plan.rate, plan.classes[2].ceil), (50_000_000, None));
    assert_eq!(plan.classes[1].limits.time_ns, Some(5_000_000));
    assert_eq!(plan.classes[1].limits.bytes, Some(65536));
    let Signals::Managed {
        by: Choice::CoDel(codel),
        marks: false,
    } = plan.classes[2].signals
    else {
        panic!("{:?}", plan.classes[2]);
    };
    assert_eq!(codel.target_ns, 7_000_000);
    let hub = after.bottlenecks[0].plan();
    assert_eq!(hub.classes[0].signals, Signals::MarkAbove(3_000_000));
    assert_eq!(after.up.class.as_deref(), Some("hub"));
    let tree = |b: &Bottleneck| {
        let class = |c: &ServiceClass| (c.name.clone(), c.parent.clone());
        let classes: Vec<_> = b.classes.iter().map(class).collect();
        (b.name.clone(), classes)
    };
    assert_eq!(tree(&after.bottlenecks[1]), tree(&before.bottlenecks[1]));
    for (wrong, wanted) in [
        (
            "bottleneck.uplink.class.voice.parent=none",
            "`parent` cannot be set",
        ),
        (
            "bottleneck.downlink.rate=1Mbit",
            "there is no bottleneck `downlink`",
        ),
        (
            "bottleneck.uplink.class.x.ceil=1Mbit",
            "there is no class `x`",
        ),
        ("bottleneck.uplink=1", "there is no key to be set"),
        (
            "bottleneck.uplink.class.voice=1",
            "there is no key to be set",
        ),
        (
            "bottleneck.uplink.class.voice.weight=3",
            "`weight` with schedule",
        ),
        ("bottleneck.uplink.rate=none", "a bottleneck without `rate`"),
    ] {
        let error = set(&before, &[wrong]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{wrong}: {error}");
    }
}

/// Lengths in time are those of what a class gets beside busy ones.
#[test]
fn managers_count_time_in_the_share_of_a_class() {
    let target = |schedule: &str, classes: &str| {
        let text = format!(
            "[link]\nclass = \"b.x\"\n[bottleneck.b]\nrate = \"8Mbit\"\n\
             schedule = \"{schedule}\"\n{classes}"
        );
        let profile = parse(&text);
        assert_eq!(parse(&profile.to_toml()), profile);
        let plan = profile.bottlenecks[0].plan();
        let managed = plan.classes.iter().find_map(|class| match class.signals {
            Signals::Managed {
                by: Choice::Pi(pi),
                marks: true,
            } => Some(pi.target),
            _ => None,
        });
        managed.expect("a manager")
    };
    // 10 ms at 8 Mbit/s are 10 kB.
    let x = "[bottleneck.b.class.x]\nqueue = { aqm = \"pi\", target = \"10ms\", ecn = true }\n";
    let y = "[bottleneck.b.class.y]\n";
    assert_eq!(target("fifo", &format!("{x}{y}")), 10_000);
    assert_eq!(target("drr", &format!("{x}{y}weight = 3\n")), 2_500);
    assert_eq!(target("priority", &format!("{x}{y}")), 5_000);
    assert_eq!(target("priority", &format!("{x}{y}priority = 1\n")), 10_000);
    let slow = format!("{x}ceil = \"4Mbit\"\n{y}priority = 1\n");
    assert_eq!(target("priority", &slow), 5_000);
    let tree = format!("{y}weight = 3\n{x}parent = \"z\"\n[bottleneck.b.class.z]\n");
    assert_eq!(target("drr", &tree), 2_500);
    let htb = format!("{x}rate = \"1Mbit\"\n{y}rate = \"7Mbit\"\n");
    assert_eq!(target("htb", &htb), 1_250);
}

/// Flat ones, of any schedule.
pub fn bottlenecks() -> impl Strategy<Value = Option<Bottleneck>> {
    let schedules = [
        Schedule::Fifo,
        Schedule::Priority,
        Schedule::Drr,
        Schedule::Htb,
    ];
    let rates = 1..=1_000_000_000_000u64;
    let class = (0..=255u32, 1..=1_000_000u32, rates.clone(), 0..4u32);
    let classes = prop::collection::btree_map("[a-zA-Z0-9_-]{1,32}", class, 0..4);
    let schedules = prop::sample::select(schedules.to_vec());
    prop::option::of(
        (schedules, rates, classes).prop_map(|(schedule, rate, classes)| {
            let at = |wanted: &[Schedule]| wanted.contains(&schedule);
            let class = |(name, (priority, weight, rate, times))| ServiceClass {
                name,
                priority: if at(&[Schedule::Priority, Schedule::Htb]) {
                    priority
                } else {
                    0
                },
                weight: if at(&[Schedule::Priority, Schedule::Drr]) {
                    weight
                } else {
                    1
                },
                rate: at(&[Schedule::Htb]).then_some(rate),
                ceil: (times > 0 && !at(&[Schedule::Fifo]))
                    .then_some((rate * u64::from(times)).min(1_000_000_000_000)),
                parent: None,
                queue: Queue {
                    packets: (times > 1).then_some(times),
                    ..Queue::default()
                },
            };
            Bottleneck {
                name: "one".to_owned(),
                rate: Some(rate),
                schedule,
                queue: Queue::default(),
                classes: classes.into_iter().map(class).collect(),
            }
        }),
    )
}
