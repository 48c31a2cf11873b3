// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is written over and over.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{LoadError, MemoryLoaded, STOPS_WITHIN, failed, sleep_until};
use crate::host::cgroup::memory_left;
use crate::host::counters::memory_bytes;
use crate::host::now_ns;

/// Bytes between two checks whether to stop.
const PIECE: usize = 1 << 20;
/// The kernel ends this process first when memory runs out.
const FIRST_VICTIM: &str = "1000";

/// A load of memory.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Size in bytes.
    pub size: u64,
    /// Write it once and keep it, instead of again and again.
    pub keep: bool,
    /// More than the memory that is available, so that pages are swapped.
    pub swap: bool,
}

impl Memory {
    /// Writes until `stop` is set.
    ///
    /// # Errors
    /// The control group of this process has less memory than `size`, or with `swap` less memory and swap space.
    pub fn run(&self, stop: &AtomicBool) -> Result<MemoryLoaded, LoadError> {
        let info = fs::read_to_string("/proc/meminfo").map_err(failed("/proc/meminfo"))?;
        self.fits(&info, memory_left())?;
        // Only lowered values need a capability.
        let victim = fs::write("/proc/self/oom_score_adj", FIRST_VICTIM);
        victim.map_err(failed("/proc/self/oom_score_adj"))?;
        let lacks = || LoadError::Lacks(format!("{} bytes cannot be reserved", self.size));
        let len = usize::try_from(self.size).map_err(|_| lacks())?;
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(len).map_err(|_| lacks())?;
        let faults = major_faults()?;
        let begin = now_ns();
        let (mut written, mut value) = (0, 1);
        // A piece is written even if this thread found a CPU only after the end.
        while memory.len() < len && (memory.is_empty() || !stop.load(Ordering::Relaxed)) {
            let piece = PIECE.min(len - memory.len());
            memory.resize(memory.len() + piece, value);
            written += piece as u64;
        }
        while !stop.load(Ordering::Relaxed) {
            if self.keep {
                sleep_until(now_ns() + STOPS_WITHIN.as_nanos() as u64, stop);
                continue;
            }
            value = u8::wrapping_add(value, 1);
            for piece in memory.chunks_mut(PIECE) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                black_box(&mut *piece).fill(value);
                written += piece.len() as u64;
            }
        }
        black_box(&memory);
        Ok(MemoryLoaded {
            size: self.size,
            written,
            major_faults: major_faults()?.saturating_sub(faults),
            duration_ns: now_ns() - begin,
        })
    }

    /// Checks the size against /proc/meminfo, and against what limits of control groups leave.
    fn fits(&self, info: &str, left: Option<u64>) -> Result<(), LoadError> {
        let bytes = |key: &str| {
            let lacks = || LoadError::Lacks(format!("/proc/meminfo has no {key}"));
            memory_bytes(info, key).ok_or_else(lacks)
        };
        let (available, swap) = (bytes("MemAvailable")?, bytes("SwapFree")?);
        let available = left.map_or(available, |left| left.min(available));
        let size = self.size;
        if size > available + swap {
            let message = format!(
                "{size} bytes are more than the {available} bytes of available memory and the \
                 {swap} bytes of free swap space, and the kernel would end processes: give a smaller size"
            );
            return Err(LoadError::Lacks(message));
        }
        if size > available && !self.swap {
            let message = format!(
                "{size} bytes are more than the {available} bytes of available memory (--swap \
                 occupies up to {swap} bytes of swap space, too)"
            );
            return Err(LoadError::Usage(message));
        }
        Ok(())
    }
}

/// Returns the major page faults of this process: field 12 of /proc/self/stat, which has the command's name before.
fn major_faults() -> Result<u64, LoadError> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(failed("/proc/self/stat"))?;
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let field = behind.split_whitespace().nth(9);
    let lacks = || LoadError::Lacks("/proc/self/stat has no major faults".into());
    field.and_then(|field| field.parse().ok()).ok_or_else(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(size: u64, swap: bool) -> Memory {
        Memory {
            size,
            keep: false,
            swap,
        }
    }

    #[test]
    fn what_does_not_fit_is_rejected() {
        let info = "MemTotal: 9000 kB\nMemAvailable:    1000 kB\nSwapFree:  500 kB\n";
        let of = |kib: u64, swap| {
            let fits = load(kib << 10, swap).fits(info, None);
            fits.map_err(|error| (error.exit_code(), error.to_string()))
        };
        assert_eq!(of(1000, false), Ok(()));
        assert_eq!(of(1500, true), Ok(()));
        let (code, text) = of(1001, false).unwrap_err();
        assert!(code == 64 && text.contains("--swap occupies"), "{text}");
        let (code, text) = of(1501, true).unwrap_err();
        assert!(code == 69 && text.contains("would end processes"), "{text}");
        assert!(load(1, true).fits("MemTotal: 1 kB", None).is_err());
        // A control group may leave less than the host.
        let within = |kib: u64, swap| load(kib << 10, swap).fits(info, Some(300 << 10)).is_ok();
        assert!(
            within(300, false) && !within(301, false) && within(800, true) && !within(801, true)
        );
        assert!(load(1000 << 10, false).fits(info, Some(9000 << 10)).is_ok());
    }
}
