// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::fleet::clock::{Exchange, estimate, here};
use proptest::prelude::*;

/// An exchange with a clock that is `offset` ahead, `up` ns there and `down` ns back.
fn exchange(sent: i64, offset: i64, up: i64, served: i64, down: i64) -> Exchange {
    Exchange {
        sent,
        there: sent + up + offset,
        back: sent + up + served + offset,
        arrived: sent + up + served + down,
    }
}

proptest! {
    /// The error is never larger than the bound, however different both directions are.
    #[test]
    fn the_bound_holds(
        offset in -1_000_000_000_000_i64..1_000_000_000_000,
        ways in prop::collection::vec((0_i64..10_000_000, 0_i64..1_000_000, 0_i64..10_000_000), 1..50),
    ) {
        let all: Vec<_> = (ways.iter())
            .map(|(up, served, down)| exchange(5_000_000_000, offset, *up, *served, *down))
            .collect();
        let found = estimate(&all).unwrap();
        prop_assert!(found.offset_ns.abs_diff(offset) <= found.bound_ns);
        let best = ways.iter().map(|(up, _, down)| up + down).min().unwrap();
        prop_assert_eq!(found.bound_ns, best.unsigned_abs().div_ceil(2));
    }
}

#[test]
fn the_delay_is_that_of_the_median_probe() {
    let all = [1_000, 3_000, 2_000, 90_000, 2_500].map(|way| exchange(0, 7, way, 100, way));
    let found = estimate(&all).unwrap();
    assert_eq!(
        (found.delay_ns, found.offset_ns, found.bound_ns),
        (2_500, 7, 1_000)
    );
    assert_eq!(found.answers, 5);
}

#[test]
fn a_stamp_from_the_past_is_not_used() {
    // Somebody set the clock between both stamps.
    let set = Exchange {
        sent: 100,
        there: 200,
        back: 900,
        arrived: 300,
    };
    assert_eq!(estimate(&[set]), None);
    assert_eq!(estimate(&[]), None);
}

#[test]
fn a_time_there_is_a_time_here() {
    // The other clock is 30 ns ahead.
    assert_eq!(here(1_000, 30), 970);
    assert_eq!(here(1_000, -30), 1_030);
}
