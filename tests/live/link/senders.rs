// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders that a link must not believe: super-packets (UDP GSO), which are many wire packets, and
//! stamps in the future (SO_TXTIME), which are of one packet only.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use support::lab::{Engine, Lab, Verdict, inside, sh, wait_until};

/// Of payload; 100 bytes and the headers on the wire.
const PAYLOAD: usize = 100;
const WIRE: f64 = PAYLOAD as f64 + 42.0;
const PORT: u16 = 7010;

/// Packets of `train` to a super-packet, `trains` of them, each followed by a packet alone if so
/// asked. Every packet begins with its number.
#[derive(Clone, Copy)]
struct Trains {
    train: u32,
    trains: u32,
    single: bool,
}

impl Trains {
    fn count(self) -> u32 {
        (self.train + u32::from(self.single)) * self.trains
    }

    /// Sends all as fast as it goes; how long that took.
    fn send(self, to: SocketAddr) -> Duration {
        let socket = connected(to);
        let size = PAYLOAD as libc::c_int;
        // SAFETY: the option's value is an int, which outlives the call.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const size).cast(),
                size_of_val(&size) as libc::socklen_t,
            )
        };
        assert_eq!(set, 0, "UDP_SEGMENT");
        let begin = Instant::now();
        let mut next = 0;
        for _ in 0..self.trains {
            for packets in [self.train, u32::from(self.single)] {
                let mut bytes = vec![0u8; packets as usize * PAYLOAD];
                for chunk in bytes.chunks_mut(PAYLOAD) {
                    chunk[..4].copy_from_slice(&u32::to_ne_bytes(next));
                    next += 1;
                }
                if packets > 0 {
                    assert_eq!(socket.send(&bytes).expect("send"), bytes.len());
                }
            }
        }
        begin.elapsed()
    }

    /// Sends them from one namespace to the other; the numbers that arrived, in that order, and for
    /// how long was sent.
    fn run(self, from: &str, to: &str, address: &'static str) -> (Vec<u32>, Duration) {
        self.run_then(from, to, address, || {})
    }

    /// The same, with something to do when all is sent.
    fn run_then(
        self,
        from: &str,
        to: &str,
        address: &'static str,
        then: impl FnOnce(),
    ) -> (Vec<u32>, Duration) {
        let to_address = SocketAddr::new(address.parse().expect("an address"), PORT);
        let receiver = inside(to, move || UdpSocket::bind(to_address).expect("bind"));
        let socket = receiver.join().expect("a socket");
        let sender = inside(from, move || self.send(to_address));
        let took = sender.join().expect("the sender");
        then();
        (receive(&socket), took)
    }
}

fn connected(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("bind");
    socket.connect(to).expect("connect");
    socket
}

/// Until there is a pause.
fn receive(socket: &UdpSocket) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut bytes = [0u8; 2048];
    let patience = Some(Duration::from_secs(2));
    socket.set_read_timeout(patience).expect("a timeout");
    loop {
        match socket.recv(&mut bytes) {
            Ok(n) if n >= 4 => {
                numbers.push(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => return numbers,
            other => panic!("{other:?}"),
        }
    }
}

/// Each wire packet of a train meets its own fate, and none overtakes, both ways: nor a packet alone
/// that follows while the train is being segmented. For that they wait for a neighbour's address and
/// then leave in one go. A sender's own packet is through before the next one is sent.
pub fn trains_are_packets(engine: Engine) {
    const TENTH: &str = "loss = { model = \"every\", n = 10 }\ndelay = \"20ms\"\n";
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, &format!("[up]\n{TENTH}[down]\n{TENTH}"), &[]);
    let trains = Trains {
        train: 7,
        trains: 20,
        single: true,
    };
    for (name, from, to, address) in [
        ("up", &lab.a, &lab.b, Lab::B4),
        ("down", &lab.b, &lab.a, Lab::A4),
    ] {
        let before = lab.shown(&format!("/{name}/counters/packets"));
        // Asked once a second.
        let answers = |ignore: u8| {
            sh(&format!(
                "ip netns exec {to} sh -c 'echo {ignore} >/proc/sys/net/ipv4/conf/all/arp_ignore'"
            ))
        };
        answers(8);
        sh(&format!("ip -n {from} neigh flush to {address}"));
        let (numbers, _) = trains.run_then(from, to, address, || drop(answers(0)));
        let all: Vec<u32> = (0..trains.count()).collect();
        // Of this flow, whose packets are numbered from its first one on.
        let tenth: Vec<u32> = all.iter().copied().filter(|n| n % 10 != 9).collect();
        verdict.same(&format!("{name}: what arrives"), tenth, numbers);
        let packets = lab.shown(&format!("/{name}/counters/packets")) - before;
        let counted = packets >= u64::from(trains.count());
        verdict.same(&format!("{name}: counted"), true, counted);
        let supers = lab.shown(&format!("/{name}/counters/super_packets"));
        verdict.same(&format!("{name}: that shared a fate"), 0, supers);
    }
    lab.detach();
    verdict.end();
}

/// A queue of 10 packets holds 10 of them.
pub fn a_queue_limits_trains(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "[up]\nrate = \"8Mbit\"\nqueue = \"10p\"\n", &[]);
    let trains = Trains {
        train: 40,
        trains: 50,
        single: false,
    };
    let (numbers, took) = trains.run(&lab.a, &lab.b, Lab::B4);
    // While it sent, the wire took some away.
    let most = 10.0 + took.as_secs_f64() * 8e6 / 8.0 / WIRE + 2.0;
    verdict.at_most("arrived", most, numbers.len() as f64);
    verdict.at_least("arrived", 10.0, numbers.len() as f64);
    let dropped = lab.shown("/up/counters/queue_dropped");
    let sum = dropped + numbers.len() as u64;
    verdict.same("arrived and dropped", u64::from(trains.count()), sum);
    lab.detach();
    verdict.end();
}

/// One packet that is to leave in 8 s holds nobody else up.
pub fn a_stamp_stops_nobody(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let profile = "[up]\nrate = \"8Mbit\"\ndelay = { mean = \"20ms\", jitter = \"2ms\" }\n";
    lab.attach(engine, profile, &[]);
    let to = SocketAddr::new(Lab::B4.parse().expect("an address"), PORT);
    let before = lab.shown("/up/counters/packets");
    inside(&lab.a, move || send_stamped(to, 8_000_000_000))
        .join()
        .expect("the sender");
    wait_until("it is on its way", Duration::from_secs(5), || {
        lab.shown("/up/counters/packets") > before
    });
    let said = lab.ping("-q -c 20 -i 0.02 -W 2");
    verdict.same("pings", true, said.contains(" 20 received"));
    println!("    {}", said.lines().last().unwrap_or_default());
    lab.detach();
    verdict.end();
}

/// With SO_TXTIME: it is to leave so long from now, ns.
fn send_stamped(to: SocketAddr, ahead_ns: u64) {
    #[repr(C)]
    struct SockTxtime {
        clockid: libc::clockid_t,
        flags: u32,
    }
    const LEN: usize = size_of::<u64>();
    let socket = connected(to);
    let clock = SockTxtime {
        clockid: libc::CLOCK_MONOTONIC,
        flags: 0,
    };
    let stamp = support::clock::now() + ahead_ns;
    let payload = IoSlice::new(&[0u8; PAYLOAD]);
    // SAFETY: the option is a struct sock_txtime; the message's parts outlive the call, and its
    // control data is one message with room for the u64 that is written there.
    unsafe {
        let set = libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TXTIME,
            (&raw const clock).cast(),
            size_of_val(&clock) as libc::socklen_t,
        );
        assert_eq!(set, 0, "SO_TXTIME: {}", std::io::Error::last_os_error());
        let mut control = [0u64; 8];
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = (&raw const payload).cast_mut().cast();
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(LEN as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_TXTIME;
        (*header).cmsg_len = libc::CMSG_LEN(LEN as u32) as _;
        libc::CMSG_DATA(header).cast::<u64>().write_unaligned(stamp);
        let sent = libc::sendmsg(socket.as_raw_fd(), &message, 0);
        assert_eq!(
            sent,
            PAYLOAD as isize,
            "{}",
            std::io::Error::last_os_error()
        );
    }
}
