// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a disk was never empty, by the kernel's own count of requests: a second witness of the
//! monitor's criterion. That counts starts and ends of requests, and a kernel that withholds a single
//! end from it leaves a request pending that is none.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use emud_monitor::Config;
use rustix::fs::{major, minor};

use crate::host::now_ns;

const EVERY: Duration = Duration::from_micros(500);
/// Fewer samples than one in this time may all have missed that the disk was empty.
const DENSE: Duration = Duration::from_millis(5);

/// A disk, watched until [`DiskUse::longest`], or until this value goes because a run failed.
pub(super) struct DiskUse {
    stop: Arc<AtomicBool>,
    /// Time in ns of CLOCK_MONOTONIC, and whether a request was pending; `None`: it is not watched any more.
    samples: Option<JoinHandle<Vec<(u64, bool)>>>,
}

/// Returns the time for which the criterion has a disk never empty.
pub(super) fn theta(config: &Config) -> Duration {
    let disk = config.disk.as_ref();
    disk.map_or(Duration::ZERO, |disk| disk.theta)
}

/// Returns the disk of the first swap area; `None`: there is none.
pub(super) fn of_swap() -> Option<u64> {
    let areas = fs::read_to_string("/proc/swaps").ok()?;
    let area = fs::metadata(areas.lines().nth(1)?.split_whitespace().next()?).ok()?;
    Some(match area.file_type().is_block_device() {
        true => area.rdev(),
        false => area.dev(),
    })
}

impl DiskUse {
    /// Starts to watch the disk of a folder; `None`: its file system has no single disk with such a count.
    pub fn watch(folder: &str) -> Option<Self> {
        Self::of(fs::metadata(folder).ok()?.dev())
    }

    /// The same of a disk; `None`: it has no such count.
    pub fn of(device: u64) -> Option<Self> {
        Self::by(format!(
            "/sys/dev/block/{}:{}/inflight",
            major(device),
            minor(device)
        ))
    }

    /// The same by the file with its count.
    fn by(path: String) -> Option<Self> {
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
        Some(Self {
            stop,
            samples: Some(samples),
        })
    }

    /// Returns the longest time after `from_ns` in which no sample found it empty. Between two samples it may have been.
    pub fn longest(mut self, from_ns: u64) -> Duration {
        longest(&self.end(), from_ns)
    }

    fn end(&mut self) -> Vec<(u64, bool)> {
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.samples.take();
        samples.map_or_else(Vec::new, |samples| samples.join().unwrap_or_default())
    }
}

/// A sample every 0.5 ms is a load itself, also on what is measured after a failure.
impl Drop for DiskUse {
    fn drop(&mut self) {
        self.end();
    }
}

fn longest(samples: &[(u64, bool)], from_ns: u64) -> Duration {
    let measured = samples.iter().skip_while(|(at_ns, _)| *at_ns < from_ns);
    let measured: Vec<_> = measured.copied().collect();
    let times = measured.split(|(_, pending)| !pending).filter_map(|busy| {
        let [(first, _), .., (last, _)] = busy else {
            return None;
        };
        let time = Duration::from_nanos(last - first);
        Some(time).filter(|time| *time <= DENSE * busy.len() as u32)
    });
    times.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    fn samples(pending: impl Fn(u64) -> bool) -> Vec<(u64, bool)> {
        (0..500).map(|ms| (ms * MS, pending(ms))).collect()
    }

    #[test]
    fn without_a_result_the_thread_ends_too() {
        let path = std::env::temp_dir().join(format!("emud-inflight-{}", std::process::id()));
        fs::write(&path, "       1        0\n").unwrap();
        let disk = DiskUse::by(path.display().to_string()).unwrap();
        let stop = Arc::downgrade(&disk.stop);
        drop(disk);
        // It was the last one that had it.
        assert_eq!(stop.strong_count(), 0);
        let disk = DiskUse::by(path.display().to_string()).unwrap();
        assert_eq!(disk.longest(u64::MAX), Duration::ZERO);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_disk_that_is_empty_for_a_moment_starts_again() {
        let of = |samples: &[_], from_ms: u64| longest(samples, from_ms * MS).as_millis();
        assert_eq!(of(&samples(|_| true), 0), 499);
        assert_eq!(of(&samples(|_| false), 0), 0);
        assert_eq!(of(&samples(|ms| ms % 90 > 0), 0), 88);
        assert_eq!(of(&samples(|ms| ms % 110 > 0), 0), 108);
        // Before the measured phase it does not count.
        assert_eq!(of(&samples(|ms| ms < 300), 250), 49);
        // Too few to know.
        assert_eq!(of(&[(0, true), (200 * MS, true)], 0), 0);
        assert_eq!(of(&[], 0), 0);
    }
}
