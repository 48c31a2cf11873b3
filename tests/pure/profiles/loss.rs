// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of the keys of a loss, and the messages for meaningless ones.

use emud::profile::{LinkState, Loss, LossModel, MAX_PATTERN, Pattern, Profile, Stage};
use proptest::prelude::*;

use super::mistakes::mistakes;
use super::{parse, set};
use crate::case::Case;

fn loss(text: &str) -> Loss {
    let profile = parse(&format!("[link]\nloss = {text}"));
    assert_eq!(parse(&profile.to_toml()), profile, "reads back");
    profile.up.loss
}

fn pattern(lost: &[u64], length: u64) -> Pattern {
    Pattern::from_lost(lost, length).unwrap()
}

#[test]
fn a_small_loss_is_shown_as_it_is() {
    for text in ["0.0000004%", "0.0015812%", "0.4%", "12.345678%"] {
        assert_eq!(loss(&format!("\"{text}\"")).summary(), text);
    }
}

#[test]
fn every_model_and_its_defaults() {
    let bernoulli = |probability, correlation| LossModel::Bernoulli {
        probability,
        correlation,
    };
    let gilbert = |p, r, bad, good| LossModel::GilbertElliott { p, r, bad, good };
    let four = |p13, p31, p32, p23, p14| LossModel::FourState {
        p13,
        p31,
        p32,
        p23,
        p14,
    };
    let recorded = |lost: &[u64], length, repeat| LossModel::Pattern {
        pattern: pattern(lost, length),
        repeat,
    };
    #[rustfmt::skip]
    let cases = [
        ("\"1%\"", bernoulli(0.01, 0.0)),
        ("{ probability = \"1%\" }", bernoulli(0.01, 0.0)),
        ("{ model = \"bernoulli\", probability = \"1%\", correlation = \"25%\" }", bernoulli(0.01, 0.25)),
        // As tc-netem's: r = 1-p, 1-h = 100 %, 1-k = 0.
        ("{ model = \"gilbert-elliott\", p = \"25%\" }", gilbert(0.25, 0.75, 1.0, 0.0)),
        ("{ model = \"gilbert-elliott\", p = \"1%\", r = \"10%\", bad = \"70%\", good = \"0.1%\" }", gilbert(0.01, 0.1, 0.7, 0.001)),
        ("{ model = \"four-state\", p13 = \"25%\" }", four(0.25, 0.75, 0.0, 1.0, 0.0)),
        ("{ model = \"four-state\", p13 = \"1%\", p31 = \"10%\", p32 = \"20%\", p23 = \"30%\", p14 = \"2%\" }", four(0.01, 0.1, 0.2, 0.3, 0.02)),
        ("{ model = \"bit-error\", ber = 1e-6 }", LossModel::BitError { ber: 1e-6 }),
        ("{ model = \"bit-error\", ber = 0 }", LossModel::BitError { ber: 0.0 }),
        ("{ model = \"every\", n = 100 }", LossModel::Every { n: 100, offset: 0 }),
        ("{ model = \"every\", n = 100, offset = 99 }", LossModel::Every { n: 100, offset: 99 }),
        ("{ model = \"pattern\", pattern = \"000 1000\" }", recorded(&[3], 7, true)),
        ("{ model = \"pattern\", lost = [7, 3], length = 100, loop = false }", recorded(&[3, 7], 100, false)),
        ("{ model = \"burst\", probability = \"0.1%\", length = 5 }", LossModel::Burst { probability: 0.001, length: 5 }),
    ];
    for (text, model) in cases {
        let stage = Stage::AfterQueue;
        assert_eq!(
            loss(text),
            Loss {
                model,
                stage,
                ecn: false,
                max_run: None,
            },
            "{text}"
        );
    }
    let early = loss("{ probability = \"1%\", stage = \"before-queue\" }");
    assert_eq!(early.stage, Stage::BeforeQueue);
}

#[test]
fn a_table_is_merged_and_another_model_starts_anew() {
    let profile = parse(
        r#"
        [link]
        loss = { model = "gilbert-elliott", p = "1%", r = "10%", stage = "before-queue" }
        [up]
        loss = { bad = "50%" }
        [down]
        loss = { model = "burst", probability = "1%", length = 3 }
        "#,
    );
    let up = LossModel::GilbertElliott {
        p: 0.01,
        r: 0.1,
        bad: 0.5,
        good: 0.0,
    };
    let down = LossModel::Burst {
        probability: 0.01,
        length: 3,
    };
    assert_eq!(
        (profile.up.loss.model, profile.up.loss.stage),
        (up, Stage::BeforeQueue)
    );
    assert_eq!(
        (profile.down.loss.model, profile.down.loss.stage),
        (down, Stage::AfterQueue)
    );
}

#[test]
fn set_changes_a_key_a_model_or_all() {
    let before = parse("[link]\nloss = { model = \"gilbert-elliott\", p = \"1%\", r = \"10%\" }");
    let after = |assignments: &[&str]| set(&before, assignments).unwrap().up.loss.model;
    let gilbert = |p, r| LossModel::GilbertElliott {
        p,
        r,
        bad: 1.0,
        good: 0.0,
    };
    assert_eq!(after(&["loss.p=2%"]), gilbert(0.02, 0.1));
    assert_eq!(
        after(&["up.loss.r=20%", "up.loss.p=3%"]),
        gilbert(0.03, 0.2)
    );
    let bit_error = LossModel::BitError { ber: 1e-6 };
    assert_eq!(after(&["loss={model=\"bit-error\",ber=1e-6}"]), bit_error);
    assert_eq!(
        after(&["loss={model=\"bit-error\",ber=1}", "loss.ber=1e-6"]),
        bit_error
    );
    assert_eq!(after(&["loss=5%"]), Loss::from(0.05).model);
    assert_eq!(after(&["loss=none"]), Loss::default().model);
    let recorded = after(&[
        "loss={model=\"pattern\",pattern=\"01\"}",
        "loss.lost=[5]",
        "loss.length=9",
        "loss.loop=false",
    ]);
    let want = LossModel::Pattern {
        pattern: pattern(&[5], 9),
        repeat: false,
    };
    assert_eq!(recorded, want);
}

/// The content is in the canonical text: the file may be deleted when a link is changed.
#[test]
fn a_pattern_from_a_file() {
    let folder = std::env::temp_dir().join(format!("emud-pattern-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("bits.txt", "# recorded\n0001 # one\n\n0010\n");
    write("lost.txt", "3\n6 # two\n");
    write("bad.txt", "0001\n0021\n");
    let profile = |keys: &str| {
        let text = format!("[link]\nloss = {{ model = \"pattern\", {keys} }}\n");
        write("p.toml", &text);
        Profile::load(&folder.join("p.toml"))
    };
    let bits = profile("file = \"bits.txt\"").unwrap();
    let lost = profile("file = \"lost.txt\", length = 8").unwrap();
    for profile in [&bits, &lost] {
        let LossModel::Pattern { pattern: read, .. } = &profile.up.loss.model else {
            panic!("{profile:?}")
        };
        assert_eq!(*read, pattern(&[3, 6], 8));
    }
    let found = mistakes(profile("file = \"bad.txt\""));
    let shown = found.to_string();
    assert!(shown.contains("bad.txt:2: `2` is not 0 or 1"), "{shown}");
    let found = mistakes(profile("file = \"none.txt\"")).to_string();
    assert!(
        found.contains("none.txt") && found.contains("p.toml:2:"),
        "{found}"
    );
    let found = mistakes(profile("file = \"lost.txt\", length = 6")).to_string();
    assert!(
        found.contains("lost.txt:2: `6` is not a packet's number"),
        "{found}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
    let text = bits.to_toml();
    assert!(text.contains("pattern = \"00010010\""), "{text}");
    assert_eq!(parse(&text).up, bits.up);
}

#[test]
fn a_sparse_pattern_is_written_as_a_list() {
    let text =
        parse("[link]\nloss = { model = \"pattern\", lost = [5, 77], length = 1000 }").to_toml();
    assert!(
        text.contains("lost = [5, 77], length = 1000, loop = true"),
        "{text}"
    );
}

#[test]
fn the_share_lost_in_the_long_run() {
    for (text, share) in [
        (
            "{ model = \"gilbert-elliott\", p = \"1%\", r = \"9%\" }",
            0.1,
        ),
        (
            "{ model = \"gilbert-elliott\", p = \"1%\", r = \"9%\", bad = \"50%\", good = \"10%\" }",
            0.14,
        ),
        // States 1, 2, 3, 4 as 1 : 0.04 : 0.1 : 0.005.
        (
            "{ model = \"four-state\", p13 = \"1%\", p31 = \"10%\", p32 = \"20%\", p23 = \"50%\", p14 = \"0.5%\" }",
            0.105 / 1.145,
        ),
        ("{ model = \"every\", n = 8 }", 0.125),
        ("{ model = \"pattern\", pattern = \"0001\" }", 0.25),
        (
            "{ model = \"pattern\", pattern = \"0001\", loop = false }",
            0.0,
        ),
        (
            "{ model = \"burst\", probability = \"1%\", length = 5 }",
            0.05 / 1.04,
        ),
    ] {
        let got = loss(text).share().unwrap();
        assert!((got - share).abs() < 1e-12, "{text}: {got}");
    }
    assert_eq!(loss("{ model = \"bit-error\", ber = 1e-6 }").share(), None);
}

#[test]
fn mistakes_in_a_loss() {
    #[rustfmt::skip]
    let cases = [
        ("{ model = \"gilbert\", p = \"1%\" }", "\"gilbert\"", "`model` cannot be `gilbert`", "\"gilbert-elliott\""),
        ("{ model = \"gilbert-elliott\", r = \"1%\" }", "{ model = \"gilbert-elliott\", r = \"1%\" }", "without `p`", "p = \"1%\""),
        ("{ model = \"burst\", probability = \"1%\" }", "{ model = \"burst\", probability = \"1%\" }", "without `length`", "length = 5"),
        ("{ model = \"burst\", probability = \"1%\", length = 0 }", "0", "cannot be 0", "least is 1"),
        ("{ p = \"1%\", probability = \"1%\" }", "\"1%\"", "not a key of model \"bernoulli\"", "`probability`, `correlation`"),
        ("{ correlation = \"1%\" }", "{ correlation = \"1%\" }", "without `probability`", "probability = \"1%\""),
        ("{ probability = \"1%\", correlation = \"100%\" }", "\"100%\"", "below 100 %", "25%"),
        ("{ probability = \"1%\", stage = \"queue\" }", "\"queue\"", "`stage` cannot be `queue`", "\"before-queue\""),
        ("{ probabilty = \"1%\" }", "probabilty", "no key `probabilty` of a loss", "did you mean `probability`?"),
        ("{ model = \"four-state\", p13 = \"60%\", p14 = \"50%\" }", "\"50%\"", "110% together", "at most 100%"),
        ("{ model = \"four-state\", p13 = \"1%\", p31 = \"60%\", p32 = \"50%\" }", "\"50%\"", "110% together", "same state"),
        ("{ model = \"bit-error\", ber = 1.5 }", "1.5", "more than 1", "ber = 1e-6"),
        ("{ model = \"bit-error\", ber = -1 }", "-1", "`ber` cannot be -1", "from 0 on"),
        ("{ model = \"bit-error\", ber = \"1%\" }", "\"1%\"", "`1%` is not a number", "ber = 1e-6"),
        ("{ model = \"every\", n = 1.5 }", "1.5", "`1.5` is not a whole number", "from 0 to"),
        ("{ model = \"every\", n = 5, offset = 5 }", "5", "not below `n`", "ahead at the start"),
        ("{ model = \"pattern\", pattern = \"0120\" }", "\"0120\"", "`2` is not 0 or 1", "1 for each that is lost"),
        ("{ model = \"pattern\", pattern = \"\" }", "\"\"", "a pattern of 0 packets", "0001000"),
        ("{ model = \"pattern\", lost = [3] }", "[3]", "`lost` without `length`", "length = 100"),
        ("{ model = \"pattern\", lost = [3, 9], length = 9 }", "[3, 9]", "packet 9 is not among 9", "the last 8"),
        ("{ model = \"pattern\", lost = [3], length = 300000 }", "[3]", "too long", "262144"),
        ("{ model = \"pattern\", lost = [\"x\"], length = 3 }", "\"x\"", "`x` is not a plain number", "whole number"),
        ("{ model = \"pattern\", pattern = \"01\", lost = [3], length = 9 }", "[3]", "both `pattern` and `lost`", "keep one"),
        ("{ model = \"pattern\", pattern = \"01\", length = 9 }", "9", "`length` with `pattern`", "already has a length"),
        ("{ model = \"pattern\", pattern = \"01\", loop = 3 }", "3", "`loop` cannot be a number", "true or false"),
        ("{ model = \"pattern\" }", "{ model = \"pattern\" }", "without `pattern`", "0001000"),
    ];
    for (text, underlined, title, help) in cases {
        let found = mistakes(Profile::parse(&format!("[up]\nloss = {text}"), "x.toml"));
        assert_eq!(Case(text, 2, underlined, title, help).differs(&found), None);
    }
    let before = parse("[link]\nloss = { model = \"every\", n = 5 }");
    let found = mistakes(set(&before, &["loss.p=5%"])).to_string();
    assert!(found.contains("not a key of model \"every\""), "{found}");
    assert!(found.contains("--> argument 1:1:"), "{found}");
}

#[test]
fn state() {
    let profile = parse("[link]\nstate = \"down\"\n[down]\nstate = \"up\"");
    assert_eq!(
        (profile.up.state, profile.down.state),
        (LinkState::Down, LinkState::Up)
    );
    assert!(profile.to_toml().contains("state = \"down\""));
    let up = set(&profile, &["up.state=up"]).unwrap();
    assert_eq!(up.up.state, LinkState::Up);
    let found = mistakes(Profile::parse("[link]\nstate = \"off\"", "x.toml")).to_string();
    assert!(
        found.contains("`state` is one of \"up\", \"down\""),
        "{found}"
    );
}

/// Any loss that a profile supports.
pub fn losses() -> impl Strategy<Value = Loss> {
    let p = || prop_oneof![Just(0.0), Just(1.0), Just(0.005), 0.0..=1.0f64];
    let models = prop_oneof![
        p().prop_map(|p| Loss::from(p).model),
        (p(), 0.0..1.0f64).prop_map(|(probability, correlation)| LossModel::Bernoulli {
            probability,
            correlation,
        }),
        (p(), p(), p(), p()).prop_map(|(p, r, bad, good)| LossModel::GilbertElliott {
            p,
            r,
            bad,
            good
        }),
        (0.0..=0.5f64, 0.0..=0.5f64, 0.0..=0.5f64, p(), 0.0..=0.5f64).prop_map(
            |(p13, p31, p32, p23, p14)| LossModel::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            }
        ),
        prop_oneof![Just(0.0), Just(1.0), Just(1e-12), 0.0..1e-3f64]
            .prop_map(|ber| LossModel::BitError { ber }),
        (1..=u32::MAX, any::<u32>()).prop_map(|(n, offset)| LossModel::Every {
            n,
            offset: offset % n,
        }),
        (
            prop::collection::vec(0..2000u64, 0..50),
            2000..=u64::from(MAX_PATTERN),
            any::<bool>()
        )
            .prop_map(|(lost, length, repeat)| LossModel::Pattern {
                pattern: pattern(&lost, length),
                repeat,
            }),
        (prop::collection::vec(any::<bool>(), 1..300), any::<bool>()).prop_map(|(bits, repeat)| {
            let bits: String = bits
                .iter()
                .map(|bit| if *bit { '1' } else { '0' })
                .collect();
            LossModel::Pattern {
                pattern: Pattern::from_bits(&bits).unwrap(),
                repeat,
            }
        }),
        (p(), 1..=u32::MAX).prop_map(|(probability, length)| LossModel::Burst {
            probability,
            length,
        }),
    ];
    let stage = prop::sample::select(vec![Stage::AfterQueue, Stage::BeforeQueue]);
    let max_run = prop::option::of(1..=u32::MAX);
    (models, stage, any::<bool>(), max_run).prop_map(|(model, stage, ecn, max_run)| {
        let lossless = Loss {
            model: model.clone(),
            ..Loss::default()
        }
        .is_none();
        Loss {
            model,
            stage,
            ecn: ecn && !lossless,
            max_run,
        }
    })
}
