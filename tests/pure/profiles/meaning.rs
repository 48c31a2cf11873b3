// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of the keys.

use emud::profile::{
    Delay, Distribution, Jitter, Limit, Link, Neighbours, Offload, Profile, Queue, Reorder, Wire,
    shipped,
};

use super::{parse, set};

fn jitter(sd_ns: f64, distribution: Distribution) -> Jitter {
    Jitter {
        sd_ns,
        distribution: distribution.into(),
        ..Jitter::default()
    }
}

const MS: u64 = 1_000_000;

#[test]
fn every_key_arrives_where_it_belongs() {
    let profile = parse(
        r#"
        name = "all"
        description = "every key"
        source = "nowhere"
        seed = 18446744073709551615
        offload = "keep"
        neighbours = "emulate"
        [link]
        rate = "1.5Mbit"
        overhead = -4
        queue = "256KiB"
        delay = { mean = "50ms", jitter = "5ms", distribution = "normal", reorder = "jitter", coherence = "80ms" }
        loss = "0.5%"
        "#,
    );
    let jitter = Jitter {
        sd_ns: 5e6,
        distribution: Distribution::Normal.into(),
        reorder: Reorder::Jitter,
        coherence_ns: Some(80 * MS),
        ..Jitter::default()
    };
    let link = Link {
        rate: Some(1_500_000),
        overhead: -4,
        wire: Wire::default(),
        queue: Limit::Bytes(256 * 1024).into(),
        delay: Delay {
            mean_ns: 50 * MS,
            jitter: Some(jitter),
            ..Delay::default()
        },
        loss: 0.005.into(),
        neighbours: Neighbours::Emulate,
        ..Link::default()
    };
    let expected = Profile {
        name: "all".into(),
        description: "every key".into(),
        source: "nowhere".into(),
        seed: Some(u64::MAX),
        offload: Offload::Keep,
        up: link.clone(),
        down: link,
        links: vec![],
        bottlenecks: vec![],
        rules: vec![],
        instances: 4096,
        matrix: None,
        phases: emud::profile::Phases::default(),
    };
    assert_eq!(profile, expected);
    assert_eq!(parse("[link]\noffload = \"keep\"").offload, Offload::Keep);
}

#[test]
fn units() {
    #[rustfmt::skip]
    let rates = [
        ("384kbit", 384_000), ("384KBIT", 384_000), ("1.5Mbit", 1_500_000), ("10 Gbit", 10_000_000_000),
        ("1tbit", 1_000_000_000_000), ("1Kibit", 1024), ("1mibit", 1 << 20), ("2Gibit", 2 << 30),
        ("1e3bit", 1000), ("0.3333kbit", 333), ("1bit", 1),
    ];
    for (text, bits) in rates {
        assert_eq!(
            parse(&format!("[up]\nrate = \"{text}\"")).up.rate,
            Some(bits),
            "{text}"
        );
    }
    #[rustfmt::skip]
    let delays = [
        ("50ms", 50 * MS), ("0.5ms", MS / 2), ("800us", 800_000), ("800\u{b5}s", 800_000),
        ("800\u{3bc}s", 800_000), ("7ns", 7), ("1.2s", 1200 * MS), ("2min", 120_000 * MS), ("0ms", 0),
    ];
    for (text, ns) in delays {
        let delay = parse(&format!("[up]\ndelay = \"{text}\"")).up.delay;
        assert_eq!(
            delay,
            Delay {
                mean_ns: ns,
                ..Delay::default()
            },
            "{text}"
        );
    }
    #[rustfmt::skip]
    let queues = [
        ("1000p", Limit::Packets(1000)), ("1 packet", Limit::Packets(1)), ("65536 packets", Limit::Packets(65536)),
        ("1514B", Limit::Bytes(1514)), ("64kB", Limit::Bytes(64_000)), ("1MB", Limit::Bytes(1_000_000)),
        ("2MiB", Limit::Bytes(2 << 20)), ("200ms", Limit::Time(200 * MS)),
    ];
    for (text, queue) in queues {
        assert_eq!(
            parse(&format!("[up]\nqueue = \"{text}\"")).up.queue,
            queue.into(),
            "{text}"
        );
    }
    for (text, loss) in [
        ("\"0.5%\"", 0.005),
        ("\"100%\"", 1.0),
        ("0", 0.0),
        ("0.0", 0.0),
        ("\"0\"", 0.0),
    ] {
        assert_eq!(
            parse(&format!("[up]\nloss = {text}")).up.loss,
            loss.into(),
            "{text}"
        );
    }
}

#[test]
fn spreads() {
    let delay = |text: &str| {
        parse(&format!("[up]\ndelay = {{ mean = \"50ms\", {text} }}"))
            .up
            .delay
    };
    let half = 10e6 / 3f64.sqrt();
    for (text, expected) in [
        (
            "jitter = \"10ms\"",
            Some(jitter(half, Distribution::Uniform)),
        ),
        (
            "jitter = \"10ms\", distribution = \"normal\"",
            Some(jitter(1e7, Distribution::Normal)),
        ),
        (
            "jitter = \"10ms\", distribution = \"pareto\"",
            Some(jitter(1e7, Distribution::Pareto)),
        ),
        ("sd = \"10ms\"", Some(jitter(1e7, Distribution::Normal))),
        (
            "sd = \"10ms\", distribution = \"uniform\"",
            Some(jitter(1e7, Distribution::Uniform)),
        ),
        ("jitter = \"0ms\"", None),
        (
            "jitter = \"50ms\"",
            Some(jitter(50e6 / 3f64.sqrt(), Distribution::Uniform)),
        ),
    ] {
        assert_eq!(
            delay(text),
            Delay {
                mean_ns: 50 * MS,
                jitter: expected,
                ..Delay::default()
            },
            "{text}"
        );
    }
}

#[test]
fn directions_override_key_by_key() {
    let profile = parse(
        r#"
        neighbours = "emulate"
        [link]
        rate = "10Mbit"
        queue = "50p"
        delay = { mean = "50ms", jitter = "5ms", reorder = "jitter" }
        loss = "1%"
        [up]
        rate = "1Mbit"
        delay = { sd = "2ms" }
        neighbours = "pass"
        [down]
        queue = "none"
        delay = "20ms"
        loss = 0
        "#,
    );
    assert_eq!(
        (profile.up.rate, profile.down.rate),
        (Some(1_000_000), Some(10_000_000))
    );
    assert_eq!(
        (profile.up.queue, profile.down.queue),
        (Queue::from(Limit::Packets(50)), Queue::default())
    );
    assert_eq!(
        (profile.up.loss, profile.down.loss),
        (0.01.into(), 0.0.into())
    );
    assert_eq!(profile.up.neighbours, Neighbours::Pass);
    assert_eq!(profile.down.neighbours, Neighbours::Emulate);
    // sd replaces jitter, mean and reorder stay; a plain delay replaces all of it.
    let up = Jitter {
        reorder: Reorder::Jitter,
        ..jitter(2e6, Distribution::Normal)
    };
    assert_eq!(
        profile.up.delay,
        Delay {
            mean_ns: 50 * MS,
            jitter: Some(up),
            ..Delay::default()
        }
    );
    assert_eq!(
        profile.down.delay,
        Delay {
            mean_ns: 20 * MS,
            ..Delay::default()
        }
    );
    // The mean may come from one table and the jitter from another, in either order.
    let profile = parse(
        "[link]\ndelay = { jitter = \"5ms\" }\n[up]\ndelay = { mean = \"9ms\" }\n[down]\ndelay = { mean = \"6ms\" }",
    );
    assert_eq!(
        (profile.up.delay.mean_ns, profile.down.delay.mean_ns),
        (9 * MS, 6 * MS)
    );
}

#[test]
fn changes() {
    let hsdpa = shipped::find("hsdpa").unwrap();
    let changed = set(
        &hsdpa,
        &[
            "up.delay=80ms",
            "loss=1%",
            "delay.jitter=5ms",
            "queue=100p",
            "down.rate=none",
            "overhead=18",
        ],
    )
    .unwrap();
    // A plain delay removes the jitter, so the next one is uniform; down keeps its normal
    // distribution.
    let up = jitter(5e6 / 3f64.sqrt(), Distribution::Uniform);
    assert_eq!(
        changed.up.delay,
        Delay {
            mean_ns: 80 * MS,
            jitter: Some(up),
            ..Delay::default()
        }
    );
    let down = jitter(5e6, Distribution::Normal);
    assert_eq!(
        changed.down.delay,
        Delay {
            mean_ns: 198 * MS,
            jitter: Some(down),
            ..Delay::default()
        }
    );
    assert_eq!(
        (changed.up.loss.clone(), changed.down.loss.clone()),
        (0.01.into(), 0.01.into())
    );
    assert_eq!((changed.up.rate, changed.down.rate), (Some(384_000), None));
    assert_eq!(
        (changed.up.overhead, changed.up.queue),
        (18, Limit::Packets(100).into())
    );
    assert_eq!(changed.name, "hsdpa");

    let quoted = set(
        &hsdpa,
        &["delay={mean=\"9ms\", jitter=\"1ms\"}", "loss=\"2%\""],
    )
    .unwrap();
    assert_eq!(quoted.up.delay.mean_ns, 9 * MS);
    assert_eq!(quoted.up.loss, 0.02.into());
    let constant = set(&hsdpa, &["delay.jitter=none"]).unwrap();
    assert_eq!(
        constant.up.delay,
        Delay {
            mean_ns: 198 * MS,
            ..Delay::default()
        }
    );
    let nothing = set(&hsdpa, &["delay=none", "rate=none", "loss=none"]).unwrap();
    assert_eq!(nothing.up, Link::default());
    let mean = set(&hsdpa, &["delay.mean=300ms"]).unwrap();
    assert_eq!(mean.up.delay.jitter, hsdpa.up.delay.jitter);
}

#[test]
fn named_links_are_links_of_their_own() {
    let profile = parse(
        "[link]\ndelay = \"5ms\"\n[links.slow]\nrate = \"1Mbit\"\n[links.slow.up]\nloss = \"1%\"\n\
         [links.fast]\nrate = \"1Gbit\"",
    );
    let names: Vec<_> = profile.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow"], "by name");
    assert_eq!(profile.number_of("slow"), Some(2));
    assert_eq!(profile.number_of("link"), None);
    let slow = &profile.links[1];
    assert_eq!(
        (slow.up.rate, slow.down.rate),
        (Some(1_000_000), Some(1_000_000))
    );
    assert_eq!(
        (slow.up.loss.clone(), slow.down.loss.clone()),
        (0.01.into(), 0.0.into())
    );
    assert_eq!(slow.up.delay.mean_ns, 0, "nothing of [link] is in it");
    let top = parse(
        "neighbours = \"emulate\"\n[link]\n[links.a]\n[links.b]\nneighbours = \"pass\"\n\
         [links.c]\nprofile = \"lte\"\n[links.c.down]\nneighbours = \"pass\"\n\
         [[phase]]\nlink = \"a\"",
    );
    let links: Vec<_> = top.links_of(1).map(|link| link.neighbours).collect();
    let (pass, emulate) = (Neighbours::Pass, Neighbours::Emulate);
    assert_eq!(links, [emulate, emulate, pass, pass, emulate]);
    assert_eq!(top.links[2].up.neighbours, emulate);
    assert_eq!(parse(&top.to_toml()), top);

    let set = |text: &str| profile.with_changes(&[text.to_owned()]);
    let changed = set("links.slow.down.delay=7ms").unwrap();
    assert_eq!(changed.links[1].down.delay.mean_ns, 7 * MS);
    assert_eq!(changed.links[1].up, profile.links[1].up);
    assert_eq!(changed.up, profile.up);
    for (argument, says) in [
        ("links.slw.delay=7ms", "did you mean `slow`?"),
        ("links.other.delay=7ms", "named links are `fast`, `slow`"),
        ("links=7ms", "`links` alone cannot be set"),
        ("links.slow=7ms", "a direction alone cannot be set"),
    ] {
        let error = set(argument).unwrap_err().to_string();
        assert!(error.contains(says), "{argument}: {error}");
    }
}
