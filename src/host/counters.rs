// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts of the whole host: CPUs, memory, swap, disks. Readers of the texts of /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

/// Size of a sector in /proc/diskstats, whatever that of the disk.
const SECTOR: u64 = 512;

/// Times of a CPU, or of all, since the start of the host, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time of programs, also niced ones and guests.
    pub user: u64,
    /// Time of the kernel, with interrupts.
    pub system: u64,
    /// Given to others by the hypervisor.
    pub steal: u64,
    /// Without work, without `iowait`.
    pub idle: u64,
    /// Without work, while a program waited for a disk.
    pub iowait: u64,
}

/// Times of all CPUs together, and of each that is online by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    pub all: CpuTimes,
    pub each: BTreeMap<u32, CpuTimes>,
}

/// Counters of a disk since it appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Time with a request in progress, ms; the kernel's counter has 32 bits.
    pub busy_ms: u64,
}

/// Reads /proc/stat; none: it is not complete.
pub fn cpus(stat: &str) -> Option<Cpus> {
    let (mut all, mut each) = (None, BTreeMap::new());
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|word| word.strip_prefix("cpu")) else {
            continue;
        };
        if cpu.is_empty() {
            all = Some(cpu_times(words)?);
        } else if let Ok(number) = cpu.parse() {
            each.insert(number, cpu_times(words)?);
        }
    }
    Some(Cpus { all: all?, each })
}

fn cpu_times<'a>(figures: impl Iterator<Item = &'a str>) -> Option<CpuTimes> {
    let figures: Option<Vec<u64>> = figures.map(|figure| figure.parse().ok()).collect();
    // Behind them are times of guests, which are in the first two.
    let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = &figures?[..] else {
        return None;
    };
    Some(CpuTimes {
        user: user + nice,
        system: system + irq + softirq,
        steal,
        idle,
        iowait,
    })
}

/// Returns bytes of a line of /proc/meminfo, such as "MemTotal"; none: there is no such line.
pub fn memory_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let mut lines = meminfo.lines().filter_map(|line| line.split_once(':'));
    let (_, amount) = lines.find(|(name, _)| *name == key)?;
    let kib: u64 = amount.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Returns the pages swapped in and out, from /proc/vmstat; none: a line is missing.
pub fn swapped_pages(vmstat: &str) -> Option<[u64; 2]> {
    let count = |key: &str| {
        let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    };
    Some([count("pswpin")?, count("pswpout")?])
}

/// Reads those of /proc/diskstats that are whole disks; none: one of them is not complete.
pub fn disks(diskstats: &str, whole: &BTreeSet<String>) -> Option<BTreeMap<String, Disk>> {
    let lines = diskstats
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_disks = lines.filter(|line| line.get(2).is_some_and(|name| whole.contains(*name)));
    of_disks.map(|line| disk(&line)).collect()
}

fn disk(line: &[&str]) -> Option<(String, Disk)> {
    let count = |at: usize| line.get(at)?.parse::<u64>().ok();
    let disk = Disk {
        read_bytes: count(5)?.checked_mul(SECTOR)?,
        written_bytes: count(9)?.checked_mul(SECTOR)?,
        busy_ms: count(12)?,
    };
    Some((line[2].to_owned(), disk))
}

/// Returns the names of disks as /proc/diskstats has them: a partition is in the folder of its disk.
pub fn whole_disks() -> io::Result<BTreeSet<String>> {
    let entries = fs::read_dir("/sys/block")?;
    // A file's name has no slash: "cciss!c0d0".
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().replace('!', "/")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  7416733 1140580 1286205 3559813 45353 7 66683 8704 100 50
cpu0 3652296 561570 639628 1850092 17811 3 31611 4230 60 20
cpu1 3764437 579010 646576 1709721 27542 4 35072 4473 40 30
intr 180798807 0 0 16
ctxt 458318676
cpufreq 1
";

    #[test]
    fn times_of_cpus() {
        let read = cpus(STAT).unwrap();
        let all = CpuTimes {
            user: 7_416_733 + 1_140_580,
            system: 1_286_205 + 7 + 66_683,
            steal: 8_704,
            idle: 3_559_813,
            iowait: 45_353,
        };
        assert_eq!(read.all, all);
        assert_eq!(read.each.keys().collect::<Vec<_>>(), [&0, &1]);
        assert_eq!(read.each[&1].steal, 4_473);
    }

    #[test]
    fn odd_texts_of_cpus() {
        // 128 CPUs, with one offline.
        let mut stat = "cpu  1280 0 0 0 0 0 0 0 0 0\n".to_owned();
        for n in (0..128).filter(|n| *n != 5) {
            stat += &format!("cpu{n} {n} 1 2 3 4 5 6 7 8 9\n");
        }
        let read = cpus(&stat).unwrap();
        assert_eq!((read.each.len(), read.each.get(&5)), (127, None));
        assert_eq!((read.each[&127].user, read.each[&127].steal), (128, 7));
        for odd in [
            "",
            "ctxt 5\n",
            // Without the line of all, without steal, not a number, below 0.
            "cpu0 1 2 3 4 5 6 7 8\n",
            "cpu  1 2 3 4 5 6 7\n",
            "cpu  1 2 3 4 5 6 7 x\n",
            "cpu  1 2 3 4 5 6 7 -8\n",
            "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2\n",
        ] {
            assert_eq!(cpus(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn memory_and_swap() {
        let info = "MemTotal:        8039816 kB\nMemFree: 1 kB\nMemAvailable:    5123 kB\nHugePages_Total:       4\n";
        assert_eq!(memory_bytes(info, "MemTotal"), Some(8_039_816 << 10));
        assert_eq!(memory_bytes(info, "MemAvailable"), Some(5123 << 10));
        // Neither the beginning of a name, nor a number without a unit.
        for key in ["Mem", "SwapFree", "HugePages_Total"] {
            assert_eq!(memory_bytes(info, key), None, "{key}");
        }
        assert_eq!(
            memory_bytes("MemTotal: 99999999999999999999 kB", "MemTotal"),
            None
        );
        let vmstat = "pgpgin 7\npswpin 12\npswpout 34\npswpout_more 5\n";
        assert_eq!(swapped_pages(vmstat), Some([12, 34]));
        // A kernel without swap.
        assert_eq!(swapped_pages("pgpgin 7\npswpin 12\n"), None);
        assert_eq!(swapped_pages(""), None);
    }

    #[test]
    fn partitions_are_parts_of_disks() {
        let stats = "\
 259       0 nvme0n1 100 0 2000 7 200 0 4000 9 0 30 16 0 0 0 0 0 0
 259       1 nvme0n1p1 90 0 1900 7 200 0 4000 9 0 30 16 0 0 0 0 0 0
   8       0 sda 1 2 3 4 5 6 7 8 9 10 11
   8       1 sda1 1 2 3 4
 104       0 cciss/c0d0 1 2 8 4 5 6 16 8 9 10 11
";
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let whole: BTreeSet<String> = names(&["nvme0n1", "sda", "cciss/c0d0", "sdb"]);
        let read = disks(stats, &whole).unwrap();
        assert_eq!(
            read.keys().collect::<Vec<_>>(),
            ["cciss/c0d0", "nvme0n1", "sda"]
        );
        let nvme = Disk {
            read_bytes: 2000 * 512,
            written_bytes: 4000 * 512,
            busy_ms: 30,
        };
        assert_eq!((read["nvme0n1"], read["sda"].busy_ms), (nvme, 10));
        // A line of a disk that is cut off, or of another format.
        assert_eq!(disks(stats, &names(&["sda1"])), None);
        assert_eq!(disks("", &whole), Some(BTreeMap::new()));
    }
}
