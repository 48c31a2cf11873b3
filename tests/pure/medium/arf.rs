// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate control: ARF against a slow reference that knows the rules only, and against arithmetic.

use emud::medium::air::{Count, Frame, Plan, RateControl, To};
use emud::medium::phy::{Matrix, Reach};

use super::traffic::{Cell, MS, S, near, plan, timing};

/// Modes of 802.11b: 1, 2, 5.5 and 11 Mbit/s.
const MODES: usize = 4;

fn arf(seed: u64) -> Plan {
    Plan {
        rate: RateControl::Arf,
        ..plan("802.11b", seed)
    }
}

/// Station 0 decodes up to this mode of the others, with bit errors; they decode all of it.
fn matrix(stations: usize, best: &[usize], ber: f64) -> Matrix {
    Matrix::new(stations, |from, to| {
        let worse = best[usize::from(from.max(to))];
        let modes = (1 << (worse + 1)) - 1;
        let reach = Reach::full(to);
        match (from, to) {
            (0, _) => Some(Reach { modes, ..reach }.with_ber(ber)),
            (_, 0) => Some(reach),
            _ => None,
        }
    })
}

/// The attempts of station 0 that were decided: the mode of each, by its time on air, and whether it
/// was acknowledged.
fn attempts(cell: &mut Cell, bytes: u32, until_ns: u64) -> Vec<(usize, bool)> {
    let timing = timing("802.11b");
    let lasts: Vec<u64> = (0..MODES).map(|mode| timing.data_ns(bytes, mode)).collect();
    let mut seen: Vec<(usize, bool)> = Vec::new();
    let (mut last, mut at_ns, mut before_ns) = (Count::default(), 0, 0);
    while at_ns < until_ns {
        at_ns += MS / 20;
        cell.run(at_ns);
        let count = cell.air.count(0);
        let decided = (count.sent + count.failed) - (last.sent + last.failed);
        let begun = count.attempts - last.attempts;
        assert!(decided <= 1 && begun <= 1, "a step is too long");
        // The next one begins a DIFS later, which is a step.
        if decided == 1 {
            let air_ns = count.air_ns - before_ns;
            let mode = lasts.iter().position(|lasts| *lasts == air_ns);
            let mode = mode.unwrap_or_else(|| panic!("no mode lasts {air_ns} ns"));
            seen.push((mode, count.sent > last.sent));
            before_ns = count.air_ns;
        }
        last = count;
    }
    seen
}

/// The mode behind some results, from the beginning each time: ten successes in a row raise it, two
/// failures lower it, and so does a failure right behind a rise.
fn reference(first: usize, results: &str) -> usize {
    let (mut mode, mut since, mut rose) = (first, String::new(), false);
    for result in results.chars() {
        since.push(result);
        let last = mode;
        if since.ends_with("ssssssssss") && mode + 1 < MODES {
            mode += 1;
        } else if since.ends_with("ff") || (rose && since == "f") {
            mode = mode.saturating_sub(1);
            // At the lowest rate the count begins again, too.
            since.clear();
        }
        if mode != last {
            since.clear();
        }
        rose = mode > last;
    }
    mode
}

#[test]
fn the_modes_are_those_of_the_reference() {
    let mut changes = 0;
    for (best, ber) in [(3, 0.0), (2, 0.0), (3, 2e-5), (2, 4e-5), (1, 8e-5)] {
        let mut cell = Cell::new(arf(best as u64), matrix(2, &[3, best], ber), &[1_000; 2]);
        cell.saturate(0, To::Station(1), 1000);
        let seen = attempts(&mut cell, 1000, 6 * S);
        assert!(seen.len() > 500, "{}", seen.len());
        let mut results = String::new();
        for (n, (mode, success)) in seen.iter().enumerate() {
            assert_eq!(*mode, reference(0, &results), "attempt {n}: {results}");
            results.push(if *success { 's' } else { 'f' });
        }
        changes += seen
            .windows(2)
            .filter(|pair| pair[0].0 != pair[1].0)
            .count();
        // With errors also of rates that are too low to be decoded less often.
        assert!(ber == 0.0 || results.contains("ff"), "{results}");
    }
    assert!(changes > 500, "{changes}");
}

/// Where 11 Mbit/s is not decoded: ten frames at 5.5 Mbit/s, the first of which repeats the probe
/// that failed, with a backoff of 31.5 instead of 15.5 slots.
#[test]
fn a_rate_that_is_too_high_costs_a_probe_in_eleven() {
    let (timing, bytes) = (timing("802.11b"), 1500);
    let mut cell = Cell::new(arf(1), matrix(2, &[3, 2], 0.0), &[1_000; 2]);
    cell.saturate(0, To::Station(1), bytes);
    cell.run(S);
    let before = cell.air.count(0);
    cell.run(61 * S);
    let count = cell.air.count(0);
    let sent = (count.sent - before.sent) as f64;
    near(
        "share of probes",
        (count.failed - before.failed) as f64 / sent,
        0.1,
        0.01,
    );
    let success = timing.data_ns(bytes, 2) + timing.sifs_ns + timing.ack_ns(2);
    let failure = timing.data_ns(bytes, 3) + timing.ack_timeout_ns();
    let slots = 9.0 * 15.5 + 31.5 + 15.5;
    let cycle_ns =
        (10 * success + failure + 11 * timing.difs_ns) as f64 + slots * timing.slot_ns as f64;
    near("packets/s", sent / 60.0, 10.0 * 1e9 / cycle_ns, 0.005);
}

/// A receiver that is far away does not slow down the frames for one that is near.
#[test]
fn each_receiver_has_its_own_rate() {
    for rate in [RateControl::Arf, RateControl::Ideal] {
        let plan = Plan {
            rate,
            ..plan("802.11b", 1)
        };
        let lasts = |mode| plan.timing.data_ns(1000, mode) as f64;
        let expected = (lasts(3) + lasts(0)) / 2.0;
        let mut cell = Cell::new(plan.clone(), matrix(3, &[3, 3, 0], 0.0), &[1_000; 3]);
        for n in 0..4_000 {
            let (to, token) = (To::Station(1 + n % 2), 0);
            let frame = Frame {
                to,
                bytes: 1000,
                token,
            };
            cell.air.arrive(u64::from(n) * 15 * MS, 0, frame);
        }
        cell.run(60 * S);
        let count = cell.air.count(0);
        assert_eq!(count.sent, 4_000);
        match rate {
            // A probe of the far one costs 0.1 frames at 2 Mbit/s.
            RateControl::Arf => {
                let probes = count.failed as f64 / 2_000.0;
                near("probes", probes, 0.1, 0.01);
                let air = count.air_ns as f64 - count.failed as f64 * lasts(1);
                near("time on air", air / 4_000.0, expected, 0.01);
            }
            _ => {
                assert_eq!(count.failed, 0);
                near("time on air", count.air_ns as f64 / 4_000.0, expected, 1e-9);
            }
        }
    }
}

/// RTS without CTS are no failures of the rate: they have a basic rate.
#[test]
fn an_rts_without_an_answer_is_no_result() {
    let plan = Plan {
        rts_bytes: Some(0),
        ..arf(1)
    };
    // Nobody answers; the frame behind it is given up after seven.
    let deaf = Matrix::new(2, |from, to| (from == 1).then(|| Reach::full(to)));
    let mut cell = Cell::new(plan, deaf, &[11_000; 2]);
    cell.saturate(0, To::Station(1), 1000);
    cell.run(S);
    let count = cell.air.count(0);
    assert!(count.given_up > 20 && count.sent == 0, "{count:?}");
    let rts_ns = timing("802.11b").rts_ns(3);
    assert_eq!(
        count.air_ns,
        count.attempts * rts_ns,
        "at another rate than 2 Mbit/s"
    );
}
