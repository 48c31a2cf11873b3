// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link that ends by itself: exact to the ns, in both directions, and it may begin again.

use super::rules::{bench, send};
use super::*;

#[test]
fn from_its_end_on_packets_pass() {
    let mut b = bench("[link]\ndelay = \"20ms\"\n");
    let frame = udp4(100, 1);
    let end = 5 * MS;
    b.maps.end_at(b.start + end).unwrap();
    for direction in [abi::EMUD_UP, abi::EMUD_DOWN] {
        let at = |at: u64| send(&b, direction, &frame, at, 0);
        assert_eq!(at(end - 1).departure, end - 1 + 20 * MS);
        for late in [0, 1, 3600 * 1000 * MS] {
            let fate = at(end + late);
            assert_eq!((fate.verdict, fate.departure), (TC_ACT_UNSPEC, end + late));
        }
    }
    assert_eq!(b.counters().packets, 1, "what passes is not counted");
    b.maps.end_at(b.start + 2 * end).unwrap();
    assert_eq!(b.send(&frame, end).departure, end + 20 * MS);
}
