// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of `reset` and of the keys of `duplicate` and `corrupt`, and the messages for meaningless ones.

use emud::profile::{ChecksumAfter, Corrupt, Duplicate, LinkState, MAX_CORRUPT_BITS, Profile};
use proptest::prelude::*;

use super::mistakes::mistakes;
use super::{parse, set};
use crate::case::Case;

#[test]
fn every_key_arrives_where_it_belongs() {
    let profile = parse(
        r#"
        [link]
        duplicate = { probability = "1%", correlation = "25%" }
        corrupt = { probability = "0.1%", correlation = "30%", bits = 3, from = 20, to = 1500, checksum = "mend" }
        [down]
        duplicate = "2%"
        corrupt = "3%"
        reset = "0.01%"
        "#,
    );
    let duplicate = Duplicate {
        probability: 0.01,
        correlation: 0.25,
    };
    let corrupt = Corrupt {
        probability: 0.001,
        correlation: 0.3,
        bits: 3,
        from: 20,
        to: Some(1500),
        checksum: ChecksumAfter::Mend,
    };
    assert_eq!(
        (profile.up.duplicate, profile.up.corrupt),
        (duplicate, corrupt)
    );
    let (duplicate, corrupt) = (profile.down.duplicate, profile.down.corrupt);
    assert_eq!((duplicate.probability, duplicate.correlation), (0.02, 0.0));
    assert_eq!(
        corrupt,
        Corrupt {
            probability: 0.03,
            ..Corrupt::default()
        }
    );
    assert_eq!((corrupt.bits, corrupt.from, corrupt.to), (1, 0, None));
    assert_eq!((profile.up.reset, profile.down.reset), (0.0, 0.0001));
    assert_eq!(parse(&profile.to_toml()), profile);
}

#[test]
fn set_changes_a_key_or_all() {
    let before = parse("[link]\ncorrupt = \"1%\"\nduplicate = \"1%\"");
    let after = set(
        &before,
        &[
            "up.corrupt.bits=4",
            "corrupt.checksum=mend",
            "duplicate.correlation=10%",
        ],
    )
    .unwrap();
    assert_eq!((after.up.corrupt.bits, after.down.corrupt.bits), (4, 1));
    assert_eq!(after.down.corrupt.checksum, ChecksumAfter::Mend);
    assert_eq!(after.up.duplicate.correlation, 0.1);
    let none = set(&after, &["corrupt=none", "duplicate=0"]).unwrap();
    assert_eq!((none.up.corrupt, none.up.duplicate), Default::default());
    let again = set(&after, &["corrupt.bits=none"]).unwrap();
    assert_eq!(again.up.corrupt.bits, 1);
}

#[test]
fn mistakes_in_an_alteration() {
    #[rustfmt::skip]
    let cases = [
        ("duplicate = {}", "{}", "`duplicate` without `probability`", "duplicate = \"1%\""),
        ("duplicate = \"101%\"", "\"101%\"", "more than 100 %", "\"100%\""),
        ("duplicate = { probability = \"1%\", correlation = \"100%\" }", "\"100%\"", "below 100 %", "25%"),
        ("duplicate = { probability = \"1%\", bits = 2 }", "bits", "no key `bits` of a duplicate", "inside `corrupt`"),
        ("corrupt = 5", "5", "no percent sign", "5%"),
        ("corrupt = { bits = 2 }", "{ bits = 2 }", "`corrupt` without `probability`", "corrupt = \"1%\""),
        ("corrupt = { probability = \"1%\", bits = 0 }", "0", "`bits` of 0 is out of range", "from 1 to 32"),
        ("corrupt = { probability = \"1%\", bits = 33 }", "33", "`bits` of 33 is out of range", "from 1 to 32"),
        ("corrupt = { probability = \"1%\", from = 20, to = 20 }", "20", "no bytes from 20 to 20", "more than `from`"),
        ("corrupt = { probability = \"1%\", checksum = \"fix\" }", "\"fix\"", "`checksum` cannot be `fix`", "\"keep\", \"mend\""),
        ("bits = 3", "bits", "no key `bits` of a link", "inside `corrupt`"),
    ];
    for (text, underlined, title, help) in cases {
        let found = mistakes(Profile::parse(&format!("[link]\n{text}"), "x.toml"));
        assert_eq!(Case(text, 2, underlined, title, help).differs(&found), None);
    }
}

/// Any alteration and state that a profile can describe.
pub fn alterations() -> impl Strategy<Value = (Duplicate, Corrupt, f64, LinkState)> {
    // Without a probability it is not an alteration.
    let share = || prop_oneof![Just(1.0), Just(0.005), 1e-9..=1.0f64];
    let correlation = || prop_oneof![Just(0.0), 0.0..1.0f64];
    let checksum = prop::sample::select(vec![ChecksumAfter::Keep, ChecksumAfter::Mend]);
    let duplicate = (share(), correlation()).prop_map(|(probability, correlation)| Duplicate {
        probability,
        correlation,
    });
    let range = (0..u32::MAX, prop::option::of(any::<u32>()));
    let corrupt = (
        share(),
        correlation(),
        1..=MAX_CORRUPT_BITS,
        range,
        checksum,
    )
        .prop_map(|(probability, correlation, bits, (from, to), checksum)| {
            let to = to.map(|to| to.max(from + 1));
            let room = to.map_or(u32::MAX, |to| (to - from).saturating_mul(8));
            Corrupt {
                probability,
                correlation,
                bits: bits.min(room),
                from,
                to,
                checksum,
            }
        });
    (
        prop_oneof![Just(Duplicate::default()), duplicate],
        prop_oneof![Just(Corrupt::default()), corrupt],
        prop_oneof![Just(0.0), share()],
        prop::sample::select(vec![LinkState::Up, LinkState::Down]),
    )
}
