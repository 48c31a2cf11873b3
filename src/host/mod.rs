// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services of the host for emud's processes: locks between them, their folder, signals, the clock.

pub(crate) mod btf;
pub(crate) mod cgroup;
pub(crate) mod counters;
pub(crate) mod datagram;
pub mod interface;
pub mod lock;
pub(crate) mod open_files;
pub mod runtime;
pub mod signals;
pub mod ssh;

use std::io;
use std::sync::LazyLock;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;
use tokio::runtime::{Builder, Runtime};

/// Returns the time now in ns on CLOCK_MONOTONIC, the clock of every departure time.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns a duration in ns, at most 584 years.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns how many ns [`now_ns`] is ahead of the kernel's clock, by which BPF programs and qdiscs
/// measure: not 0 in a time namespace that shifts it.
pub fn clock_ahead_ns() -> i64 {
    // The file also counts for children, such as a holder. Kernels without time namespaces have none.
    let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("monotonic "));
    let mut figures = line.unwrap_or_default().split_whitespace();
    let mut figure = || figures.next().and_then(|figure| figure.parse::<i64>().ok());
    let [seconds, ns] = [figure(), figure()].map(Option::unwrap_or_default);
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// Returns whether the kernel has PREEMPT_RT, by its version: sysfs may be missing in a container.
pub fn has_preempt_rt() -> bool {
    // Each reading of counters wants to know it.
    static VERSION_SAYS_SO: LazyLock<bool> = LazyLock::new(|| {
        let uname = rustix::system::uname();
        uname.version().to_string_lossy().contains("PREEMPT_RT")
    });
    *VERSION_SAYS_SO
}

/// Returns the time of day in ns since 1970 (CLOCK_REALTIME), the clock of the kernel's timestamps.
pub(crate) fn wall_ns() -> u64 {
    let t = rustix::time::clock_gettime(ClockId::Realtime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns a time or a duration in ns as a `timespec`.
pub(crate) fn timespec(ns: u64) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}

/// Sleeps until a time of CLOCK_MONOTONIC in ns; a signal does not end it.
pub(crate) fn sleep_until(ns: u64) {
    while now_ns() < ns {
        // Interrupted: again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(ns));
    }
}

/// Returns random bytes of the kernel.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Returns a random seed. 32 bits: easy to copy by hand, and exact in JSON readers without integers.
///
/// # Errors
/// The kernel has no random numbers.
pub fn random_seed() -> io::Result<u64> {
    Ok(u32::from_ne_bytes(random()?).into())
}

/// Starts a thread with this name.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Returns a runtime for tasks of this thread only.
pub fn single_threaded() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Runs `trial` in a new network namespace, in a separate thread.
pub(crate) fn in_namespace<T: Send + 'static>(
    trial: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let tried = thread::spawn(|| {
        // SAFETY: only CLONE_NEWNET; nothing in this thread relies on the old namespace.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
            .map_err(|e| format!("cannot create a network namespace: {e}"))?;
        trial()
    });
    tried
        .join()
        .unwrap_or_else(|_| Err("the trial ended unexpectedly".to_owned()))
}
