// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rate` and `queue` as tables.

use emud::profile::{
    Aqm, Ared, Cells, CoDel, Length, Limit, Pi, Pie, Profile, Queue, Red, Rem, Rio, Wire,
};
use proptest::prelude::*;

use super::mistakes::mistakes;
use super::{parse, set};
use crate::case::Case;

const MS: u64 = 1_000_000;

fn queue(value: &str) -> Queue {
    parse(&format!("[up]\nqueue = {value}")).up.queue
}

/// One value describes what happens anyway, the other is not built.
#[test]
fn a_full_queue_drops() {
    let with = |full: &str| format!("[up]\nqueue = {{ limit = \"9p\", full = {full} }}\n");
    let nine = Queue {
        packets: Some(9),
        ..Queue::default()
    };
    assert_eq!(parse(&with("\"drop\"")).up.queue, nine);
    let found = mistakes(Profile::parse(&with("\"block\""), "x.toml")).to_string();
    for part in [
        "`full = \"block\"` of a link\n --> x.toml:2:32",
        "docs/queues.md#senders-that-wait",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let found = mistakes(Profile::parse(&with("1"), "x.toml")).to_string();
    assert!(found.contains("`full` is \"drop\" or \"block\""), "{found}");
}

#[test]
fn a_full_class_may_hold_its_senders() {
    let with = |queue: &str| {
        format!(
            "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\nqueue = {{ {queue}, full = \"block\" }}\n"
        )
    };
    let profile = parse(&with("limit = \"9p\""));
    let queue = profile.bottlenecks[0].queue;
    assert!(queue.blocks && profile.blocks());
    assert_eq!(queue.to_string(), "{ limit = \"9p\", full = \"block\" }");
    assert_eq!(parse(&profile.to_toml()), profile);
    let changed = |set: &str| profile.with_changes(&[set.to_owned()]).unwrap();
    assert!(!changed("bottleneck.b.queue.full=drop").blocks());
    assert!(!changed("bottleneck.b.queue.full=none").blocks());
    assert!(changed("bottleneck.b.queue.limit=20p").blocks());
    for (queue, beside) in [
        ("time = \"9ms\"", "a limit in time"),
        ("limit = \"9p\", ecn = \"1ms\"", "`ecn`"),
        ("aqm = \"codel\"", "`aqm`"),
    ] {
        let found = mistakes(Profile::parse(&with(queue), "x.toml")).to_string();
        let title = format!("`full = \"block\"` beside {beside}");
        assert!(found.contains(&title), "{found}");
    }
}

#[test]
fn a_rate_may_be_a_table() {
    let text = r#"
        [link]
        rate = { rate = "10Mbit", burst = "32kB", overhead = 18, mpu = 64, cell = "atm" }
        [up]
        rate = "2Mbit"
        [down]
        rate = { cell = { size = 100, overhead = -3 }, burst = "none" }
    "#;
    let profile = parse(text);
    let wire = Wire {
        burst: Some(32_000),
        mpu: 64,
        cells: Some(Cells::Atm),
    };
    let (up, down) = (&profile.up, &profile.down);
    assert_eq!((up.rate, up.overhead, up.wire), (Some(2_000_000), 18, wire));
    let cells = Some(Cells::Of {
        size: 100,
        overhead: -3,
    });
    assert_eq!(
        (down.rate, down.wire),
        (
            Some(10_000_000),
            Wire {
                burst: None,
                cells,
                ..wire
            }
        )
    );
    assert_eq!(parse(&profile.to_toml()).down, *down);
    let ptm = set(
        &profile,
        &["rate.cell=ptm", "up.rate.mpu=0", "down.overhead=4"],
    )
    .unwrap();
    assert_eq!((ptm.up.wire.cells, ptm.up.wire.mpu), (Some(Cells::Ptm), 0));
    assert_eq!((ptm.down.wire.mpu, ptm.down.overhead), (64, 4));
    let none = set(&profile, &["rate=none"]).unwrap();
    assert_eq!((none.up.rate, none.up.wire), (None, Wire::default()));
}

#[test]
fn bytes_on_the_wire_are_as_tc_has_them() {
    let cells = |cells| Wire {
        cells: Some(cells),
        ..Wire::default()
    };
    for (wire, len, overhead, want) in [
        (Wire::default(), 100, -10, 90),
        (Wire::default(), 10, -20, 0),
        (cells(Cells::Atm), 100, 0, 159),
        (cells(Cells::Atm), 50, 0, 106),
        (cells(Cells::Ptm), 1514, 0, 1538),
        (
            Wire {
                mpu: 64,
                ..cells(Cells::Atm)
            },
            40,
            5,
            106,
        ),
    ] {
        assert_eq!(wire.bytes(len, overhead), want, "{wire:?} {len} {overhead}");
    }
}

#[test]
fn a_queue_may_be_a_table() {
    assert_eq!(
        queue(r#"{ limit = "50p", bytes = "64kB", time = "200ms", ecn = "20ms" }"#),
        Queue {
            blocks: false,
            packets: Some(50),
            bytes: Some(64_000),
            time_ns: Some(200 * MS),
            ecn_above_ns: Some(20 * MS),
            aqm: None,
        }
    );
    assert_eq!(queue(r#"{ limit = "50p" }"#), Limit::Packets(50).into());
    assert_eq!(queue(r#"{ ecn = false }"#), Queue::default());
    let aqm = |value| queue(value).aqm.unwrap();
    let usual = CoDel {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        ecn: false,
    };
    assert_eq!(aqm(r#"{ aqm = "codel" }"#), Aqm::CoDel(usual));
    assert_eq!(
        aqm(r#"{ aqm = "codel", target = "10ms", interval = "200ms", ecn = true }"#),
        Aqm::CoDel(CoDel {
            target_ns: 10 * MS,
            interval_ns: 200 * MS,
            ecn: true
        })
    );
    assert_eq!(
        aqm(r#"{ aqm = "red", min = "30kB", max = "90kB" }"#),
        Aqm::Red(Red {
            min: Length::Bytes(30_000),
            max: Length::Bytes(90_000),
            probability: 0.02,
            weight: 0.002,
            ecn: false
        })
    );
    assert_eq!(
        aqm(r#"{ aqm = "red", min = "5ms", max = "15ms", probability = "10%", weight = 0.5 }"#),
        Aqm::Red(Red {
            min: Length::Time(5 * MS),
            max: Length::Time(15 * MS),
            probability: 0.1,
            weight: 0.5,
            ecn: false
        })
    );
    let pie = Pie {
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 0.125,
        beta: 1.25,
        ecn: false,
    };
    assert_eq!(aqm(r#"{ aqm = "pie" }"#), Aqm::Pie(pie));
    assert_eq!(
        aqm(
            r#"{ aqm = "pie", target = "20ms", tupdate = "30ms", alpha = 0.25, beta = 2, ecn = true }"#
        ),
        Aqm::Pie(Pie {
            target_ns: 20 * MS,
            tupdate_ns: 30 * MS,
            alpha: 0.25,
            beta: 2.0,
            ecn: true
        })
    );
}

#[test]
fn managers_of_ns_2_have_its_defaults() {
    let aqm = |value: &str| queue(value).aqm.unwrap();
    let ared = Ared {
        target: Length::Time(5 * MS),
        weight: None,
        probability: 0.1,
        interval_ns: 500 * MS,
        alpha: 0.01,
        beta: 0.9,
        ecn: false,
    };
    assert_eq!(aqm(r#"{ aqm = "ared" }"#), Aqm::Ared(ared));
    assert_eq!(
        aqm(r#"{ aqm = "ared", target = "200kB", weight = 0.01, beta = 0.5, ecn = true }"#),
        Aqm::Ared(Ared {
            target: Length::Bytes(200_000),
            weight: Some(0.01),
            beta: 0.5,
            ecn: true,
            ..ared
        })
    );
    let pi = Pi {
        target: Length::Bytes(50_000),
        tupdate_ns: 5_882_353,
        a: 1.822e-5,
        b: 1.816e-5,
        ecn: false,
    };
    assert_eq!(aqm(r#"{ aqm = "pi" }"#), Aqm::Pi(pi));
    let rem = Rem {
        target: Length::Bytes(20_000),
        tupdate_ns: 2 * MS,
        gamma: 0.001,
        alpha: 0.1,
        phi: 1.001,
        ecn: false,
    };
    assert_eq!(aqm(r#"{ aqm = "rem" }"#), Aqm::Rem(rem));
    let rio = Rio {
        min: Length::Bytes(50_000),
        max: Length::Bytes(150_000),
        probability: 0.1,
        assured_min: Length::Time(50 * MS),
        assured_max: Length::Time(150 * MS),
        assured_probability: 0.02,
        assured: 1 << 10 | 1 << 18 | 1 << 26 | 1 << 34,
        weight: 0.002,
        ecn: false,
    };
    let text =
        r#"aqm = "rio", min = "50kB", max = "150kB", assured-min = "50ms", assured-max = "150ms""#;
    let with = |more: &str| format!("{{ {text}, {more} }}");
    assert_eq!(aqm(&with("weight = 0.002")), Aqm::Rio(rio));
    let ef = Rio {
        assured: 1 << 46 | 1,
        ..rio
    };
    assert_eq!(aqm(&with("assured = [46, 0]")), Aqm::Rio(ef));
    let profile = parse(&format!("[link]\nqueue = {}", with("ecn = true")));
    let changed = set(&profile, &["up.queue.assured=0 46"]).unwrap();
    assert_eq!(
        changed.up.queue.aqm,
        Some(Aqm::Rio(Rio { ecn: true, ..ef }))
    );
}

#[test]
fn tables_merge_key_by_key() {
    let profile = parse(
        r#"
        [link]
        queue = { limit = "50p", aqm = "codel", target = "10ms", ecn = true }
        [up]
        queue = { time = "100ms", aqm = "codel", interval = "50ms" }
        [down]
        queue = { aqm = "pie", target = "20ms" }
    "#,
    );
    let codel = CoDel {
        target_ns: 10 * MS,
        interval_ns: 50 * MS,
        ecn: true,
    };
    assert_eq!(
        profile.up.queue,
        Queue {
            packets: Some(50),
            time_ns: Some(100 * MS),
            aqm: Some(Aqm::CoDel(codel)),
            ..Queue::default()
        }
    );
    // A different manager has neither the first one's target nor its ecn.
    let Some(Aqm::Pie(pie)) = profile.down.queue.aqm else {
        panic!("{:?}", profile.down.queue);
    };
    assert_eq!((pie.target_ns, pie.ecn), (20 * MS, false));
    let changed = set(
        &profile,
        &[
            "up.queue.ecn=false",
            "up.queue.limit=none",
            "down.queue=20p",
        ],
    )
    .unwrap();
    assert_eq!(changed.up.queue.packets, None);
    assert_eq!(
        changed.up.queue.aqm,
        Some(Aqm::CoDel(CoDel {
            ecn: false,
            ..codel
        }))
    );
    assert_eq!(changed.down.queue, Limit::Packets(20).into());
    let without = set(&profile, &["up.queue.aqm=none", "up.queue.ecn=30ms"]).unwrap();
    assert_eq!(
        (without.up.queue.aqm, without.up.queue.ecn_above_ns),
        (None, Some(30 * MS))
    );
}

/// A line of [up], the text underlined in it, and parts of title and help.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("rate = { rat = \"5Mbit\" }", "rat", "no key `rat` of a rate", "did you mean `rate`?"),
    ("rate = { rate = \"5Mbit\", burst = \"5p\" }", "\"5p\"", "not a number of bytes", "\"32kB\""),
    ("rate = { rate = \"5Mbit\", burst = 5 }", "5", "no unit", ""),
    ("rate = { rate = \"5Mbit\", mpu = 5000 }", "5000", "out of range", "0 to 4096"),
    ("rate = { rate = \"5Mbit\", mpu = 1.5 }", "1.5", "not a whole number", "0 to 4096"),
    ("rate = { rate = \"5Mbit\", mpu = \"x\" }", "\"x\"", "not a plain number", "0 to 4096"),
    ("rate = { rate = \"5Mbit\", cell = \"adsl\" }", "\"adsl\"", "cannot be `adsl`", "\"atm\""),
    ("rate = { rate = \"5Mbit\", cell = 48 }", "48", "cannot be a number", "\"atm\""),
    ("rate = { rate = \"5Mbit\", cell = { overhead = 5 } }", "{ overhead = 5 }", "without `size`", "size = 48"),
    ("rate = { rate = \"5Mbit\", cell = { size = 48, overhead = -48 } }", "-48", "out of range", "from -47 to 255"),
    ("rate = { rate = \"5Mbit\", cell = { size = 48, padding = 1 } }", "padding", "no key `padding` of a cell", "size, overhead"),
    ("rate = { rate = \"1Mbit\", overhead = 40 }\noverhead = 18", "overhead", "given twice", "keep one"),
    ("rate = { burst = \"5kB\" }", "\"5kB\"", "`burst` without `rate`", "give `rate`"),
    ("queue = { limit = \"5ms\" }", "\"5ms\"", "not a number of packets", "time = \"5ms\""),
    ("queue = { limit = \"5kB\" }", "\"5kB\"", "not a number of packets", "bytes = \"5kB\""),
    ("queue = { time = \"0ms\" }", "\"0ms\"", "a queue with time 0", "\"1p\""),
    ("queue = { bytes = \"1500B\" }", "\"1500B\"", "smaller than one packet", "\"1514B\""),
    ("queue = { ecn = true }", "true", "without `aqm`", "ecn = \"20ms\""),
    ("queue = { ecn = 20 }", "20", "no unit", "\"20ms\""),
    ("queue = { aqm = \"codel\", ecn = \"20ms\" }", "\"20ms\"", "threshold beside `aqm`", "ecn = true"),
    ("queue = { aqm = \"fq_codel\" }", "\"fq_codel\"", "cannot be `fq_codel`", "\"codel\""),
    ("queue = { target = \"5ms\" }", "\"5ms\"", "`target` without `aqm`", "\"pie\""),
    ("queue = { aqm = \"codel\", min = \"5ms\" }", "\"5ms\"", "does not go with aqm = \"codel\"", "target, interval, ecn"),
    ("queue = { aqm = \"codel\", target = \"0ms\" }", "\"0ms\"", "`target` is zero", "leave it out"),
    ("queue = { aqm = \"red\" }", "\"red\"", "without `min` and `max`", "min = \"30kB\""),
    ("queue = { aqm = \"red\", min = \"5p\", max = \"90kB\" }", "\"5p\"", "counts packets", "\"7570B\""),
    ("queue = { aqm = \"red\", min = \"5ms\", max = \"90kB\" }", "\"90kB\"", "different units", "both as times"),
    ("queue = { aqm = \"red\", min = \"5ms\", max = \"5ms\" }", "\"5ms\"", "not above `min`", "at least twice"),
    ("queue = { aqm = \"red\", min = \"5ms\", max = \"9ms\", weight = 0 }", "0", "out of range", "above 0"),
    ("queue = { aqm = \"red\", min = \"5ms\", max = \"9ms\", weight = nan }", "nan", "out of range", "above 0"),
    ("queue = { aqm = \"rio\", min = \"5ms\", max = \"9ms\" }", "\"rio\"", "without `assured-min` and `assured-max`", "assured-min = \"30kB\""),
    ("queue = { aqm = \"rio\", min = \"5ms\", max = \"9ms\", assured-min = \"5ms\", assured-max = \"5ms\" }", "\"5ms\"", "not above `assured-min`", "at least twice"),
    ("queue = { aqm = \"rio\", min = \"5ms\", max = \"9ms\", assured-min = \"5ms\", assured-max = \"9ms\", assured = [64] }", "[64]", "0 to 63", "[10, 18]"),
    ("queue = { aqm = \"pi\", a = 1e-5, b = 2e-5 }", "2e-5", "above `a`", "never fall"),
    ("queue = { aqm = \"pi\", target = \"9s\" }", "\"9s\"", "too long for pi", "\"8s\""),
    ("queue = { aqm = \"pi\" }\nrate = \"40kbit\"", "\"pi\"", "50000 bytes is too long for pi at this rate", "target = \"40000B\""),
    ("queue = { aqm = \"rem\", target = \"20001B\" }\nrate = \"20kbit\"", "\"rem\"", "20001 bytes is too long for rem", "20000 bytes"),
    ("queue = { aqm = \"rem\", phi = 1 }", "1", "out of range", "phi = 1.001"),
    ("queue = { aqm = \"ared\", min = \"5ms\" }", "\"5ms\"", "does not go with aqm = \"ared\"", "target, weight"),
    ("queue = { aqm = \"pie\", target = \"9s\" }", "\"9s\"", "too long for pie", "\"8s\""),
    ("queue = { aqm = \"pie\", alpha = 11 }", "11", "out of range", "0 to 10"),
    ("queue = { aqm = \"pie\", beta = true }", "true", "cannot be true or false", "0 to 10"),
    ("queue = { lenght = \"5p\" }", "lenght", "no key `lenght` of a queue", "the keys are limit"),
];

#[test]
fn mistakes_are_shown_where_they_are() {
    for (line, underlined, title, help) in MISTAKES {
        let found = mistakes(Profile::parse(&format!("[up]\n{line}\n"), "x.toml"));
        assert_eq!(Case(line, 2, underlined, title, help).differs(&found), None);
    }
}

pub fn wires() -> impl Strategy<Value = Wire> {
    let cells = prop_oneof![
        Just(None),
        Just(Some(Cells::Atm)),
        Just(Some(Cells::Ptm)),
        (1..=65_535u32).prop_flat_map(|size| {
            let least = 1 - i32::try_from(size).unwrap();
            (least..=255).prop_map(move |overhead| match (size, overhead) {
                (48, 5) => Some(Cells::Atm),
                _ => Some(Cells::Of { size, overhead }),
            })
        }),
    ];
    let burst = prop::option::of(1..=u64::from(u32::MAX));
    (burst, 0..=4096u32, cells).prop_map(|(burst, mpu, cells)| Wire { burst, mpu, cells })
}

const HOUR_NS: u64 = 3_600_000_000_000;

fn managers() -> impl Strategy<Value = Aqm> {
    let lengths =
        |from: u64, to: u64| (from..to).prop_flat_map(move |min| (Just(min), min + 1..=to));
    let red = (
        prop_oneof![
            lengths(1, u32::MAX.into()).prop_map(|(a, b)| (Length::Bytes(a), Length::Bytes(b))),
            lengths(1, HOUR_NS).prop_map(|(a, b)| (Length::Time(a), Length::Time(b))),
        ],
        0.0..=1.0f64,
        1e-9..=1.0f64,
        any::<bool>(),
    )
        .prop_map(|((min, max), probability, weight, ecn)| {
            Aqm::Red(Red {
                min,
                max,
                probability,
                weight,
                ecn,
            })
        });
    let codel =
        (1..=HOUR_NS, 1..=HOUR_NS, any::<bool>()).prop_map(|(target_ns, interval_ns, ecn)| {
            Aqm::CoDel(CoDel {
                target_ns,
                interval_ns,
                ecn,
            })
        });
    let gain = || prop_oneof![Just(0.0), Just(10.0), 0.0..=10.0f64];
    let pie = (
        1..=8_000_000_000u64,
        1..=HOUR_NS,
        gain(),
        gain(),
        any::<bool>(),
    )
        .prop_map(|(target_ns, tupdate_ns, alpha, beta, ecn)| {
            Aqm::Pie(Pie {
                target_ns,
                tupdate_ns,
                alpha,
                beta,
                ecn,
            })
        });
    let length = || {
        prop_oneof![
            (1..=u64::from(u32::MAX)).prop_map(Length::Bytes),
            (1..=8_000_000_000u64).prop_map(Length::Time),
        ]
    };
    let weight = || 1e-9..=1.0f64;
    let ared = (
        length(),
        prop::option::of(weight()),
        0.0..=1.0f64,
        (1..=HOUR_NS, weight(), weight()),
        any::<bool>(),
    )
        .prop_map(
            |(target, weight, probability, (interval_ns, alpha, beta), ecn)| {
                Aqm::Ared(Ared {
                    target,
                    weight,
                    probability,
                    interval_ns,
                    alpha,
                    beta,
                    ecn,
                })
            },
        );
    let thresholds = || lengths(1, HOUR_NS).prop_map(|(a, b)| (Length::Time(a), Length::Time(b)));
    let rio = (
        thresholds(),
        thresholds(),
        (0.0..=1.0f64, 0.0..=1.0f64),
        (any::<u64>(), weight()),
        any::<bool>(),
    )
        .prop_map(
            |((min, max), assured, probabilities, (codes, weight), ecn)| {
                Aqm::Rio(Rio {
                    min,
                    max,
                    probability: probabilities.0,
                    assured_min: assured.0,
                    assured_max: assured.1,
                    assured_probability: probabilities.1,
                    assured: codes,
                    weight,
                    ecn,
                })
            },
        );
    let pi = (length(), 1..=HOUR_NS, (weight(), weight()), any::<bool>()).prop_map(
        |(target, tupdate_ns, (a, b), ecn)| {
            Aqm::Pi(Pi {
                target,
                tupdate_ns,
                a: a.max(b),
                b: a.min(b),
                ecn,
            })
        },
    );
    let rem = (
        length(),
        1..=HOUR_NS,
        (weight(), weight(), 1.000_001..=2.0f64),
        any::<bool>(),
    )
        .prop_map(|(target, tupdate_ns, (gamma, alpha, phi), ecn)| {
            Aqm::Rem(Rem {
                target,
                tupdate_ns,
                gamma,
                alpha,
                phi,
                ecn,
            })
        });
    prop_oneof![red, codel, pie, ared, rio, pi, rem]
}

/// Queues whose limit in bytes holds a packet of `packet` bytes.
pub fn queues(packet: u64) -> impl Strategy<Value = Queue> {
    let bytes = packet.min(u32::MAX.into())..=u32::MAX.into();
    (
        prop::option::of(1..=65_536u32),
        prop::option::of(bytes),
        prop::option::of(1..=HOUR_NS),
        prop::option::of(0..=HOUR_NS),
        prop::option::of(managers()),
    )
        .prop_map(|(packets, bytes, time_ns, ecn_above_ns, aqm)| Queue {
            blocks: false,
            packets,
            bytes,
            time_ns,
            ecn_above_ns: ecn_above_ns.filter(|_| aqm.is_none()),
            aqm,
        })
}
