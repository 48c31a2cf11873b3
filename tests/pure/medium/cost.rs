// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a frame costs: no allocation in steady state, and few events.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;
use std::sync::Arc;

use emud::medium::air::{Air, Discipline, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Disk, Matrix, PathLoss, Radio, Reach, STANDARDS};

use super::traffic::{Cell, MS, S, plan};

thread_local! {
    static ALLOCATIONS: Counter<u64> = const { Counter::new(0) };
}

/// The system's allocator, which counts for each thread.
struct Counting;

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: that of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: that of the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_frame_allocates_nothing() {
    for (rts_bytes, listens) in [(None, false), (None, true), (Some(0), true)] {
        let plan = Plan {
            rts_bytes,
            ..plan("802.11b", 1)
        };
        let mut cell = Cell::new(plan, Matrix::full(31), &[11_000; 31]);
        cell.air.set_promiscuous(7, listens);
        for station in 1..30 {
            cell.saturate(station, To::Station(0), 1500);
        }
        cell.saturate(30, To::All, 500);
        cell.run(S);
        let before = ALLOCATIONS.get();
        drop(Box::new(1));
        assert_eq!(ALLOCATIONS.get(), before + 1, "the counter does not count");
        let deliveries = cell.deliveries;
        cell.run(3 * S);
        assert!(cell.deliveries > deliveries + 500);
        assert_eq!(ALLOCATIONS.get(), before + 1);
    }
}

/// Across a hundred stations, of which several send at the same time: out of range, with powers that add up,
/// and with queues that have bands. One of them receives what is for others.
#[test]
fn a_frame_of_a_large_network_allocates_nothing() {
    let at = |n: u32| [f64::from(n % 10) * 150.0, f64::from(n / 10) * 150.0];
    let positions: Vec<_> = (0..100).map(at).collect();
    let radio = Radio::new(&STANDARDS[0], PathLoss::LogDistance { exponent: 2.8 });
    for (matrix, discipline) in [
        (
            Matrix::disk(&positions, Disk::default(), 1e-6),
            Discipline::Priority,
        ),
        (Matrix::radio(&positions, &radio, 1e-6), Discipline::Fifo),
    ] {
        let plan = Plan {
            discipline,
            ..plan("802.11b", 1)
        };
        let mut cell = Cell::new(plan, matrix, &[11_000; 100]);
        cell.air.set_promiscuous(55, true);
        // To the right, and from the last column to the left.
        for station in (0..100).filter(|n| n % 10 % 3 == 0) {
            let to = if station % 10 == 9 {
                station - 1
            } else {
                station + 1
            };
            cell.saturate(station, To::Station(to as u16), 1500);
        }
        cell.run(S / 2);
        let (before, deliveries) = (ALLOCATIONS.get(), cell.deliveries);
        cell.run(S);
        assert!(cell.deliveries > deliveries + 300, "{}", cell.deliveries);
        assert_eq!(ALLOCATIONS.get(), before);
    }
}

/// 802.11n with all that it has: aggregates with bit errors, four categories in each sender, a rate by
/// statistics, and a station that receives what is for others. Now and then more packets than ever before wait for an
/// earlier one, which takes memory once.
#[test]
fn an_aggregate_allocates_nothing() {
    let plan = Plan {
        aggregate: 64,
        queue_packets: 200,
        discipline: Discipline::Edca,
        rate: RateControl::Minstrel,
        ..plan("802.11n", 1)
    };
    let slowest = plan.timing.slowest();
    let matrix = Matrix::new(4, |_, to| Some(Reach::full(to).with_ber(1e-5)));
    let mut air = Air::new(plan, Arc::new(matrix), &[slowest; 4]);
    air.set_promiscuous(3, true);
    let packet = |ds: u8| Frame {
        to: To::Station(0),
        bytes: 1500,
        token: ds,
    };
    // Voice and video leave time for the others.
    let pause_ns = |ds: u8| if ds < 0x80 { 0 } else { 20 * MS };
    let run = |air: &mut Air<u8>, until_ns: u64| {
        let mut deliveries = 0;
        while let Some(outcome) = air.next(until_ns) {
            match outcome {
                Outcome::Finished {
                    at_ns,
                    station,
                    token,
                    ..
                } => {
                    let next_ns = at_ns + pause_ns(token);
                    assert!(air.arrive_with(next_ns, station, packet(token), token));
                }
                Outcome::Delivered { .. } => deliveries += 1,
            }
        }
        deliveries
    };
    for station in [1, 2] {
        for (ds, packets) in [(0xb8, 5), (0xa0, 5), (0, 100), (0x20, 100)] {
            (0..packets).for_each(|_| assert!(air.arrive_with(0, station, packet(ds), ds)));
        }
    }
    run(&mut air, 2 * S);
    let before = ALLOCATIONS.get();
    let deliveries = run(&mut air, 4 * S);
    let allocations = ALLOCATIONS.get() - before;
    println!("{allocations} allocations for {deliveries} deliveries");
    assert!(deliveries > 5_000 && allocations < 20, "{allocations}");
    let count = air.count(1);
    assert!(count.damaged > 0 && count.internal > 0, "{count:?}");
    assert!(air.count(3).received > 3_000, "{:?}", air.count(3));
}

/// An access, its end, the answer, its end: slots are no events, nor are accesses that are put off.
#[test]
fn an_exchange_is_a_handful_of_events() {
    let mut cell = Cell::new(plan("802.11b", 1), Matrix::full(51), &[11_000; 51]);
    for station in 1..51 {
        cell.saturate(station, To::Station(0), 1500);
    }
    cell.run(10 * S);
    let attempts: u64 = cell.counts().iter().map(|c| c.attempts).sum();
    let per_attempt = cell.air.events() as f64 / attempts as f64;
    println!("{per_attempt:.2} events for each of {attempts} attempts");
    assert!(per_attempt < 5.0, "{per_attempt}");
}
