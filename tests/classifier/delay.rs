// SPDX-License-Identifier: GPL-2.0-only
//! Delays: distributions, correlation, order and reordering.

use super::*;

#[test]
fn smoke() {
    let b = Bench::new(&jitter(
        100_000,
        10_000.0,
        Distribution::Normal,
        Reorder::Never,
    ));
    let frame = udp4(100, 1000);
    let t = std::time::Instant::now();
    for i in 0..100_000u64 {
        b.send(&frame, i * 80_000);
    }
    println!("{:?} {}", t.elapsed(), b.counters().clamped);
}
