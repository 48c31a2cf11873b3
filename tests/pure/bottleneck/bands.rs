// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profile `dscp-bands`: strict bands by DSCP, of which that of ef is policed.

use emud::profile::shipped::find;

use super::traffic::{SECOND, assert_near, constant, merge, serve};

const FRAME: u32 = 1514;
const MBIT: u64 = 1_000_000;
/// In the order of their service.
const BANDS: [&str; 4] = ["control", "ef", "best-effort", "lower-effort"];

/// Each band has what the better ones leave, and ef 3 Mbit/s at most.
#[test]
fn bands_are_strict_and_ef_has_a_ceil() {
    let profile = find("dscp-bands").unwrap();
    let bottleneck = &profile.bottlenecks[0];
    let bands = BANDS.map(|band| {
        bottleneck
            .classes
            .iter()
            .position(|class| class.name == band)
    });
    let bands = bands.map(Option::unwrap);
    assert_eq!(bottleneck.classes.len(), bands.len());
    for (loads, want) in [
        ([2, 5, 12, 12], [2.0, 3.0, 5.0, 0.0]),
        ([1, 2, 3, 12], [1.0, 2.0, 3.0, 4.0]),
        ([0, 5, 0, 12], [0.0, 3.0, 0.0, 7.0]),
        ([12, 5, 12, 12], [10.0, 0.0, 0.0, 0.0]),
    ] {
        let to = 11 * SECOND;
        let sending = bands.into_iter().zip(loads).filter(|(_, load)| *load > 0);
        let packets = merge(sending.map(|(band, load)| {
            // Not all at once.
            constant(band, FRAME, load * MBIT, 1_000 * band as u64, to)
        }));
        let outcome = serve(&bottleneck.plan(), &packets);
        for ((band, name), want) in bands.into_iter().zip(BANDS).zip(want) {
            let got = outcome.rate(&packets, band, SECOND, to) / 1e6;
            // Of 1 Mbit/s more, since some have nothing.
            assert_near(&format!("{name} of {loads:?}"), got + 1.0, want + 1.0, 0.03);
        }
        let ef = outcome
            .served
            .iter()
            .filter(|served| served.class == bands[1]);
        let longest = ef.map(|served| served.start_ns - served.arrival_ns).max();
        assert!(longest <= Some(20_000_000), "ef waited {longest:?} ns");
    }
}

/// What no rule knows is best effort.
#[test]
fn rules_lead_to_the_bands() {
    let profile = find("dscp-bands").unwrap();
    assert_eq!(profile.up.class.as_deref(), Some("bands.best-effort"));
    assert_eq!(profile.down.class, None);
    let rules: Vec<_> = profile
        .rules
        .iter()
        .map(|rule| {
            (
                rule.matches.dscp,
                rule.class.as_deref(),
                rule.is_for(emud::abi::EMUD_DOWN),
            )
        })
        .collect();
    let to = |dscp, class| (Some(dscp), Some(class), false);
    let want = [
        to(48, "bands.control"),
        to(46, "bands.ef"),
        to(1, "bands.lower-effort"),
    ];
    assert_eq!(rules, want);
}
