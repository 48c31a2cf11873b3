// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-way UDP probes between two namespaces of one machine, so of one clock.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::clock;
use crate::lab::{Lab, inside};

/// Ethernet, IPv4 and UDP headers.
pub const HEADERS: usize = 14 + 20 + 8;

/// A stream of numbered packets.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Namespaces.
    pub from: String,
    pub to: String,
    pub address: IpAddr,
    /// 0: an ephemeral one.
    pub source_port: u16,
    pub port: u16,
    /// At least 12.
    pub payload_len: usize,
    pub count: u32,
    /// DSCPs, from 0 on, that packets have in turn.
    pub dscps: u8,
    /// SO_PRIORITY; 0: that of the DSCP.
    pub priority: i32,
    /// How often each may come.
    pub copies: u32,
    /// Distance of two packets; 0: all at once.
    pub interval_ns: u64,
    /// Each anywhere in its interval, instead of at its beginning.
    pub scattered: bool,
    /// How long to wait for more after the last one was sent.
    pub patience: Duration,
}

impl Probe {
    /// The usual one: small packets of one flow over IPv4, from a to b.
    pub fn new(lab: &Lab, count: u32, interval_ns: u64) -> Self {
        Self {
            from: lab.a.clone(),
            to: lab.b.clone(),
            address: Lab::B4.parse().expect("an address"),
            source_port: 7001,
            port: 7002,
            payload_len: 64,
            count,
            dscps: 1,
            priority: 0,
            copies: 1,
            interval_ns,
            scattered: false,
            patience: Duration::from_secs(1),
        }
    }
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub number: u32,
    /// CLOCK_MONOTONIC; of arrival: when the kernel took the packet from the device.
    pub sent_ns: u64,
    pub arrived_ns: u64,
}

impl Arrival {
    pub fn delay_ms(&self) -> f64 {
        (self.arrived_ns as f64 - self.sent_ns as f64) / 1e6
    }
}

/// All packets that arrived, in the order of arrival.
#[derive(Debug)]
pub struct Arrivals(pub Vec<Arrival>);

impl Arrivals {
    pub fn delays_ms(&self) -> Vec<f64> {
        self.0.iter().map(Arrival::delay_ms).collect()
    }

    /// Packets that arrived after one that was sent later.
    pub fn reordered(&self) -> usize {
        let mut latest = 0;
        let late = self.0.iter().filter(|arrival| {
            let overtaken = arrival.number < latest;
            latest = latest.max(arrival.number);
            overtaken
        });
        late.count()
    }

    /// The delays of each packet, in order of sending: none if it was lost, two if it was copied.
    pub fn of_each_ms(&self, count: u32) -> Vec<Vec<f64>> {
        let mut delays = vec![vec![]; count as usize];
        for arrival in &self.0 {
            delays[arrival.number as usize].push(arrival.delay_ms());
        }
        delays
    }

    /// The numbers, below `count`, of those that did not arrive.
    pub fn lost(&self, count: u32) -> Vec<u32> {
        let mut came = vec![false; count as usize];
        for arrival in &self.0 {
            assert!(!came[arrival.number as usize], "a packet came twice");
            came[arrival.number as usize] = true;
        }
        (0..count).filter(|n| !came[*n as usize]).collect()
    }
}

impl Probe {
    /// Sends all, and collects those that arrive.
    pub fn run(&self) -> Arrivals {
        self.run_while(|_| {})
    }

    /// The same, with an action meanwhile, which can read how many were sent.
    pub fn run_while(&self, meanwhile: impl FnOnce(&AtomicU64)) -> Arrivals {
        let (ready, is_ready) = mpsc::channel();
        let sent_all = Arc::new(AtomicU64::new(0));
        let (probe, done) = (self.clone(), sent_all.clone());
        let receiver = inside(&self.to, move || probe.receive(&ready, &done));
        is_ready.recv().expect("the receiver's socket");
        let (probe, done) = (self.clone(), sent_all.clone());
        let sender = inside(&self.from, move || probe.send(&done));
        meanwhile(&sent_all);
        sender.join().expect("the sender");
        Arrivals(receiver.join().expect("the receiver"))
    }

    fn any(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::from([0u8; 4]),
            IpAddr::V6(_) => IpAddr::from([0u16; 8]),
        }
    }

    fn send(&self, progress: &AtomicU64) {
        precise_timers();
        let sockets: Vec<_> = (0..self.dscps).map(|dscp| self.socket(dscp)).collect();
        let mut payload = vec![0; self.payload_len];
        let start = clock::now() + 1_000_000;
        for number in 0..self.count {
            if self.interval_ns > 0 {
                clock::sleep_until(start + self.due(number));
            }
            payload[..4].copy_from_slice(&number.to_ne_bytes());
            payload[4..12].copy_from_slice(&clock::now().to_ne_bytes());
            let socket = &sockets[number as usize % sockets.len()];
            socket.send(&payload).expect("send");
            progress.store(u64::from(number) + 1, Ordering::Release);
        }
    }

    fn socket(&self, dscp: u8) -> UdpSocket {
        // Only one can have the port.
        let port = if dscp == 0 { self.source_port } else { 0 };
        let socket = UdpSocket::bind((self.any(), port)).expect("bind");
        let to = SocketAddr::new(self.address, self.port);
        socket.connect(to).expect("connect");
        set_buffer(&socket, libc::SO_SNDBUFFORCE);
        if dscp != 0 {
            set_dscp(&socket, dscp);
        }
        if self.priority != 0 {
            set_option(&socket, libc::SO_PRIORITY, self.priority);
        }
        socket
    }

    /// After the start, ns.
    fn due(&self, number: u32) -> u64 {
        // Multiples of the golden ratio, less their whole part: they fill an interval evenly.
        let share = u64::from(number.wrapping_mul(0x9e37_79b9));
        let within = if self.scattered {
            (share * self.interval_ns) >> 32
        } else {
            0
        };
        u64::from(number) * self.interval_ns + within
    }

    fn receive(&self, ready: &mpsc::Sender<()>, progress: &AtomicU64) -> Vec<Arrival> {
        let socket = UdpSocket::bind((self.any(), self.port)).expect("bind");
        set_buffer(&socket, libc::SO_RCVBUFFORCE);
        set_option(&socket, libc::SO_TIMESTAMPNS, 1);
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("time-out");
        ready.send(()).expect("the test waits");
        let mut arrivals = Vec::with_capacity(self.count as usize);
        let mut quiet_since = None;
        while arrivals.len() < (self.count * self.copies) as usize {
            let Some(arrival) = receive_one(&socket) else {
                if progress.load(Ordering::Acquire) < u64::from(self.count) {
                    continue;
                }
                let since = *quiet_since.get_or_insert_with(clock::now);
                if clock::now() - since > self.patience.as_nanos() as u64 {
                    break;
                }
                continue;
            };
            quiet_since = None;
            arrivals.push(arrival);
        }
        arrivals
    }
}

/// An option of SOL_SOCKET.
pub fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the value is an int that lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "setsockopt: {}", io::Error::last_os_error());
}

/// Of an IPv4 socket.
pub fn set_dscp(socket: &UdpSocket, dscp: u8) {
    let tos = libc::c_int::from(dscp) << 2;
    // SAFETY: the value is an int that lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_TOS,
            (&raw const tos).cast(),
            size_of_val(&tos) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "IP_TOS: {}", io::Error::last_os_error());
}

/// The prober itself must not lose a packet.
pub fn set_buffer(socket: &UdpSocket, option: libc::c_int) {
    set_option(socket, option, 256 << 20);
}

fn receive_one(socket: &UdpSocket) -> Option<Arrival> {
    let mut payload = [0u8; 2048];
    let mut control = [0u64; 16];
    let mut part = libc::iovec {
        iov_base: payload.as_mut_ptr().cast(),
        iov_len: payload.len(),
    };
    // SAFETY: all zero is a valid msghdr, and the pointers put in outlive the call.
    let (len, stamp_ns) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let len = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if len < 0 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!header.is_null(), "the kernel stamped no time");
        let stamp: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
        (len, nanoseconds(&stamp))
    };
    assert!(len >= 12, "a strange packet of {len} bytes");
    Some(Arrival {
        number: u32::from_ne_bytes(payload[..4].try_into().expect("4 bytes")),
        sent_ns: u64::from_ne_bytes(payload[4..12].try_into().expect("8 bytes")),
        arrived_ns: stamp_ns - wall_ahead_ns(),
    })
}

fn nanoseconds(time: &libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// By how much the wall clock, by which the kernel stamps arrivals, is ahead of the monotonic one.
///
/// Read until the thread kept its CPU meanwhile: otherwise packets would seem to overtake, 48 of a million.
fn wall_ahead_ns() -> u64 {
    let mut most_ns = 0;
    loop {
        most_ns += 5_000;
        let before = clock::now();
        let wall = clock::of(libc::CLOCK_REALTIME);
        let between = clock::now() - before;
        if between < most_ns {
            return wall - before - between / 2;
        }
    }
}

/// The kernel must not delay this thread's timers.
pub fn precise_timers() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
