// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunes the holder for punctual wake-ups. Every step is optional: a rejected one makes frames
//! later, not wrong, so it is reported and not an error.

use std::num::NonZeroU64;
use std::{fs, io};

use crate::abi;
use rustix::thread::{
    CapabilitySet, CpuSet, capabilities, sched_getaffinity, sched_setaffinity,
    set_current_timer_slack,
};

/// Lowest real-time priority: above everything that is not real-time, below all that is. Two busy
/// loops beside 10,000 packets/s made frames 2 to 3 ms late (99th percentile) at nice -20 with a
/// short slice, 0.02 to 0.17 ms with this priority. A holder that cannot keep up leaves other tasks
/// on its CPU the share that the kernel withholds from real-time tasks, 5 % by default.
const PRIORITY: u32 = 1;
/// The fallback if real-time is not permitted: since 6.12 a task that requests a shorter slice than
/// the running one preempts it when it wakes up; 100 us is the minimum.
const SLICE_NS: u64 = 100_000;
const NICE: i32 = -20;

/// The scheduling of the thread.
#[derive(Debug)]
#[expect(missing_docs, reason = "the sentence of the variant has its field")]
pub enum Schedule {
    /// SCHED_RR at the lowest priority.
    RoundRobin,
    /// Nice -20 and a short time slice, because the kernel rejected real-time with `refused`.
    Nice { refused: io::Error },
}

/// The result of the tuning, with an error for each step that failed.
#[derive(Debug)]
pub struct Tuning {
    /// The CPU the thread is bound to: writes from two CPUs would overtake each other.
    pub cpu: io::Result<usize>,
    /// Timers fire on time instead of up to 50 us late.
    pub timer_slack: io::Result<()>,
    /// How the kernel schedules the holder.
    pub schedule: io::Result<Schedule>,
}

impl Tuning {
    /// Returns the flags of `enum emud_tuning` and the CPU; `locked`: the process is locked in
    /// memory.
    pub fn bits(&self, locked: bool) -> (u32, u32) {
        let realtime = matches!(self.schedule, Ok(Schedule::RoundRobin));
        let got = [
            (self.cpu.is_ok(), abi::EMUD_TUNED_CPU),
            (realtime, abi::EMUD_TUNED_REALTIME),
            (self.timer_slack.is_ok(), abi::EMUD_TUNED_TIMER),
            (locked, abi::EMUD_TUNED_MEMORY),
        ];
        let bits = got
            .iter()
            .filter(|(got, _)| *got)
            .fold(0, |bits, (_, bit)| bits | bit);
        (bits, self.cpu.as_ref().map_or(0, |cpu| *cpu as u32))
    }
}

/// Tunes the calling thread; `nth` picks one of the CPUs it may run on, modulo
/// their number.
pub fn tune_thread(nth: usize) -> Tuning {
    Tuning {
        cpu: pin(nth),
        timer_slack: set_current_timer_slack(NonZeroU64::new(1)).map_err(Into::into),
        schedule: schedule(),
    }
}

fn pin(nth: usize) -> io::Result<usize> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    let cpu = *cpus
        .get(nth % cpus.len().max(1))
        .ok_or(io::ErrorKind::NotFound)?;
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one)?;
    Ok(cpu)
}

fn schedule() -> io::Result<Schedule> {
    match set_real_time(0) {
        Ok(()) => Ok(Schedule::RoundRobin),
        Err(refused) => set_short_slice(0).map(|()| Schedule::Nice { refused }),
    }
}

/// Sets SCHED_RR at the lowest priority for this thread; `flags`: SCHED_FLAG_*.
pub(crate) fn set_real_time(flags: i32) -> io::Result<()> {
    set_schedule(&libc::sched_attr {
        sched_policy: libc::SCHED_RR as u32,
        sched_priority: PRIORITY,
        ..attributes(flags)
    })
}

/// Sets nice -20 and a short time slice for this thread; `flags`: SCHED_FLAG_*.
pub(crate) fn set_short_slice(flags: i32) -> io::Result<()> {
    set_schedule(&libc::sched_attr {
        sched_policy: libc::SCHED_OTHER as u32,
        sched_nice: NICE,
        sched_runtime: SLICE_NS,
        ..attributes(flags)
    })
}

/// Sets SCHED_DEADLINE for this thread: ahead of all others, up to `runtime_ns` in a `period_ns`;
/// `flags`: SCHED_FLAG_*.
pub(crate) fn set_deadline(runtime_ns: u64, period_ns: u64, flags: i32) -> io::Result<()> {
    set_schedule(&libc::sched_attr {
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_runtime: runtime_ns,
        sched_deadline: period_ns,
        sched_period: period_ns,
        ..attributes(flags)
    })
}

fn attributes(flags: i32) -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: flags as u64,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

fn set_schedule(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads attributes.size bytes from the pointer; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes, 0) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Protects a process from the kernel's out-of-memory killer: without the holder there is no link.
/// Lowering the score requires CAP_SYS_RESOURCE.
pub fn spare(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/oom_score_adj"), "-1000")
}

/// Locks the process in memory: a page fault would delay a frame.
pub fn lock_memory() -> io::Result<()> {
    lock_all(libc::MCL_CURRENT | libc::MCL_FUTURE)
}

/// Locks only memory that the process already uses: nothing is made resident in advance.
pub(crate) fn lock_used_memory() -> io::Result<()> {
    lock_all(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT)
}

fn lock_all(flags: i32) -> io::Result<()> {
    // Without the capability a limit applies, and the first allocation beyond the limit would fail.
    if !capabilities(None)?
        .effective
        .contains(CapabilitySet::IPC_LOCK)
    {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: no memory is passed.
    match unsafe { libc::mlockall(flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
