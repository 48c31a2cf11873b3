// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact cost of packets: in a guest that counts instructions as time, all time that a counting
//! thread of the lowest priority did not get.
//!
//! The time from the first packet to the last would be right only for a sender that never idles,
//! and the kernel's idle time is in units of 10 ms, on 7.2 nowhere finer. Here the sender may keep
//! to a rate, and packets may wait. The path into idleness and back, which a packet may or may not
//! cause, is not included.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use support::clock;

pub struct Spare {
    counter: Arc<Counter>,
    round_ns: f64,
    /// The share of an idle machine's time that goes elsewhere: its timer tick.
    tick: f64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counter {
    rounds: AtomicU64,
    stop: AtomicBool,
}

impl Counter {
    /// The same machine code whenever it runs, so each round takes as many instructions.
    #[inline(never)]
    fn count(&self, until: u64) {
        let mut rounds = self.rounds.load(Relaxed);
        while rounds < until && !self.stop.load(Relaxed) {
            rounds += 1;
            self.rounds.store(rounds, Relaxed);
        }
    }

    /// The minimum of several attempts is one without a tick.
    fn least_ns(&self, rounds: u64) -> f64 {
        let attempts = (0..20).map(|_| {
            let start = clock::now();
            self.count(self.rounds.load(Relaxed) + rounds);
            clock::now() - start
        });
        attempts.min().unwrap() as f64
    }

    fn round_ns(&self) -> f64 {
        const ROUNDS: u64 = 100_000;
        (self.least_ns(2 * ROUNDS) - self.least_ns(ROUNDS)) / ROUNDS as f64
    }
}

impl Spare {
    pub fn start() -> Self {
        let counter = Arc::new(Counter::default());
        let round_ns = counter.round_ns();
        // With 1 ns per instruction it is a whole number, except for the error of the guest's
        // clock.
        assert!(
            (round_ns - round_ns.round()).abs() < 0.01,
            "{round_ns} ns a round: not a guest whose clock counts instructions"
        );
        let counts = counter.clone();
        let thread = thread::spawn(move || {
            lowest_priority();
            counts.count(u64::MAX);
        });
        let mut spare = Self {
            counter,
            round_ns,
            tick: 0.0,
            thread: Some(thread),
        };
        const CALM: Duration = Duration::from_millis(400);
        let busy = spare.busy_ns(|| thread::sleep(CALM));
        spare.tick = busy / CALM.as_nanos() as f64;
        spare
    }

    /// The CPU time of `work`, and of the kernel meanwhile.
    pub fn busy_ns(&self, work: impl FnOnce()) -> f64 {
        let look = || (clock::now(), self.counter.rounds.load(Relaxed));
        let (start, spare) = look();
        work();
        let (end, more) = look();
        (end - start) as f64 * (1.0 - self.tick) - (more - spare) as f64 * self.round_ns
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.counter.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn lowest_priority() {
    // SAFETY: all zero is the only valid parameter of this policy, and it outlives the call.
    let done = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter)
    };
    assert_eq!(done, 0, "SCHED_IDLE: {}", std::io::Error::last_os_error());
}
