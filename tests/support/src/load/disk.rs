// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct reads from a block device.
//!
//! Options: `file`, `len` (bytes of a read), `threads`, `stagger` (ns between their starts), `grid`
//! and `phase` (ns). `one`: a single read; prints when it was requested and when it completed.
//! `run`: all threads read continuously, 1 us between two reads (M), or each read at the next point
//! of the grid. `duty COUNT PAUSE_NS THETA_NS`: this many single reads with pauses; prints how many
//! took theta or longer. `write BYTES`: one direct write of that size; prints when.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::Receiver;

use super::{Options, parsed, tell};
use crate::clock::{now, sleep_until};

/// Between two reads, ns.
const PAUSE_NS: u64 = 1_000;

/// Where the regions of two threads begin apart, bytes.
const REGION: u64 = 1 << 20;

/// Separate memory, aligned for direct input and output, in huge pages if they exist.
struct Buffer {
    at: *mut libc::c_void,
    len: usize,
}

impl Buffer {
    fn new(len: usize) -> Self {
        // Undone when the buffer is dropped.
        let at = super::memory::anonymous(len, libc::MADV_HUGEPAGE);
        Self { at, len }
    }

    /// Fills it with data that does not compress.
    fn fill(&mut self) {
        let mut state = now() | 1;
        for at in (0..self.len).step_by(8) {
            // xorshift64 of G. Marsaglia (2003)
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // SAFETY: within the mapping, whose length is a multiple of the page size.
            unsafe { self.at.cast::<u8>().add(at).cast::<u64>().write(state) };
        }
    }

    fn read(&mut self, file: &File, offset: u64) {
        // SAFETY: the mapping outlives the call.
        let got = unsafe { libc::pread(file.as_raw_fd(), self.at, self.len, offset as i64) };
        // An error is expected from a device that the test has removed: then the load is over.
        if got != self.len as isize {
            eprintln!("read: {got}, {}", std::io::Error::last_os_error());
            std::process::exit(1);
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: its own mapping, to which nothing points any more.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

pub fn run(options: &Options, commands: &Receiver<String>) {
    let path = options.text("file").expect("file=").to_owned();
    let len: usize = options.number("len", 256 << 10);
    let threads: u64 = options.number("threads", 1);
    let stagger_ns: u64 = options.number("stagger", 0);
    let region: u64 = options.number("region", 0);
    let grid: Grid = (options.number("grid", 0), options.number("phase", 0));
    let file = open(&path, false);
    let mut buffer = Buffer::new(len);
    buffer.fill();
    tell("ready");
    for command in commands {
        match parsed(&command) {
            ("one", _) => {
                let begin = now();
                buffer.read(&file, 0);
                tell(&format!("read {begin} {}", now()));
            }
            ("duty", n) => {
                let mut long = 0;
                for _ in 0..n[0] {
                    let begin = now();
                    buffer.read(&file, 0);
                    long += u64::from(now() - begin >= n[2]);
                    sleep_until(now() + n[1]);
                }
                tell(&format!("long {long}"));
            }
            ("run", _) => {
                let begin = now();
                for thread in 0..threads {
                    let path = path.clone();
                    std::thread::spawn(move || {
                        sleep_until(begin + thread * stagger_ns);
                        keep_reading(&path, len, (region + thread) * REGION, grid);
                    });
                }
                tell(&format!("running {begin}"));
            }
            ("write", n) => write(&path, n[0] as usize),
            _ => panic!("{command}"),
        }
    }
}

fn open(path: &str, write: bool) -> File {
    OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Distance of its points, or 0, and the first one; ns.
type Grid = (u64, u64);

fn keep_reading(path: &str, len: usize, offset: u64, (step, phase): Grid) {
    let file = open(path, false);
    let mut buffer = Buffer::new(len);
    loop {
        buffer.read(&file, offset);
        let now = now();
        sleep_until(match step {
            0 => now + PAUSE_NS,
            _ => now - (now - phase) % step + step,
        });
    }
}

fn write(path: &str, len: usize) {
    let file = open(path, true);
    let mut buffer = Buffer::new(len);
    buffer.fill();
    let begin = now();
    // SAFETY: the mapping outlives the call.
    let wrote = unsafe { libc::pwrite(file.as_raw_fd(), buffer.at, len, 0) };
    assert_eq!(wrote, len as isize, "{}", std::io::Error::last_os_error());
    tell(&format!("wrote {begin} {}", now()));
}
