// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file whose reads take a configured time: under a loop device, a disk of a known speed, which
//! can also stop answering. Speaks the kernel's FUSE protocol (linux/fuse.h) as far as one file of
//! zeroes needs it; it is mounted over an empty file.
//!
//! Options: `file`, `size` (bytes), `delay` (ns), `beyond` and `delay-beyond` (reads from that
//! offset on take a different time). Reads below and beyond are each served one at a time. `delay
//! NS`; `stuck`: no answer from now on; `resume`: answers overdue requests; prints when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::Receiver;

use super::{Options, parsed, tell};
use crate::clock::now;

const GETATTR: u32 = 3;
const FORGET: u32 = 2;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;

const HEADER_IN: usize = 40;
const HEADER_OUT: usize = 16;
const OPEN_DIRECT_IO: u32 = 1;
const INIT_MAX_PAGES: u32 = 1 << 22;
/// Of one read; M's are 256 KiB.
const MAX_PAGES: u16 = 256;
/// Length of a write, of which there are none: a request must fit into the buffer.
const MOST_WRITTEN: u32 = 4096;
/// How often to check for commands, ns.
const GLANCE_NS: u64 = 1_000_000;

/// A pending read: when, which, how many bytes.
type Due = Reverse<(u64, u64, usize)>;

struct Server {
    device: File,
    size: u64,
    delay_ns: [u64; 2],
    beyond: u64,
    free_at: [u64; 2],
    waiting: BinaryHeap<Due>,
    stuck: bool,
}

pub fn run(options: &Options, commands: &Receiver<String>) {
    let path = options.text("file").expect("file=");
    let delay_ns: u64 = options.number("delay", 0);
    let mut server = Server {
        device: mount(path),
        size: options.number("size", 64 << 20),
        delay_ns: [delay_ns, options.number("delay-beyond", delay_ns)],
        beyond: options.number("beyond", u64::MAX),
        free_at: [0, 0],
        waiting: BinaryHeap::new(),
        stuck: false,
    };
    tell("ready");
    loop {
        for command in commands.try_iter() {
            match parsed(&command) {
                ("delay", n) => server.delay_ns = [n[0]; 2],
                ("stuck", _) => server.stuck = true,
                ("resume", _) => server.stuck = false,
                _ => panic!("{command}"),
            }
            tell(&format!("{command} {}", now()));
        }
        server.answer_due();
        if server.wait() {
            server.serve();
        }
    }
}

fn mount(path: &str) -> File {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/fuse")
        .expect("/dev/fuse");
    let text = |s: &str| CString::new(s).expect("no NUL");
    let data = format!(
        "fd={},rootmode=100000,user_id=0,group_id=0",
        device.as_raw_fd()
    );
    let (source, target, kind, data) = (text("slow"), text(path), text("fuse"), text(&data));
    // SAFETY: the strings outlive the call.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            data.as_ptr().cast(),
        )
    };
    assert_eq!(done, 0, "mount: {}", std::io::Error::last_os_error());
    device
}

impl Server {
    /// Waits for a request until the next answer is due; whether there is one.
    fn wait(&self) -> bool {
        let until = match self.waiting.peek() {
            Some(Reverse((due, ..))) if !self.stuck => due.saturating_sub(now()).min(GLANCE_NS),
            _ => GLANCE_NS,
        };
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: until as libc::c_long,
        };
        let mut poll = libc::pollfd {
            fd: self.device.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the structs outlive the call.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) > 0 }
    }

    fn answer_due(&mut self) {
        while let Some(Reverse((due, unique, len))) = self.waiting.peek().copied() {
            if self.stuck || due > now() {
                return;
            }
            self.waiting.pop();
            self.answer(unique, 0, &vec![0; len]);
        }
    }

    fn answer(&mut self, unique: u64, error: i32, body: &[u8]) {
        let mut message = Vec::with_capacity(HEADER_OUT + body.len());
        message.extend(((HEADER_OUT + body.len()) as u32).to_ne_bytes());
        message.extend((-error).to_ne_bytes());
        message.extend(unique.to_ne_bytes());
        message.extend(body);
        // The requester may be gone.
        let _ = self.device.write(&message);
    }

    fn serve(&mut self) {
        let mut request = [0u8; MOST_WRITTEN as usize + 8192];
        let len = match self.device.read(&mut request) {
            Ok(len) => len,
            // The requester is gone.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EAGAIN)) => return,
            // Unmounted.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => std::process::exit(0),
            Err(e) => panic!("/dev/fuse: {e}"),
        };
        let request = &request[..len];
        let (opcode, unique) = (word(request, 4), long(request, 8));
        match opcode {
            INIT => self.answer(unique, 0, &init()),
            GETATTR => {
                let attributes = self.attributes();
                self.answer(unique, 0, &attributes);
            }
            OPEN => {
                let mut body = [0u8; 16];
                body[8..12].copy_from_slice(&OPEN_DIRECT_IO.to_ne_bytes());
                self.answer(unique, 0, &body);
            }
            READ => self.queue(
                unique,
                long(request, HEADER_IN + 8),
                word(request, HEADER_IN + 16) as usize,
            ),
            RELEASE | FLUSH => self.answer(unique, 0, &[]),
            FORGET | INTERRUPT | DESTROY => {}
            _ => self.answer(unique, libc::ENOSYS, &[]),
        }
    }

    fn queue(&mut self, unique: u64, offset: u64, len: usize) {
        let part = usize::from(offset >= self.beyond);
        let due = self.free_at[part].max(now()) + self.delay_ns[part];
        self.free_at[part] = due;
        let len = len.min(self.size.saturating_sub(offset) as usize);
        self.waiting.push(Reverse((due, unique, len)));
    }

    /// struct fuse_attr_out of a regular file.
    fn attributes(&self) -> [u8; 104] {
        let mut body = [0u8; 104];
        body[0..8].copy_from_slice(&3600u64.to_ne_bytes());
        body[16..24].copy_from_slice(&1u64.to_ne_bytes());
        body[24..32].copy_from_slice(&self.size.to_ne_bytes());
        body[32..40].copy_from_slice(&(self.size / 512).to_ne_bytes());
        body[76..80].copy_from_slice(&(libc::S_IFREG | 0o600).to_ne_bytes());
        body[80..84].copy_from_slice(&1u32.to_ne_bytes());
        body[96..100].copy_from_slice(&4096u32.to_ne_bytes());
        body
    }
}

/// struct fuse_init_out.
fn init() -> [u8; 64] {
    let mut body = [0u8; 64];
    body[0..4].copy_from_slice(&7u32.to_ne_bytes());
    body[4..8].copy_from_slice(&31u32.to_ne_bytes());
    body[12..16].copy_from_slice(&INIT_MAX_PAGES.to_ne_bytes());
    body[16..18].copy_from_slice(&64u16.to_ne_bytes());
    body[18..20].copy_from_slice(&64u16.to_ne_bytes());
    body[20..24].copy_from_slice(&MOST_WRITTEN.to_ne_bytes());
    body[24..28].copy_from_slice(&1u32.to_ne_bytes());
    body[28..30].copy_from_slice(&MAX_PAGES.to_ne_bytes());
    body
}

fn word(from: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(from[at..at + 4].try_into().expect("4 bytes"))
}

fn long(from: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(from[at..at + 8].try_into().expect("8 bytes"))
}
