// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time and CPU of a thread.

/// CLOCK_MONOTONIC, ns.
pub fn now() -> u64 {
    of(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, ns.
pub fn used() -> u64 {
    of(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub(crate) fn of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a time of [`now`]. Absolute, so that a late start of one packet does not move the
/// others. The kernel starts a timer also for a time that has passed: a sender that was late then
/// sent 45,000 packets/s, of 100,000.
pub fn sleep_until(at_ns: u64) {
    if now() >= at_ns {
        return;
    }
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: a valid time; the rest of it is not requested.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

pub fn spin_until(due_ns: u64) {
    while now() < due_ns {
        std::hint::spin_loop();
    }
}

/// The calling thread runs on this CPU only.
pub fn pin(cpu: usize) {
    // SAFETY: an all-zero set is the empty one, and it outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        let done = libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// The calling thread becomes SCHED_FIFO.
pub fn real_time(priority: i32) {
    schedule(libc::SCHED_FIFO, priority);
}

/// The calling thread gets this real-time policy.
pub fn schedule(policy: i32, priority: i32) {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters outlive the call.
    let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// How many CPUs this machine has.
pub fn cpus() -> usize {
    // SAFETY: a plain call.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as usize }
}

/// The CPU for tasks that need one exclusively: the last.
pub fn spare_cpu() -> String {
    (cpus() - 1).to_string()
}
