// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sender and nobody else: DIFS, the mean backoff, data, SIFS, ACK (Jun, Peddabachagari and
//! Sichitiu, NCA 2003); and a ping through an idle medium, to the nanosecond.

use std::collections::BTreeSet;

use emud::medium::air::{Access, Frame, Outcome, Plan, To};
use emud::medium::phy::Matrix;
use support::count;

use super::traffic::{Cell, MS, S, near, plan, saturated};

#[test]
fn udp_of_one_sender() {
    let rows = [
        ("802.11b", 1_000, 0.895),
        ("802.11b", 2_000, 1.693),
        ("802.11b", 5_500, 3.868),
        ("802.11b", 11_000, 6.111),
        ("802.11g", 54_000, 29.926),
        ("802.11b with control at 1", 11_000, 5.938),
        ("802.11b-short", 11_000, 6.787),
        ("802.11a", 6_000, 5.272),
    ];
    for (standard, kbit, expected) in rows {
        let plan = plan(standard, 1);
        let cell = saturated(plan, Matrix::full(2), &[kbit; 2], count(30) * S);
        let udp = cell.sent_mbit()[1] * 1472.0 / 1500.0;
        near(&format!("{standard} at {kbit} kbit/s"), udp, expected, 0.01);
        assert_eq!(cell.counts()[1].failed, 0);
    }
}

#[test]
fn rts_of_one_sender() {
    for (standard, kbit, expected) in [("802.11b", 11_000, 4.864), ("802.11g", 54_000, 24.922)] {
        let plan = emud::medium::air::Plan {
            rts_bytes: Some(0),
            ..plan(standard, 1)
        };
        let cell = saturated(plan, Matrix::full(2), &[kbit; 2], count(20) * S);
        near(standard, cell.sent_mbit()[1], expected, 0.01);
    }
}

/// The request meets an idle medium and is sent at once. The reply meets a busy one: the ACK that
/// its own station is about to send.
fn pings(standard: &str, kbit: u32, count: u64) -> Vec<u64> {
    let mut cell = Cell::new(plan(standard, 3), Matrix::full(2), &[kbit; 2]);
    let air = &mut cell.air;
    let ping = |to| Frame {
        to: To::Station(to),
        bytes: 84,
        token: 0,
    };
    let mut round_trips = Vec::new();
    for n in 1..=count {
        let sent_ns = n * 20 * MS;
        assert!(air.arrive(sent_ns, 1, ping(0)));
        while let Some(outcome) = air.next(sent_ns + 19 * MS) {
            match outcome {
                Outcome::Delivered { at_ns, to: 0, .. } => {
                    assert!(air.arrive(at_ns, 0, ping(1)));
                }
                Outcome::Delivered { at_ns, .. } => round_trips.push(at_ns - sent_ns),
                Outcome::Finished { .. } => {}
            }
        }
    }
    round_trips
}

#[test]
fn an_idle_ping_is_exact() {
    // Data of 120 octets at 11 Mbit/s, rounded up to a ns: 192 + 87.272727... us.
    let b_ns = 2 * 279_273 + 10_000 + 248_000 + 50_000;
    let g_ns = 2 * 46_000 + 10_000 + 34_000 + 28_000;
    let rows = [
        ("802.11b", 11_000, b_ns, 20_000, 31, 1_176_546.0),
        ("802.11g", 54_000, g_ns, 9_000, 15, 231_500.0),
    ];
    for (standard, kbit, least_ns, slot_ns, window, mean_ns) in rows {
        let round_trips = pings(standard, kbit, 2_000);
        assert_eq!(round_trips.len(), 2_000);
        let found: BTreeSet<u64> = round_trips.iter().copied().collect();
        let possible: BTreeSet<u64> = (0..=window).map(|k| least_ns + k * slot_ns).collect();
        assert_eq!(found, possible, "{standard}");
        let mean = round_trips.iter().sum::<u64>() as f64 / 2_000.0;
        // Three standard errors of 2,000 backoffs.
        near(standard, mean, mean_ns, 0.011);
    }
}

/// Of a frame on air counts what has been on air.
#[test]
fn air_time_passes_with_the_frame() {
    for access in [Access::Dcf, Access::None] {
        let plan = Plan {
            access,
            ..plan("802.11b", 1)
        };
        let mut cell = Cell::new(plan, Matrix::full(2), &[11_000; 2]);
        // At once on an idle medium.
        cell.run(S);
        cell.saturate(1, To::Station(0), 1500);
        cell.run(S + MS);
        assert_eq!(cell.air.count(1).air_ns, MS, "{access:?}");
        for step in 1..2_000 {
            cell.run(S + MS + step * MS / 10);
            for count in (0..2).map(|station| cell.air.count(station)) {
                assert!(count.air_ns <= count.busy_ns);
                assert!(count.air_ns <= cell.air.now_ns());
            }
        }
    }
}
