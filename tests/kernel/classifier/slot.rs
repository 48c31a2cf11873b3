// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots against a simple implementation.

use super::timeline::lcg;
use super::*;
use emud::profile::Slot;

fn slotted(min_ns: u64, max_ns: u64, packets: Option<u32>, bytes: Option<u32>) -> Link {
    link(|l| {
        l.slot = Some(Slot {
            min_ns,
            max_ns,
            packets,
            bytes,
        });
    })
}

#[test]
fn slots_at_constant_distances_are_where_they_are_told_to_be() {
    let b = Bench::new(&slotted(10 * MS, 10 * MS, Some(3), None));
    let send = |at: u64| b.send(&udp4(100, 1), at).departure;
    assert_eq!(send(0), 0);
    assert_eq!(send(1), 10 * MS);
    assert_eq!([send(10 * MS), send(10 * MS)], [10 * MS; 2]);
    assert_eq!(send(10 * MS), 20 * MS, "the fourth");
    assert_eq!(send(20 * MS + 1), 30 * MS);
    // A long pause is skipped, and the slots are still at the same times.
    assert_eq!(send(5_003 * MS), 5_010 * MS);
    assert_eq!([send(5_003 * MS), send(5_003 * MS)], [5_010 * MS; 2]);
    assert_eq!(send(5_003 * MS), 5_020 * MS);
}

#[test]
fn a_slot_in_bytes_has_one_packet_at_least() {
    let b = Bench::new(&slotted(10 * MS, 10 * MS, None, Some(2500)));
    let send = |bytes, at: u64| b.send(&udp4(bytes, 1), at).departure / MS;
    let sent: Vec<_> = [1000, 1000, 1000, 1500, 100, 3000, 60]
        .into_iter()
        .map(|bytes| send(bytes, 5 * MS))
        .collect();
    assert_eq!(sent, [10, 10, 20, 20, 30, 40, 50]);
}

#[test]
fn random_slots_are_uniform_reproducible_and_filled_in_order() {
    let up = slotted(10 * MS, 20 * MS, Some(4), None);
    let mut seed = 5;
    let mut at = 0;
    // Pauses are always too short for skipping slots.
    let arrivals: Vec<u64> = (0..2_000)
        .map(|_| {
            at += lcg(&mut seed) % (6 * MS);
            at
        })
        .filter(|at| *at < 7_500 * MS)
        .collect();
    let run = |seed| -> Vec<u64> {
        let b = Bench::with(&up, seed, stamp_place());
        let frame = udp4(100, 1);
        arrivals
            .iter()
            .map(|at| b.send(&frame, *at).departure)
            .collect()
    };
    let first = run(42);
    assert_eq!(first, run(42));
    assert_ne!(first, run(43));
    // The slots in use, and all bounds on those in between.
    let mut slots = first.clone();
    slots.dedup();
    assert!(slots.windows(2).all(|w| w[0] < w[1]), "in order");
    let mut used = std::collections::BTreeMap::new();
    for (at, departure) in arrivals.iter().zip(&first) {
        assert!(departure >= at);
        *used.entry(*departure).or_insert(0) += 1;
    }
    assert!(used.values().all(|n| *n <= 4));
    // A simple implementation on the observed slots: the first with room.
    let mut room: Vec<(u64, u32)> = slots.iter().map(|s| (*s, 4)).collect();
    let mut from = 0;
    for (at, departure) in arrivals.iter().zip(&first) {
        while room[from].0 < *at || room[from].1 == 0 {
            from += 1;
        }
        room[from].1 -= 1;
        assert_eq!(room[from].0, *departure);
    }
    // At 3 ms a packet every slot is used: the distances are the draws.
    let d: Vec<f64> = slots.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let near: Vec<f64> = d.iter().copied().filter(|d| *d <= 20e6).collect();
    assert!(near.iter().all(|d| *d >= 10e6));
    assert!(
        near.len() * 100 >= d.len() * 99,
        "{} of {}",
        near.len(),
        d.len()
    );
    let (mean, sd) = moments(&near);
    let se = 10e6 / 12f64.sqrt() / (near.len() as f64).sqrt();
    assert!((mean - 15e6).abs() < 4.0 * se, "mean {mean}");
    // Of a uniform sample's deviation: 0.45 of the mean's.
    let want = 10e6 / 12f64.sqrt();
    assert!((sd - want).abs() < 4.0 * 0.45 * se, "sd {sd}");
}

#[test]
fn slots_come_after_the_delay() {
    let mut up = slotted(10 * MS, 10 * MS, Some(1), None);
    up.delay.mean_ns = 7 * MS;
    let b = Bench::new(&up);
    assert_eq!(b.send(&udp4(100, 1), 3 * MS).departure, 10 * MS);
    assert_eq!(b.send(&udp4(100, 1), 3 * MS).departure, 20 * MS);
    assert_eq!(b.send(&udp4(100, 1), 4 * MS).departure, 30 * MS);
}

#[test]
fn what_waits_for_slots_is_what_the_queue_has_room_for() {
    let mut up = slotted(10 * MS, 10 * MS, Some(2), None);
    up.queue.packets = Some(5); // Three slots.
    let b = Bench::new(&up);
    let send = |at: u64| b.send(&udp4(100, 1), at * MS);
    let departures: Vec<_> = (0..6).map(|_| send(1).departure / MS).collect();
    assert_eq!(departures, [10, 10, 20, 20, 30, 30]);
    assert_eq!(send(1).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().queue_dropped, 1);
    assert_eq!(send(12).departure, 40 * MS);
}

#[test]
fn slots_have_room_for_a_thousand_packets_by_default() {
    let b = Bench::new(&slotted(MS, MS, Some(1), None));
    let frame = udp4(100, 1);
    let admitted = (0..1_200).filter(|_| b.send(&frame, 1).verdict == TC_ACT_UNSPEC);
    assert_eq!(admitted.count(), 1_000);
}

#[test]
fn other_slots_do_not_come_before_those_in_use() {
    let mut b = Bench::new(&slotted(100 * MS, 100 * MS, Some(1), None));
    let frame = udp4(100, 1);
    let first: Vec<_> = (0..5).map(|_| b.send(&frame, 1).departure / MS).collect();
    assert_eq!(first, [100, 200, 300, 400, 500]);
    b.set(&slotted(20 * MS, 20 * MS, Some(1), None), 42, stamp_place());
    assert_eq!(b.send(&frame, 2 * MS).departure, 500 * MS);
    assert_eq!(b.send(&frame, 2 * MS).departure, 520 * MS);
    assert_eq!(b.send(&frame, 601 * MS).departure, 620 * MS);
}
