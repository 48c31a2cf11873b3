// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use emud::fleet::clock::Estimate;
use emud::fleet::protocol::{Ready, first_begin};

/// The report of a host whose part began at `mono_ns`, and from whose clock the reference's is
/// `offset_ns` ahead; `None`: it is the reference.
fn ready(mono_ns: u64, offset_ns: Option<i64>) -> Ready {
    let clock = offset_ns.map(|offset_ns| Estimate {
        offset_ns,
        bound_ns: 0,
        delay_ns: 0,
        answers: 100,
    });
    Ready {
        digest: String::new(),
        mono_ns,
        clock,
        underlay_ns: BTreeMap::new(),
        notes: vec![],
    }
}

/// Of the reference's clock, whatever the others' clocks say.
#[test]
fn the_start_counts_from_the_first_begin() {
    let reference = ready(5_000, None);
    let later = [ready(1_000, Some(4_200)), ready(9_900, Some(-4_700))];
    let all = later.iter().chain([&reference]);
    assert_eq!(first_begin(all), 5_000);
    let sooner = [ready(1_000, Some(3_800)), ready(9_400, Some(-4_700))];
    assert_eq!(first_begin(sooner.iter().chain([&reference])), 4_700);
}
