// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change that the kernel makes at its time, exact to the ns, whether or not a process is there.

use super::rules::{bench, send};
use super::*;

const TURN: u64 = 5 * MS;

fn delay(ms: u32) -> Link {
    let text = format!("[link]\ndelay = \"{ms}ms\"\n");
    emud::profile::Profile::parse(&text, "t").unwrap().up
}

/// Prepares another delay in both directions.
fn prepare(b: &mut Bench, ms: u32) -> emud::datapath::maps::Prepared {
    let both = [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| b.compile(&delay(ms), 1, d, b.place));
    let both = both.each_ref().map(std::slice::from_ref);
    b.maps.prepare(both, &rule_keys::none()).unwrap()
}

#[test]
fn at_its_time_both_directions_change() {
    let mut b = bench("[link]\ndelay = \"20ms\"\n");
    let frame = udp4(100, 1);
    let prepared = prepare(&mut b, 70);
    b.maps.enforce_at(prepared, b.start + TURN).unwrap();
    // Later and later: the link keeps the order.
    let delay = |b: &Bench, at: u64| {
        let delays =
            [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| send(b, d, &frame, at, 0).departure - at);
        assert_eq!(delays[0], delays[1]);
        delays[0]
    };
    assert_eq!(delay(&b, TURN - 1), 20 * MS);
    assert_eq!(delay(&b, TURN), 70 * MS);
    assert_eq!(delay(&b, TURN + 1), 70 * MS);
    b.maps.settle().unwrap();
    assert_eq!(b.maps.turns_at().unwrap(), None);
    assert_eq!(delay(&b, TURN + 2), 70 * MS);
    let prepared = prepare(&mut b, 1);
    assert_eq!(delay(&b, TURN + 3), 70 * MS);
    b.maps.enforce(prepared).unwrap();
    assert_eq!(delay(&b, 100 * TURN), MS);
}

/// The process that was to complete a change is gone: the next one begins from that.
#[test]
fn one_that_nobody_completes_precedes_the_next_one() {
    let mut b = bench("[link]\ndelay = \"20ms\"\n");
    let frame = udp4(100, 1);
    let prepared = prepare(&mut b, 70);
    b.maps.enforce_at(prepared, b.start + 1000 * TURN).unwrap();
    let prepared = prepare(&mut b, 3);
    assert_eq!(b.send(&frame, 0).departure, 70 * MS);
    b.maps.enforce(prepared).unwrap();
    let later = 100 * TURN;
    assert_eq!(b.send(&frame, later).departure, later + 3 * MS);
    // The time of the first one is over, too.
    let later = 2000 * TURN;
    assert_eq!(b.send(&frame, later).departure, later + 3 * MS);
}
