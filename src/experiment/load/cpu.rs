// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that compute.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::{CpuLoaded, LoadError, failed, sleep_until};
use crate::host::{nanoseconds, now_ns};

/// Iterations between two readings of the clock: some microseconds.
const SPIN: u64 = 4096;

/// A load of CPUs.
#[derive(Debug, Clone)]
pub struct Cpu {
    /// Busy threads.
    pub threads: usize,
    /// Share of a CPU for each thread, 0.0..=1.0.
    pub share: f64,
    /// Pause after each burst; the burst has the length that yields the share.
    pub pause: Duration,
}

impl Cpu {
    /// Computes until `stop` is set. A burst is CPU time, so a thread that waits for a CPU makes up
    /// for it as long as there is one.
    ///
    /// # Errors
    /// There is nothing to do, or a thread cannot be started.
    pub fn run(&self, stop: &AtomicBool) -> Result<CpuLoaded, LoadError> {
        if self.threads == 0 || self.share <= 0.0 {
            let message = "a load of 0 threads or 0 %: use at least 1 thread and a share above 0 %";
            return Err(LoadError::Usage(message.into()));
        }
        let burst_ns = burst_ns(self.share, self.pause);
        let begin = now_ns();
        let cpu_ns = thread::scope(|scope| {
            let start =
                |_| thread::Builder::new().spawn_scoped(scope, || self.busy(burst_ns, stop));
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            if threads.iter().any(Result::is_err) {
                stop.store(true, Ordering::Relaxed);
            }
            let mut all = 0;
            for thread in threads {
                all += thread.map_err(failed("a thread"))?.join().unwrap_or(0);
            }
            Ok(all)
        })?;
        Ok(CpuLoaded {
            threads: self.threads,
            cpu_ns,
            duration_ns: now_ns() - begin,
        })
    }

    /// Returns the CPU time of the thread.
    fn busy(&self, burst_ns: Option<u64>, stop: &AtomicBool) -> u64 {
        let mut begin = cpu_ns();
        while !stop.load(Ordering::Relaxed) {
            (0..SPIN).for_each(|n| {
                black_box(n);
            });
            let now = cpu_ns();
            if burst_ns.is_some_and(|burst| now - begin >= burst) {
                let pause = nanoseconds(self.pause);
                sleep_until(now_ns().saturating_add(pause), stop);
                begin = now;
            }
        }
        cpu_ns()
    }
}

/// Returns the CPU time before each pause that gives a thread its share, in ns; `None`: it never pauses.
fn burst_ns(share: f64, pause: Duration) -> Option<u64> {
    let pauses = share / (1.0 - share);
    (share < 1.0).then(|| (pause.as_nanos() as f64 * pauses).round() as u64)
}

/// Returns the CPU time of this thread in ns.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::load::tests::for_a_while;

    #[test]
    fn a_burst_and_its_pause_have_the_share() {
        for (share, pause_ms, burst_ms) in [(0.25, 3, 1), (0.9, 3, 27), (0.5, 10, 10)] {
            let burst = burst_ns(share, Duration::from_millis(pause_ms));
            assert_eq!(burst, Some(burst_ms * 1_000_000), "{share}");
        }
        assert_eq!(burst_ns(1.0, Duration::from_millis(3)), None);
    }

    /// At most its share. On a machine where eleven processes wanted a CPU it got 6 % of one.
    #[test]
    fn a_share_of_a_cpu() {
        let load = Cpu {
            threads: 2,
            share: 0.25,
            pause: Duration::from_millis(3),
        };
        let loaded = for_a_while(400, |stop| load.run(stop)).unwrap();
        let share = loaded.cpu_ns as f64 / loaded.duration_ns as f64 / 2.0;
        assert!((0.002..0.27).contains(&share), "{share} {loaded:?}");
        assert!(loaded.duration_ns >= 400_000_000, "{loaded:?}");
    }

    #[test]
    fn all_of_a_cpu() {
        let load = Cpu {
            threads: 1,
            share: 1.0,
            pause: Duration::from_millis(10),
        };
        let loaded = for_a_while(200, |stop| load.run(stop)).unwrap();
        assert!(loaded.cpu_ns > 2_000_000, "{loaded:?}");
        let nothing = Cpu { share: 0.0, ..load };
        let error = nothing.run(&AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.exit_code(), 64);
    }
}
