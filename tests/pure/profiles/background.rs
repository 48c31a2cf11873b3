// SPDX-License-Identifier: MIT OR Apache-2.0
//! `background`: what is read, written, changed and compiled, and each conflict with its message.

use emud::abi;
use emud::datapath::stage::compile::{Beside, PacketTarget, compile, decode};
use emud::datapath::stage::features;
use emud::profile::{Background, Link, Profile, ProfileError, TextError};
use proptest::prelude::*;
use support::chance::same_cases;

use super::{parse, set};

const LINK: &str = "[link]\nrate = \"10Mbit\"\nbackground = \"40%\"\n";

fn loads(profile: &Profile) -> [Option<f64>; 2] {
    [&profile.up, &profile.down].map(|link| link.background.map(|b| b.load))
}

#[test]
fn the_defaults_are_those_of_ns_2() {
    let profile = parse(LINK);
    let expected = Background {
        load: 0.4,
        sources: 10,
        shape: 1.5,
        on_ns: 500_000_000,
        off_ns: 500_000_000,
        packet_bytes: 1514,
    };
    assert_eq!(profile.up.background, Some(expected));
    assert_eq!(profile.up.queue.bytes, Some(1_514_000));
    assert!(profile.to_toml().contains("background = \"40%\"\n"));
    // The limit is that of a background, and goes with it.
    let without = set(&profile, &["background=none"]).unwrap();
    assert_eq!(without, parse("[link]\nrate = \"10Mbit\"\n"));
}

#[test]
fn keys_are_overridden_one_by_one() {
    let text = format!("{LINK}[up]\nbackground = {{ shape = 1.2 }}\n[down]\nbackground = \"none\"");
    let profile = parse(&text);
    assert_eq!(loads(&profile), [Some(0.4), None]);
    assert_eq!(profile.up.background.map(|b| b.shape), Some(1.2));
    let changes = ["up.background.on=20ms", "background.load=10%"];
    let changed = set(&profile, &changes).unwrap();
    assert_eq!(loads(&changed), [Some(0.1), Some(0.1)]);
    assert_eq!(changed.up.background.map(|b| b.on_ns), Some(20_000_000));
    let none = set(&changed, &["background=none"]).unwrap();
    assert_eq!(loads(&none), [None, None]);
}

#[test]
fn mistakes_have_one_message() {
    let rate = "rate = \"10Mbit\"\n";
    let background = "background = \"40%\"\n";
    for (text, title) in [
        (
            format!("[link]\n{background}"),
            "`background` without `rate`",
        ),
        (
            format!("[link]\n{rate}background = {{ sources = 3 }}"),
            "a background without `load`",
        ),
        (
            format!("[link]\n{rate}background = \"0%\""),
            "a background with load 0",
        ),
        (
            format!("[link]\n{rate}background = {{ load = \"40%\", shape = 1 }}"),
            "`shape` of 1 is out of range",
        ),
        (
            format!("[link]\n{rate}background = {{ load = \"40%\", speed = 1 }}"),
            "speed",
        ),
        (
            format!("[link]\n{rate}{background}queue = \"20p\""),
            "`background` beside `queue.limit`",
        ),
        (
            format!("[link]\n{rate}{background}queue = {{ bytes = \"1MB\", aqm = \"codel\" }}"),
            "`background` beside `queue.aqm`",
        ),
        (
            format!("[link]\n{rate}{background}trace = {{ rows = \"time_s,delay_ms;0,1;1,2\" }}"),
            "`background` beside a trace",
        ),
        (
            format!("[link]\n{rate}{background}shared = \"u\""),
            "`background` beside `shared`",
        ),
        (
            format!("[link]\n{rate}{background}queue = \"3000B\""),
            "a queue of 3000 bytes",
        ),
        (
            format!("[link]\n{rate}background = {{ load = \"40%\", packet = \"800kB\" }}"),
            "a queue of 1514000 bytes",
        ),
        (
            format!("[link]\n{rate}background = {{ load = \"40%\", packet = \"3GB\" }}"),
            "packets of 3000000000 in the background",
        ),
        (
            format!("[link]\n{rate}{background}queue = \"1ms\""),
            "a queue shorter than a packet of the background takes",
        ),
        (
            format!("[link]\n{rate}background = {{ load = \"40%\", on = \"1ms\", off = \"1s\" }}"),
            "sources that send 400 times the rate",
        ),
        (
            format!("[link]\nrate = \"400Gbit\"\n{background}"),
            "packets of the background that take 30 ns",
        ),
        (
            format!(
                "[link]\n{rate}{background}[[phase]]\nfor = \"1s\"\n[[phase]]\ndelay = \"9ms\""
            ),
            "phases beside `background`",
        ),
        (
            format!("[link]\n[[phase]]\nfor = \"1s\"\n[[phase]]\n{rate}{background}"),
            "phases beside `background`",
        ),
        (
            format!("[link]\n{rate}{background}[matrix]\ncapacity = 3"),
            "a matrix beside `background`",
        ),
        (
            format!("[link]\n[links.a]\n{rate}{background}[[rule]]\nlink = \"a\"\nper = \"flow\""),
            "`per` for a link with `background`",
        ),
    ] {
        let Err(ProfileError::Text(TextError::Mistakes(mistakes))) =
            Profile::parse(&text, "x.toml")
        else {
            panic!("{title}: accepted");
        };
        let shown = mistakes.to_string();
        assert_eq!(mistakes.iter().count(), 1, "{title}: {shown}");
        assert!(shown.contains(title), "{title}: {shown}");
    }
}

#[test]
fn a_rule_may_choose_a_link_with_a_background() {
    let text = "[link]\n[links.a]\nrate = \"10Mbit\"\nbackground = \"40%\"\n[[rule]]\nlink = \"a\"";
    assert!(parse(text).links[0].up.background.is_some());
}

fn compiled(link: &Link, seed: u64) -> emud::datapath::stage::compile::Compiled {
    let place = PacketTarget {
        release: 0,
        ifindex: 0,
        l3: false,
    };
    compile(link, seed, abi::EMUD_UP, 1_000, place).expect("a link")
}

/// Without a background the classifier is loaded without its code, and its maps stay empty.
#[test]
fn only_a_background_needs_its_feature() {
    let needs = |text: &str| {
        let link = compiled(&parse(text).up, 1);
        (features::of([&[link], &[]]) & abi::EMUD_FEATURE_BACKGROUND) != 0
    };
    assert!(needs(LINK));
    assert!(!needs("[link]\nrate = \"10Mbit\"\nqueue = \"1MB\""));
}

/// The drawn packets repeat with the seed, and end with an empty queue.
#[test]
fn a_seed_has_one_background() {
    let link = parse(LINK).up;
    let rows = |seed| -> Vec<[u64; 4]> {
        let stretches = compiled(&link, seed).stretches.expect("rows");
        stretches
            .iter()
            .map(|s| [s.at_ns, s.gap_ns, s.count, s.backlog_ns])
            .collect()
    };
    let first = rows(1);
    assert_eq!(first, rows(1));
    assert_ne!(first, rows(2));
    assert_eq!(first.len(), 8192);
    assert_eq!(first.first(), Some(&[0, 1, 0, 0]));
    let figures = compiled(&link, 1).link.background;
    assert_eq!(first.last().map(|row| row[0]), Some(figures.period_ns));
    assert_eq!((figures.service_ns, figures.epoch_ns), (1_211_200, 1_000));
    // 1,514,000 bytes with the packet itself
    assert_eq!(figures.limit_ns, 1_211_200_000 - 1_211_200);
}

prop_compose! {
    fn backgrounds()(
        load in 0.001..=1.0f64,
        sources in 1..=100u32,
        shape in 1.05..=10.0f64,
        on_ns in 1_000_000..=3_600_000_000_000u64,
        ratio in 0.1..=10.0f64,
        packet_bytes in 200..=9000u32,
    ) -> Background {
        let off_ns = ((on_ns as f64 * ratio) as u64).min(3_600_000_000_000);
        Background { load, sources, shape, on_ns, off_ns, packet_bytes }
    }
}

proptest! {
    #![proptest_config(same_cases(support::cases(60)))]

    #[test]
    fn backgrounds_read_back(background in backgrounds(), rate in 1_000..=10_000_000_000u64, seed: u64) {
        let mut profile = parse(LINK);
        profile.up.rate = Some(rate);
        profile.up.background = Some(background);
        let text = profile.to_toml();
        let back = Profile::parse(&text, "canonical");
        prop_assert!(matches!(&back, Ok(back) if *back == profile), "{text}\n{back:?}");
        let figures = compiled(&profile.up, seed);
        let beside = Beside {
            delays: None,
            mean_ns: 0,
            pattern: None,
            wanted: Some(&profile.up),
        };
        let read = decode(&figures.link, beside);
        prop_assert_eq!(read.background, Some(background));
        prop_assert_eq!(read.queue, profile.up.queue);
        let again = compiled(&Link { rate: Some(rate), ..read }, seed).link.background;
        let words = |b: &abi::emud_background| {
            [b.epoch_ns, b.period_ns, b.service_ns, b.limit_ns, b.packets, u64::from(b.count)]
        };
        prop_assert_eq!(words(&again), words(&figures.link.background));
    }
}
