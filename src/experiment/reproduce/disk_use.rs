// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a disk was never empty, by the kernel's own count of requests: a second witness of the
//! monitor's criterion. That counts starts and ends of requests, and a kernel that withholds a single
//! end from it leaves a request pending that is none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{major, minor};

use crate::host::now_ns;

const EVERY: Duration = Duration::from_micros(500);
/// Fewer samples may all have missed that the disk was empty.
const SAMPLES: usize = 20;

/// The disk of a folder, watched until [`DiskUse::never_empty`].
pub(super) struct DiskUse {
    stop: Arc<AtomicBool>,
    /// Time in ns of CLOCK_MONOTONIC, and whether a request was pending.
    samples: JoinHandle<Vec<(u64, bool)>>,
}

impl DiskUse {
    /// Starts to watch the disk of a folder; `None`: its file system has no single disk with such a count.
    pub fn watch(folder: &str) -> Option<Self> {
        let device = fs::metadata(folder).ok()?.dev();
        let path = format!(
            "/sys/dev/block/{}:{}/inflight",
            major(device),
            minor(device)
        );
        fs::read(&path).ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let samples = thread::spawn(move || {
            let mut samples = vec![];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(text) = fs::read_to_string(&path) {
                    let pending = text.split_whitespace().any(|number| number != "0");
                    samples.push((now_ns(), pending));
                }
                thread::sleep(EVERY);
            }
            samples
        });
        Some(Self { stop, samples })
    }

    /// Returns whether it was never empty for this long after `from_ns`.
    pub fn never_empty(self, from_ns: u64, theta: Duration) -> bool {
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.samples.join().unwrap_or_default();
        never_empty(&samples, from_ns, theta)
    }
}

fn never_empty(samples: &[(u64, bool)], from_ns: u64, theta: Duration) -> bool {
    let measured = samples.iter().skip_while(|(at_ns, _)| *at_ns < from_ns);
    let measured: Vec<_> = measured.copied().collect();
    let mut busy = measured.split(|(_, pending)| !pending);
    busy.any(|busy| match busy {
        [(first, _), .., (last, _)] => {
            busy.len() >= SAMPLES && u128::from(last - first) >= theta.as_nanos()
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const THETA: Duration = Duration::from_millis(100);

    fn samples(pending: impl Fn(u64) -> bool) -> Vec<(u64, bool)> {
        (0..500).map(|ms| (ms * MS, pending(ms))).collect()
    }

    #[test]
    fn a_disk_that_is_empty_for_a_moment_starts_again() {
        assert!(never_empty(&samples(|_| true), 0, THETA));
        assert!(!never_empty(&samples(|_| false), 0, THETA));
        assert!(!never_empty(&samples(|ms| ms % 90 > 0), 0, THETA));
        assert!(never_empty(&samples(|ms| ms % 110 > 0), 0, THETA));
        // Before the measured phase it does not count.
        assert!(!never_empty(&samples(|ms| ms < 300), 250 * MS, THETA));
        // Too few to know.
        assert!(!never_empty(&[(0, true), (200 * MS, true)], 0, THETA));
        assert!(!never_empty(&[], 0, THETA));
    }
}
