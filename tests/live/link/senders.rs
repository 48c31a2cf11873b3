// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders that a link must not trust: super-packets (UDP GSO), which are many wire packets, and
//! stamps in the future (SO_TXTIME), which apply to one packet only.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::guest;
use support::lab::{Engine, Lab, Verdict, inside, packets_per_s, run, scaled, sh, wait_until};
use support::probe::set_buffer;
use support::stats::{ks_bound, ks_distance, share_error};
use support::udp::next;

/// Of payload; 100 bytes and the headers on the wire.
const PAYLOAD: usize = 100;
const WIRE: f64 = PAYLOAD as f64 + 42.0;
const PORT: u16 = 7010;

/// Packets of `train` per super-packet, `trains` of them, each optionally followed by a single
/// packet. Every packet begins with its number.
#[derive(Clone, Copy)]
struct Trains {
    train: u32,
    trains: u32,
    single: bool,
    /// Minimum time from one super-packet's beginning to the next one's.
    every: Duration,
}

impl Trains {
    fn count(self) -> u32 {
        (self.train + u32::from(self.single)) * self.trains
    }

    /// Sends all, as fast as permitted; returns how long that took.
    fn send(self, socket: &UdpSocket) -> Duration {
        let begin = Instant::now();
        let mut next = 0;
        for train in 0..self.trains {
            sleep((begin + self.every * train).saturating_duration_since(Instant::now()));
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

    /// Sends them from one namespace to the other; returns the numbers that arrived, in that order,
    /// and how long sending took.
    fn run(self, from: &str, to: &str, address: &'static str) -> (Vec<u32>, Duration) {
        self.run_then(from, to, address, || {})
    }

    /// The same, with an action when all is sent.
    fn run_then(
        self,
        from: &str,
        to: &str,
        address: &'static str,
        then: impl FnOnce() + Send + 'static,
    ) -> (Vec<u32>, Duration) {
        let (socket, to_address) = receiver(to, address);
        let took = inside(from, move || {
            let took = self.send(&segmenting(to_address));
            then();
            took
        });
        let numbers = receive(&socket);
        (numbers, took.join().expect("the sender"))
    }
}

fn connected(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("bind");
    socket.connect(to).expect("connect");
    socket
}

/// With super-packets.
fn segmenting(to: SocketAddr) -> UdpSocket {
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
    socket
}

/// A socket in a namespace, and its address.
fn receiver(netns: &str, address: &str) -> (UdpSocket, SocketAddr) {
    let address = SocketAddr::new(address.parse().expect("an address"), PORT);
    let socket = inside(netns, move || UdpSocket::bind(address).expect("bind"));
    let socket = socket.join().expect("a socket");
    set_buffer(&socket, libc::SO_RCVBUFFORCE);
    (socket, address)
}

/// Until there is a pause.
fn receive(socket: &UdpSocket) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut bytes = [0u8; 2048];
    let patience = Some(Duration::from_secs(2));
    socket.set_read_timeout(patience).expect("a timeout");
    while let Some(length) = next(socket, &mut bytes) {
        assert!(length >= 4, "{length}");
        numbers.push(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    }
    numbers
}

/// The segments of a train keep its sender's socket.
pub fn a_group_has_its_trains(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    // A link that decides for each packet.
    lab.attach(
        engine,
        "[link]\n[links.far]\nloss = { model = \"every\", n = 100 }\ndelay = \"20ms\"\n\
         [[rule]]\nmatch = { cgroup = \"/\", protocol = \"udp\" }\nlink = \"far\"\n",
        &[],
    );
    let trains = Trains {
        train: 7,
        trains: 10,
        single: false,
        every: Duration::ZERO,
    };
    trains.run(&lab.a, &lab.b, Lab::B4);
    verdict.same("packets of the rule", 70, lab.shown("/rules/0/packets"));
    verdict.end();
}

/// Each wire packet of a train has a separate fate, and none overtakes, in both directions: nor a
/// single packet that follows while the train is being segmented. For that they wait for a
/// neighbour's address and then leave at once. A sender's own packet is through before the next one
/// is sent.
pub fn trains_are_packets(engine: Engine) {
    const TENTH: &str = "loss = { model = \"every\", n = 10 }\ndelay = \"20ms\"\n";
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, &format!("[up]\n{TENTH}[down]\n{TENTH}"), &[]);
    let trains = Trains {
        train: 7,
        trains: 20,
        single: true,
        every: Duration::ZERO,
    };
    for (name, from, to, address) in [
        ("up", &lab.a, &lab.b, Lab::B4),
        ("down", &lab.b, &lab.a, Lab::A4),
    ] {
        let before = lab.shown(&format!("/{name}/counters/packets"));
        // Sent once a second.
        let ignore = |what: u8| {
            let file = "/proc/sys/net/ipv4/conf/all/arp_ignore";
            format!("ip netns exec {to} sh -c 'echo {what} >{file}'")
        };
        sh(&format!(
            "{}; ip -n {from} neigh flush to {address}",
            ignore(8)
        ));
        let answer = ignore(0);
        let (numbers, _) = trains.run_then(from, to, address, move || drop(sh(&answer)));
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

/// A socket that has sent before attach knows nothing of a link.
pub fn trains_of_an_older_socket(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let (arrivals, to) = receiver(&lab.b, Lab::B4);
    let trains = Trains {
        train: 7,
        trains: 20,
        single: false,
        every: Duration::ZERO,
    };
    let older = inside(&lab.a, move || {
        let socket = segmenting(to);
        trains.send(&socket);
        socket
    });
    let older = older.join().expect("a sender");
    let all: Vec<u32> = (0..trains.count()).collect();
    verdict.same("before attach", all.clone(), receive(&arrivals));
    let tenth = "loss = { model = \"every\", n = 10 }\ndelay = \"20ms\"\n";
    lab.attach(engine, &format!("[up]\n{tenth}"), &[]);
    trains.send(&older);
    let nine: Vec<u32> = all.into_iter().filter(|n| n % 10 != 9).collect();
    verdict.same("what arrives", nine, receive(&arrivals));
    verdict.same(
        "that shared a fate",
        0,
        lab.shown("/up/counters/super_packets"),
    );
    lab.detach();
    verdict.end();
}

/// The device above the interface, in namespaces `a` and `b`, and the destination.
const ABOVE: &[(&str, &str, &str, &str)] = &[
    ("nothing", "true", "true", Lab::B4),
    (
        "a VLAN",
        "ip link add link va name above type vlan id 5
         ip addr add 10.78.0.1/24 dev above
         ip link set dev above up",
        "ip link add link vb name above type vlan id 5
         ip addr add 10.78.0.2/24 dev above
         ip link set dev above up",
        "10.78.0.2",
    ),
    (
        "a bridge",
        "ip link add above type bridge
         ip addr add 10.78.0.1/24 dev above
         ip link set dev va master above
         ip link set dev above up",
        "ip addr add 10.78.0.2/24 dev vb",
        "10.78.0.2",
    ),
];

/// Each packet of a train is lost independently, whatever device made a super-packet of it. With
/// `offload = "keep"` whole trains are lost, which this test must detect.
pub fn trains_lose_single_packets(engine: Engine) {
    const LOSS: f64 = 0.002;
    const TRAIN: u32 = 40;
    let trains = Trains {
        train: TRAIN,
        trains: scaled(12_500),
        single: false,
        every: Duration::from_secs(TRAIN.into()) / packets_per_s(10_000),
    };
    let n = f64::from(trains.count());
    let (pairs, pairs_sd) = pairs_in_trains(f64::from(TRAIN), f64::from(trains.trains), LOSS);
    let mut verdict = Verdict::default();
    for (above, in_a, in_b, address) in ABOVE {
        let lab = Lab::new();
        if above.contains("VLAN") && !guest() && !has_vlan(&lab) {
            println!("    this kernel has no VLAN devices");
            continue;
        }
        // IPv6 sends packets by itself, which would be lost and counted.
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        lab.in_a(&format!("{quiet}\n{in_a}"));
        lab.in_b(&format!("{quiet}\n{in_b}"));
        for offload in ["auto", "keep"] {
            let profile = format!(
                "offload = \"{offload}\"\n[up]\ndelay = \"5ms\"\nloss = \"{}%\"\n",
                LOSS * 100.0
            );
            lab.attach(engine, &profile, &["--seed", "1"]);
            let (numbers, _) = trains.run(&lab.a, &lab.b, address);
            let supers = lab.shown("/up/counters/super_packets");
            let counted = lab.shown("/up/counters/lost");
            lab.detach();
            let name = |what| format!("{above}, {offload}: {what}");
            let in_order = numbers.is_sorted();
            let mut came = vec![false; trains.count() as usize];
            numbers.iter().for_each(|n| came[*n as usize] = true);
            let lost: Vec<u32> = (0..).zip(&came).filter(|l| !l.1).map(|l| l.0).collect();
            let together = |train: &[bool]| {
                let lost = train.iter().filter(|came| !**came).count();
                lost * lost.saturating_sub(1) / 2
            };
            let together: usize = came.chunks(TRAIN as usize).map(together).sum();
            if offload == "keep" {
                let least = pairs + 10.0 * pairs_sd;
                verdict.at_least(&name("super-packets"), 1.0, supers as f64);
                verdict.at_least(&name("pairs lost in a train"), least, together as f64);
                continue;
            }
            verdict.same(&name("super-packets"), 0, supers);
            verdict.same(&name("in order"), true, in_order);
            verdict.same(&name("lost, by emud's count"), counted, lost.len() as u64);
            let share = lost.len() as f64 / n;
            let within = 4.0 * share_error(LOSS, n);
            verdict.near(&name("share lost"), LOSS, share, within);
            let within = 4.0 * pairs_sd;
            verdict.near(
                &name("pairs lost in a train"),
                pairs,
                together as f64,
                within,
            );
            // Geometric, which jumps by the loss.
            let gaps = lost.windows(2).map(|two| f64::from(two[1] - two[0]));
            let gaps: Vec<f64> = gaps.collect();
            let distance = ks_distance(&gaps, |gap| 1.0 - (1.0 - LOSS).powf(gap));
            let most = LOSS + ks_bound(gaps.len() as f64);
            verdict.at_most(&name("gaps: KS distance"), most, distance);
        }
    }
    verdict.end();
}

pub fn has_vlan(lab: &Lab) -> bool {
    let device = [
        "link", "add", "link", "va", "vlan9", "type", "vlan", "id", "9",
    ];
    run(Command::new("ip").args(["-n", &lab.a]).args(device)).code == 0
}

/// Of packets lost by themselves: how many pairs of one train, and the standard deviation of that.
fn pairs_in_trains(train: f64, trains: f64, p: f64) -> (f64, f64) {
    let pairs = train * (train - 1.0) / 2.0;
    // Two pairs that share a packet are lost together with p^3.
    let shared = 2.0 * pairs * (train - 2.0);
    let variance = pairs * p.powi(2) * (1.0 - p.powi(2)) + shared * p.powi(3) * (1.0 - p);
    (trains * pairs * p.powi(2), (trains * variance).sqrt())
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
        every: Duration::ZERO,
    };
    let (numbers, took) = trains.run(&lab.a, &lab.b, Lab::B4);
    // While it sent, the wire transmitted some.
    let most = 10.0 + took.as_secs_f64() * 8e6 / 8.0 / WIRE + 2.0;
    verdict.at_most("arrived", most, numbers.len() as f64);
    verdict.at_least("arrived", 10.0, numbers.len() as f64);
    let dropped = lab.shown("/up/counters/queue_dropped");
    let sum = dropped + numbers.len() as u64;
    verdict.same("arrived and dropped", u64::from(trains.count()), sum);
    lab.detach();
    verdict.end();
}

/// A packet that is to leave in 8 s delays no other packet.
pub fn a_stamp_stops_nobody(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let profile = "[up]\nrate = \"8Mbit\"\ndelay = { mean = \"20ms\", jitter = \"2ms\" }\n";
    lab.attach(engine, profile, &[]);
    let to = SocketAddr::new(Lab::B4.parse().expect("an address"), PORT);
    let before = lab.shown("/up/counters/packets");
    inside(&lab.a, move || {
        send_stamped(to, 8_000_000_000, [PAYLOAD, 1])
    })
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

/// Nor does a flood of them fill the room of the holder, 256 MiB or 16,384 buffers of 16 KiB, or of emud's
/// qdisc, 16,384 packets: they get a quarter.
pub fn a_flood_of_stamps_stops_nobody(engine: Engine) {
    const FLOOD: usize = 20_000;
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    for (netns, device) in [(&lab.a, "va"), (&lab.b, "vb")] {
        sh(&format!("ip -n {netns} link set {device} mtu 9000"));
    }
    lab.attach(engine, "[up]\ndelay = \"5ms\"\n", &[]);
    let to = SocketAddr::new(Lab::B4.parse().expect("an address"), PORT);
    let len = if engine == Engine::Hold {
        8500
    } else {
        PAYLOAD
    };
    let sender = inside(&lab.a, move || {
        send_stamped(to, 9_500_000_000, [len, FLOOD]);
    });
    sender.join().expect("the sender");
    let said = lab.ping("-q -c 20 -i 0.02 -W 2");
    verdict.same("pings", true, said.contains(" 20 received"));
    if engine == Engine::Hold {
        verdict.at_least("waiting", 1.0, lab.shown("/up/holder/waiting") as f64);
        // The kernel's own packets wait for 20 ms at times, and beside other load the TAP's queue is full.
        let count = || {
            let keys = ["holder/waiting", "holder/dropped", "engine_dropped"];
            keys.map(|key| lab.shown(&format!("/up/{key}")))
                .iter()
                .sum::<u64>()
        };
        let all = (0..20).map(|_| count()).find(|all| *all == FLOOD as u64);
        let all = all.unwrap_or_else(count);
        verdict.same("waiting and dropped", FLOOD as u64, all);
    } else {
        let dropped = lab.shown("/up/engine_dropped");
        verdict.same("dropped", FLOOD as u64 - 16_384 / 4, dropped);
    }
    lab.detach();
    verdict.end();
}

/// Sends `count` packets of `len` bytes with SO_TXTIME, which are to leave `ahead_ns` from now.
fn send_stamped(to: SocketAddr, ahead_ns: u64, [len, count]: [usize; 2]) {
    #[repr(C)]
    struct SockTxtime {
        clockid: libc::clockid_t,
        flags: u32,
    }
    const LEN: usize = size_of::<u64>();
    let socket = connected(to);
    // Packets that wait for long keep their socket.
    set_buffer(&socket, libc::SO_SNDBUFFORCE);
    let clock = SockTxtime {
        clockid: libc::CLOCK_MONOTONIC,
        flags: 0,
    };
    let stamp = support::clock::now() + ahead_ns;
    let payload = vec![0; len];
    let payload = IoSlice::new(&payload);
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
        for _ in 0..count {
            let sent = libc::sendmsg(socket.as_raw_fd(), &message, 0);
            assert_eq!(sent, len as isize, "{}", std::io::Error::last_os_error());
        }
    }
}
