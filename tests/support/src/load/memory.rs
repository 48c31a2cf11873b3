// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uses memory.
//!
//! `write MIB`: writes a region of that size repeatedly (M); prints when it has begun. `map PAGES`:
//! takes that many pages, none of them alike. On one CPU only (option `cpu`): the kernel skips a
//! page that another CPU has just used. `out PAGES`: makes the kernel write this many of them to
//! swap; prints when that was requested, when the last one was, when it was done, and how many
//! pages the kernel counted (of the whole machine). `in PAGES`: reads them again; prints the same.
//! Both wait for a moment without paging of others. `map-file PATH`: maps a file that is not in
//! memory and reads all its pages; prints the number of major faults.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::mpsc::Receiver;

use super::{Options, parsed, tell};
use crate::clock::{now, sleep_until};

const PAGE: usize = 4096;

/// Pause between two passes over the region, so that others can use the CPU, ns.
const PAUSE_NS: u64 = 1_000_000;

/// Returns a new mapping of memory with this advice about huge pages.
pub fn anonymous(len: usize, advice: i32) -> *mut libc::c_void {
    // SAFETY: a new mapping, which nothing else uses.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        libc::madvise(at, len, advice);
        at
    }
}

#[derive(Default)]
struct Pages {
    at: usize,
    len: usize,
}

impl Pages {
    /// New ones; not huge, for each to go and come by itself.
    fn map(count: usize) -> Self {
        let len = count * PAGE;
        // It is never undone before the process ends.
        let at = anonymous(len, libc::MADV_NOHUGEPAGE) as usize;
        let pages = Self { at, len };
        pages.write(1);
        pages
    }

    /// No page is empty nor like another: the kernel cannot merge them.
    fn write(&self, round: u64) {
        for offset in (0..self.len).step_by(PAGE) {
            let value = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (offset as u64 + 1);
            // SAFETY: within the mapping.
            unsafe {
                let page = (self.at + offset) as *mut u64;
                page.write_volatile(value);
                page.add(100).write_volatile(!value);
            }
        }
    }

    fn read(&self, from: usize, count: usize) {
        for page in from..from + count {
            // SAFETY: within the mapping.
            unsafe { ((self.at + page * PAGE) as *const u64).read_volatile() };
        }
    }

    fn page_out(&self, from: usize, count: usize) {
        if count == 0 {
            return;
        }
        let at = (self.at + from * PAGE) as *mut libc::c_void;
        // SAFETY: within the mapping; the content of the pages is kept.
        let done = unsafe { libc::madvise(at, count * PAGE, libc::MADV_PAGEOUT) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

pub fn run(_options: &Options, commands: &Receiver<String>) {
    let mut pages = Pages::default();
    tell("ready");
    for command in commands {
        match parsed(&command) {
            ("write", n) => keep_writing(n[0] as usize),
            ("map", n) => {
                pages = Pages::map(n[0] as usize);
                tell("mapped");
            }
            ("out", n) => {
                let said = timed("pswpout", n[0] as usize, |from, count| {
                    pages.page_out(from, count);
                });
                tell(&said);
            }
            ("in", n) => {
                let said = timed("pswpin", n[0] as usize, |from, count| {
                    pages.read(from, count);
                });
                tell(&said);
            }
            ("map-file", _) => map_file(command.split(' ').nth(1).expect("a path")),
            _ => panic!("{command}"),
        }
    }
}

fn keep_writing(mib: usize) {
    let pages = Pages::map((mib << 20) / PAGE);
    tell(&format!("writing {}", now()));
    for round in 2.. {
        pages.write(round);
        sleep_until(now() + PAUSE_NS);
    }
}

/// All but the last page, then the last one: so its time is known.
fn timed(counter: &str, count: usize, work: impl Fn(usize, usize)) -> String {
    let counted = when_quiet(counter);
    let first = now();
    work(0, count - 1);
    let last = now();
    work(count - 1, 1);
    let end = now();
    format!("paged {first} {last} {end} {}", vmstat(counter) - counted)
}

/// A machine may page by itself, in bursts. Waits until it has not done so for a while; returns the
/// counter then.
fn when_quiet(counter: &str) -> u64 {
    const QUIET_NS: u64 = 60_000_000;
    let both = || (vmstat("pswpin"), vmstat("pswpout"));
    let (mut since, mut seen) = (now(), both());
    while now() < since + QUIET_NS {
        sleep_until(now() + QUIET_NS / 30);
        let counted = both();
        if counted != seen {
            (since, seen) = (now(), counted);
        }
    }
    vmstat(counter)
}

/// A counter of the kernel.
fn vmstat(counter: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").expect("/proc/vmstat");
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == counter)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or_else(|| panic!("no {counter} in /proc/vmstat"))
}

fn map_file(path: &str) {
    let file = File::open(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let len = file.metadata().expect("its size").len() as usize;
    // SAFETY: a file of the test, which nobody cuts; the mapping stays until the process ends.
    let at = unsafe {
        let none = libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
        assert_eq!(none, 0, "out of memory with the file");
        let at = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        // Each page by itself: nothing is read ahead.
        libc::madvise(at, len, libc::MADV_RANDOM);
        at as usize
    };
    let before = major_faults();
    Pages { at, len }.read(0, len / PAGE);
    tell(&format!("faulted {}", major_faults() - before));
}

fn major_faults() -> i64 {
    // SAFETY: all zero is a valid rusage, and it outlives the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_majflt
    }
}
