// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of an unused protocol, on the devices of one network namespace.
//!
//! Options: `devices` (names with commas between; the frames go to each in turn), `len` (bytes of a
//! frame with its Ethernet header, which is what the kernel counts), `window` (ns, of `most`),
//! `pace`: `spin` never sends faster than requested, not even after a delay, and needs a CPU;
//! `sleep` catches up by one frame at most. `rate BIT_S`: from now on; 0 stops. `burst COUNT NTH`:
//! at once; prints when it began, when the NTH was sent, and when it ended. `bursts TIMES COUNT
//! PAUSE_NS`: bursts with pauses; prints when they began and ended. `most`: the maximum of bytes in
//! any window since the last `most`.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, TryRecvError};

use super::{Options, parsed, tell};
use crate::clock::{now, sleep_until, spin_until};

/// For experiments within a site (IEEE 802).
const PROTOCOL: u16 = 0x88b5;

/// How much of a past the exact window needs, and its sum.
struct Window {
    len_ns: u64,
    sent: VecDeque<u64>,
    most: usize,
}

impl Window {
    fn add(&mut self, at: u64) {
        while self.sent.front().is_some_and(|t| t + self.len_ns <= at) {
            self.sent.pop_front();
        }
        self.sent.push_back(at);
        self.most = self.most.max(self.sent.len());
    }
}

struct Sender {
    sockets: Vec<OwnedFd>,
    next: usize,
    frame: Vec<u8>,
    window: Window,
}

impl Sender {
    fn new(options: &Options) -> Self {
        let devices = options.text("devices").expect("devices=");
        let mut frame = vec![0u8; options.number("len", 1500)];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        frame[12..14].copy_from_slice(&PROTOCOL.to_be_bytes());
        Self {
            sockets: devices.split(',').map(socket).collect(),
            next: 0,
            frame,
            window: Window {
                len_ns: options.number("window", 10_000_000),
                sent: VecDeque::new(),
                most: 0,
            },
        }
    }

    /// Sends one frame; returns when.
    fn send(&mut self) -> u64 {
        let socket = &self.sockets[self.next];
        self.next = (self.next + 1) % self.sockets.len();
        let at = now();
        let (data, len) = (self.frame.as_ptr().cast(), self.frame.len());
        // SAFETY: the frame outlives the call.
        let sent = unsafe { libc::send(socket.as_raw_fd(), data, len, 0) };
        assert_eq!(sent, len as isize, "{}", std::io::Error::last_os_error());
        self.window.add(at);
        at
    }

    fn burst(&mut self, count: u64, nth: u64) -> (u64, u64, u64) {
        let mut times = (0, 0, 0);
        for number in 1..=count {
            let at = self.send();
            if number == 1 {
                times.0 = at;
            }
            if number == nth {
                times.1 = at;
            }
            times.2 = at;
        }
        times
    }
}

fn socket(device: &str) -> OwnedFd {
    let name = std::ffi::CString::new(device).expect("no NUL");
    // SAFETY: plain socket calls, with structs that live until they return.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        let fd = OwnedFd::from_raw_fd(fd);
        let index = libc::if_nametoindex(name.as_ptr());
        assert_ne!(index, 0, "{device}: {}", std::io::Error::last_os_error());
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as i32;
        let len = size_of_val(&address) as libc::socklen_t;
        let done = libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len);
        assert_eq!(done, 0, "{device}: {}", std::io::Error::last_os_error());
        fd
    }
}

pub fn run(options: &Options, commands: &Receiver<String>) {
    let spin = options.text("pace") == Some("spin");
    let mut sender = Sender::new(options);
    let frame_bits = sender.frame.len() as u64 * 8;
    // ns between two frames, and when the next one is due.
    let mut pace: Option<(u64, u64)> = None;
    tell("ready");
    loop {
        let command = match pace {
            None => match commands.recv() {
                Ok(command) => Some(command),
                Err(_) => return,
            },
            Some(_) => match commands.try_recv() {
                Ok(command) => Some(command),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            },
        };
        if let Some(command) = command {
            match parsed(&command) {
                ("rate", n) => {
                    pace = (n[0] > 0).then(|| (frame_bits * 1_000_000_000 / n[0], now()));
                    tell(&format!("rate {}", now()));
                }
                other => obey(&mut sender, other),
            }
            continue;
        }
        if let Some((step, due)) = pace.as_mut() {
            if spin {
                spin_until(*due);
                *due = sender.send() + *step;
            } else {
                sleep_until(*due);
                let at = sender.send();
                *due = at.max(*due + *step);
            }
        }
    }
}

fn obey(sender: &mut Sender, command: (&str, Vec<u64>)) {
    match command {
        ("burst", n) => {
            let (first, nth, last) = sender.burst(n[0], n[1]);
            tell(&format!("burst {first} {nth} {last}"));
        }
        ("bursts", n) => {
            let begin = now();
            for _ in 0..n[0] {
                sender.burst(n[1], 0);
                sleep_until(now() + n[2]);
            }
            tell(&format!("bursts {begin} {}", now()));
        }
        ("most", _) => {
            let most = std::mem::take(&mut sender.window.most) * sender.frame.len();
            tell(&format!("most {most}"));
        }
        (word, _) => panic!("{word}"),
    }
}
