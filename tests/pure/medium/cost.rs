// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a frame costs: no allocation in steady state, and few events.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;

use emud::medium::air::{Discipline, Plan, To};
use emud::medium::phy::{Disk, Matrix, PathLoss, Radio, STANDARDS};

use super::traffic::{Cell, S, plan};

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
    for rts_bytes in [None, Some(0)] {
        let plan = Plan {
            rts_bytes,
            ..plan("802.11b", 1)
        };
        let mut cell = Cell::new(plan, Matrix::full(31), &[11_000; 31]);
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
/// and with queues that have bands.
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
