// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the host from sample to sample. What cannot be known is null, never 0.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use emud_monitor::log::{BusiestCpu, CpuSample, DiskSample, HostSample, MemorySample, SwapSample};
use rustix::param::page_size;

use crate::host::counters::{
    CpuTimes, Cpus, Disk, cpus, disks, memory_bytes, swapped_pages, whole_disks,
};
use crate::host::now_ns;

/// The kernel counts times of CPUs in ticks of 10 ms: of a shorter interval they say little, and to read
/// them costs up to a millisecond with many CPUs.
const SHORTEST: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct HostWatch {
    before: Option<Reading>,
}

/// A reading of the host's counters.
#[derive(Debug, Clone, Default)]
struct Reading {
    mono_ns: u64,
    cpus: Option<Cpus>,
    memory: Option<MemorySample>,
    /// In and out.
    swapped_pages: Option<[u64; 2]>,
    disks: Option<BTreeMap<String, Disk>>,
}

impl HostWatch {
    /// Returns the interval since the line before; none: there is no reading before, or it is too young.
    pub(super) fn look(&mut self) -> Option<HostSample> {
        let young =
            |before: &Reading| now_ns().saturating_sub(before.mono_ns) < SHORTEST.as_nanos() as u64;
        if self.before.as_ref().is_some_and(young) {
            return None;
        }
        let now = Reading::now();
        let sample = self.before.as_ref().map(|before| now.since(before));
        self.before = Some(now);
        sample
    }
}

impl Reading {
    fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let mono_ns = now_ns();
        let whole = whole_disks().ok();
        Self {
            mono_ns,
            cpus: text("/proc/stat").and_then(|stat| cpus(&stat)),
            memory: text("/proc/meminfo").and_then(|info| memory(&info)),
            swapped_pages: text("/proc/vmstat").and_then(|vmstat| swapped_pages(&vmstat)),
            disks: (text("/proc/diskstats").zip(whole))
                .and_then(|(stats, whole)| disks(&stats, &whole)),
        }
    }

    fn since(&self, before: &Self) -> HostSample {
        let interval_ns = self.mono_ns.saturating_sub(before.mono_ns);
        let both = self.swapped_pages.zip(before.swapped_pages);
        let swapped = |at: usize| {
            let (now, before) = both?;
            now[at]
                .checked_sub(before[at])?
                .checked_mul(page_size() as u64)
        };
        let disks = self.disks.as_ref().zip(before.disks.as_ref());
        HostSample {
            mono_ns: self.mono_ns,
            interval_ns,
            cpu: (self.cpus.as_ref().zip(before.cpus.as_ref()))
                .and_then(|(now, before)| cpu(now, before)),
            memory: self.memory,
            swap: swapped(0)
                .zip(swapped(1))
                .map(|(in_bytes, out_bytes)| SwapSample {
                    in_bytes,
                    out_bytes,
                }),
            disks: disks.map(|(now, before)| {
                let disk =
                    |(name, now): (&String, &Disk)| disk(name, now, before.get(name), interval_ns);
                now.iter().filter_map(disk).collect()
            }),
        }
    }
}

fn memory(info: &str) -> Option<MemorySample> {
    Some(MemorySample {
        total_bytes: memory_bytes(info, "MemTotal")?,
        available_bytes: memory_bytes(info, "MemAvailable")?,
    })
}

fn cpu(now: &Cpus, before: &Cpus) -> Option<CpuSample> {
    let all = shares(&now.all, &before.all)?;
    // One that was offline in between has no interval.
    let each = now
        .each
        .iter()
        .filter_map(|(cpu, now)| Some((*cpu, now, before.each.get(cpu)?)));
    let busy = |(cpu, now, before)| {
        let busy = shares(now, before)?.busy;
        Some(BusiestCpu { cpu, busy })
    };
    let each: Option<Vec<BusiestCpu>> = each.map(busy).collect();
    let busiest = each.and_then(|each| each.into_iter().max_by(|a, b| a.busy.total_cmp(&b.busy)));
    Some(CpuSample { busiest, ..all })
}

/// Returns the shares of CPU time; `None`: a counter went back, or there was no tick.
fn shares(now: &CpuTimes, before: &CpuTimes) -> Option<CpuSample> {
    let user = now.user.checked_sub(before.user)?;
    let system = now.system.checked_sub(before.system)?;
    let steal = now.steal.checked_sub(before.steal)?;
    // When the last program that waits for a disk moves to another CPU, the kernel moves a whole sleep
    // from one of the two to the other. Only their sum never goes back.
    let idle = (now.idle + now.iowait).checked_sub(before.idle + before.iowait)?;
    let waited = (now.iowait.checked_sub(before.iowait)).filter(|_| now.idle >= before.idle);
    let total = user + system + steal + idle;
    let share = |ticks: u64| ticks as f64 / total as f64;
    (total > 0).then(|| CpuSample {
        busy: share(total - idle),
        user: share(user),
        system: share(system),
        steal: share(steal),
        iowait: waited.map(share),
        busiest: None,
    })
}

/// Returns the sample of a disk; `None`: it did nothing.
fn disk(name: &str, now: &Disk, before: Option<&Disk>, interval_ns: u64) -> Option<DiskSample> {
    let grown = |of: fn(&Disk) -> u64| of(now).checked_sub(of(before?));
    let [read_bytes, written_bytes, busy_ms] = [
        grown(|disk| disk.read_bytes),
        grown(|disk| disk.written_bytes),
        grown(|disk| disk.busy_ms),
    ];
    // The kernel counts up to a tick too much.
    let share = |ms: u64| (ms as f64 * 1e6 / interval_ns.max(1) as f64).min(1.0);
    let idle = [read_bytes, written_bytes, busy_ms] == [Some(0); 3];
    (!idle).then(|| DiskSample {
        name: name.to_owned(),
        busy: busy_ms.map(share),
        read_bytes,
        written_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(user: u64, system: u64, steal: u64, idle: u64, iowait: u64) -> CpuTimes {
        CpuTimes {
            user,
            system,
            steal,
            idle,
            iowait,
        }
    }

    fn reading(mono_ms: u64, cpu: CpuTimes) -> Reading {
        let cpus = Cpus {
            all: cpu,
            each: (0..2).map(|n| (n, cpu)).collect(),
        };
        Reading {
            mono_ns: mono_ms * 1_000_000,
            cpus: Some(cpus),
            memory: memory("MemTotal: 8 kB\nMemAvailable: 3 kB\n"),
            swapped_pages: Some([10, 20]),
            disks: Some(BTreeMap::new()),
        }
    }

    const START: CpuTimes = CpuTimes {
        user: 1000,
        system: 1000,
        steal: 1000,
        idle: 1000,
        iowait: 1000,
    };

    #[test]
    fn shares_of_an_interval() {
        let before = reading(1_000, START);
        let mut now = reading(3_000, ticks(1050, 1020, 1010, 1100, 1020));
        if let Some(cpus) = &mut now.cpus {
            cpus.each.insert(1, ticks(1080, 1020, 1050, 1050, 1000));
            // It has just been switched on.
            cpus.each.insert(7, ticks(9000, 0, 0, 0, 0));
        }
        now.swapped_pages = Some([13, 20]);
        let sample = now.since(&before);
        assert_eq!(
            (sample.mono_ns, sample.interval_ns),
            (3_000_000_000, 2_000_000_000)
        );
        let cpu = sample.cpu.unwrap();
        assert_eq!(
            [cpu.busy, cpu.user, cpu.system, cpu.steal],
            [0.4, 0.25, 0.1, 0.05]
        );
        assert_eq!(cpu.iowait, Some(0.1));
        assert_eq!(cpu.busiest, Some(BusiestCpu { cpu: 1, busy: 0.75 }));
        let memory = sample.memory.unwrap();
        assert_eq!((memory.total_bytes, memory.available_bytes), (8192, 3072));
        let swap = sample.swap.unwrap();
        assert_eq!((swap.in_bytes, swap.out_bytes), (3 * page_size() as u64, 0));
        assert_eq!(sample.disks, Some(vec![]));
    }

    /// Each counter that went back makes its value unknown, and no other.
    #[test]
    fn counters_that_went_back() {
        let before = reading(1_000, START);
        for back in [
            ticks(999, 1020, 1010, 1100, 1020),
            ticks(1050, 999, 1010, 1100, 1020),
            ticks(1050, 1020, 999, 1100, 1020),
            ticks(1050, 1020, 1010, 980, 1010),
            // Not a tick.
            START,
        ] {
            let sample = reading(2_000, back).since(&before);
            assert_eq!(sample.cpu, None, "{back:?}");
            assert!(sample.memory.is_some() && sample.swap.is_some());
        }
        // A sleep that moved from one to the other, and would be more than the whole interval.
        for moved in [
            ticks(1050, 1000, 1000, 500, 1550),
            ticks(1050, 1000, 1000, 1550, 500),
        ] {
            let cpu = reading(2_000, moved).since(&before).cpu.unwrap();
            assert_eq!((cpu.busy, cpu.iowait), (0.5, None));
        }
        let mut now = reading(2_000, ticks(1050, 1020, 1010, 1100, 1020));
        if let Some(cpus) = &mut now.cpus {
            cpus.each.insert(1, ticks(0, 0, 0, 1, 0));
        }
        now.swapped_pages = Some([11, 19]);
        let sample = now.since(&before);
        assert_eq!((sample.cpu.unwrap().busiest, sample.swap), (None, None));
    }

    #[test]
    fn what_was_not_read_is_not_zero() {
        let before = reading(1_000, START);
        let now = reading(2_000, ticks(1050, 1020, 1010, 1100, 1020));
        let nothing = |mono_ms: u64| Reading {
            mono_ns: mono_ms * 1_000_000,
            ..Reading::default()
        };
        let unknown = nothing(2_000).since(&before);
        assert_eq!(
            (unknown.cpu, unknown.memory, unknown.swap, unknown.disks),
            (None, None, None, None)
        );
        let after = now.since(&nothing(1_000));
        assert_eq!((after.cpu, after.swap, after.disks), (None, None, None));
        assert!(after.memory.is_some());
        assert_eq!(memory("MemTotal: 8 kB\n"), None);
    }

    #[test]
    fn disks_of_an_interval() {
        let of = |read_bytes, written_bytes, busy_ms| Disk {
            read_bytes,
            written_bytes,
            busy_ms,
        };
        let before = of(4096, 512, 100);
        let sample = |now: Disk| disk("vda", &now, Some(&before), 200_000_000);
        assert_eq!(sample(before), None);
        let want = |busy, read_bytes, written_bytes| {
            Some(DiskSample {
                name: "vda".to_owned(),
                busy,
                read_bytes,
                written_bytes,
            })
        };
        assert_eq!(
            sample(of(8192, 512, 150)),
            want(Some(0.25), Some(4096), Some(0))
        );
        // A tick too much.
        assert_eq!(
            sample(of(4096, 512, 304)),
            want(Some(1.0), Some(0), Some(0))
        );
        // The kernel's counter of 32 bits began again.
        assert_eq!(sample(of(4096, 1024, 5)), want(None, Some(0), Some(512)));
        assert_eq!(disk("vda", &before, None, 1), want(None, None, None));
    }
}
