// SPDX-License-Identifier: MIT OR Apache-2.0
//! How stations share the medium: by accesses, not by time (Heusse et al., INFOCOM 2003), and
//! broadcasts, which nobody acknowledges.

use emud::medium::air::To;
use emud::medium::phy::Matrix;
use support::count;

use super::traffic::{Cell, S, near, plan, saturated};

#[test]
fn a_slow_station_slows_all() {
    // The formula counts collisions of two frames only: with four stations it is a little too high.
    let rows: [(&[u32], f64, f64); 5] = [
        (&[11_000, 11_000], 3.273, 0.02),
        (&[11_000, 5_500], 2.474, 0.02),
        (&[11_000, 2_000], 1.334, 0.02),
        (&[11_000, 1_000], 0.771, 0.02),
        (&[11_000, 11_000, 11_000, 1_000], 0.586, 0.03),
    ];
    // Two fifths of the accesses have 1.6 times the error.
    let seconds = count(150);
    let wider = (150.0 / seconds as f64).sqrt();
    for (rates, expected, within) in rows {
        let kbit = [&[11_000], rates].concat();
        let matrix = Matrix::full(kbit.len());
        let cell = saturated(plan("802.11b", 3), matrix, &kbit, seconds * S);
        let shares = &cell.sent_mbit()[1..];
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        near(&format!("{rates:?}"), mean, expected, within);
        for share in shares {
            // Of some 15,000 accesses in 150 s, with runs of the winner of a collision.
            near("  each", *share, mean, 0.03 * wider);
        }
    }
}

/// Each sender's window stays at its least, so an attempt succeeds with (1 - tau)^4, tau = 2 / 33.
#[test]
fn broadcasts_collide_and_are_not_repeated() {
    let mut cell = Cell::new(plan("802.11b", 4), Matrix::full(6), &[11_000; 6]);
    for station in 1..6 {
        cell.saturate(station, To::All, 500);
    }
    cell.run(60 * S);
    let counts = cell.counts();
    let sent: u64 = counts.iter().map(|c| c.sent).sum();
    let attempts: u64 = counts.iter().map(|c| c.attempts).sum();
    // But for those on air at the end.
    assert!(attempts - sent <= 5, "{attempts} {sent}");
    near(
        "share received",
        counts[0].received as f64 / sent as f64,
        0.779,
        0.04,
    );
    // At 1 Mbit/s, the lowest basic rate: 192 + 8 * 536 us each, but for those on air.
    let air_ns: u64 = counts.iter().map(|c| c.air_ns).sum();
    assert!((sent * 4_480_000..=attempts * 4_480_000).contains(&air_ns));
}
