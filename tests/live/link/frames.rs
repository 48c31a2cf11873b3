// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every kind of packet: neighbours, VLAN tags, other protocols, IPv6, devices without Ethernet,
//! super-packets.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::bulk::{self, Bulk};
use support::lab::{Engine, Lab, Verdict, inside, promised, run, sh};
use support::probe::Probe;
use support::runs::rtt_ms;
use support::stats::median;
use support::udp::next;
use support::{clock, full, guest};

const DELAY_MS: f64 = 30.0;
/// A median this much later would be a different link; on a busy machine it still distinguishes a
/// delay from none.
fn within_ms() -> f64 {
    if full() || guest() { 1.0 } else { 14.0 }
}

fn bulk(lab: &Lab) -> Bulk {
    Bulk {
        from: lab.a.clone(),
        to: lab.b.clone(),
        address: Lab::B4.parse().expect("an address"),
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(1),
        window: None,
    }
}

/// ARP and neighbour discovery: not emulated but counted, or part of the link.
pub fn neighbours(engine: Engine) {
    let mut verdict = Verdict::default();
    for (way, waits) in [("pass", 1.0), ("emulate", 2.0)] {
        let lab = Lab::new();
        lab.add_ipv6();
        lab.attach(
            engine,
            &format!("neighbours = \"{way}\"\n[link]\ndelay = \"150ms\""),
            &[],
        );
        for address in [Lab::B4, Lab::B6] {
            let passed = || {
                lab.shown("/up/counters/passed/neighbour")
                    + lab.shown("/down/counters/passed/neighbour")
            };
            lab.in_a("ip neigh flush dev va");
            lab.in_b("ip neigh flush dev vb");
            let before = passed();
            // Resolution takes a round trip if neighbours are emulated.
            let said = lab.in_a(&format!("LC_ALL=C ping -n -c 1 -W 5 {address}"));
            let time = said.split("time=").nth(1).expect("an answer");
            let ms: f64 = time.split(' ').next().unwrap().parse().expect("a time");
            let name = format!("{way}, {address}");
            let passed = passed() - before;
            if way == "pass" {
                verdict.at_least(&format!("{name}: passed"), 2.0, passed as f64);
            } else {
                verdict.same(&format!("{name}: passed"), 0, passed);
            }
            // fq's ingress cannot delay ARP, so only the request takes time.
            let half = engine.is_stamped() && address == Lab::B4 && way == "emulate";
            let trips = if half { waits - 0.5 } else { waits };
            verdict.at_least(&format!("{name}: first round trip, ms"), trips * 300.0, ms);
            verdict.at_most(
                &format!("{name}: first round trip, ms"),
                trips * 300.0 + 100.0,
                ms,
            );
        }
    }
    verdict.end();
}

/// IPv6 passes the same link.
pub fn ipv6(engine: Engine) {
    let lab = Lab::new();
    let probe = Probe {
        address: Lab::B6.parse().expect("an address"),
        ..Probe::new(&lab, 200, 3_000_000)
    };
    let back = Probe {
        from: lab.b.clone(),
        to: lab.a.clone(),
        address: Lab::A6.parse().expect("an address"),
        ..probe.clone()
    };
    lab.add_ipv6();
    let both = || {
        [
            median(&probe.run().delays_ms()),
            median(&back.run().delays_ms()),
        ]
    };
    let bare = both();
    lab.attach(engine, "[link]\ndelay = \"30ms\"", &[]);
    let got = both();
    let mut verdict = Verdict::default();
    for (i, name) in ["up", "down"].into_iter().enumerate() {
        verdict.near(
            &format!("{name}, ms"),
            DELAY_MS + bare[i],
            got[i],
            within_ms(),
        );
    }
    verdict.end();
}

/// A socket that sends and gets whole frames of one protocol on a device of the thread's namespace.
pub struct Raw {
    fd: OwnedFd,
}

const OURS: u16 = 0x88b5; // local experimental
pub const IPV4: u16 = 0x0800;

impl Raw {
    pub fn open(device: &str, protocol: u16) -> Self {
        let name = std::ffi::CString::new(device).expect("no NUL");
        let wait = libc::timeval {
            tv_sec: 1,
            tv_usec: 0,
        };
        // SAFETY: plain socket calls, with structs that live until they return.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol.to_be();
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let len = size_of_val(&address) as libc::socklen_t;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), len), 0);
            let len = size_of_val(&wait) as libc::socklen_t;
            let wait = (&raw const wait).cast();
            assert_eq!(
                libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, wait, len),
                0
            );
            let socket = Self {
                fd: OwnedFd::from_raw_fd(fd),
            };
            socket.enable(libc::PACKET_AUXDATA);
            socket
        }
    }

    /// Switches on an option of packet sockets.
    pub fn enable(&self, option: libc::c_int) {
        let (fd, one): (_, libc::c_int) = (self.fd.as_raw_fd(), 1);
        // SAFETY: the option's value is an int, which outlives the call.
        let set =
            unsafe { libc::setsockopt(fd, libc::SOL_PACKET, option, (&raw const one).cast(), 4) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }

    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the frame outlives the call.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(
            sent,
            frame.len() as isize,
            "{}",
            std::io::Error::last_os_error()
        );
    }

    /// A frame, and its VLAN tag, which the kernel keeps apart.
    pub fn receive(&self) -> Option<(Vec<u8>, Option<u16>)> {
        let mut frame = vec![0u8; 2048];
        let mut control = [0u64; 16];
        let mut part = libc::iovec {
            iov_base: frame.as_mut_ptr().cast(),
            iov_len: frame.len(),
        };
        // SAFETY: all zero is a valid msghdr, and the pointers put in outlive the call.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            let len = libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0);
            if len < 0 {
                return None;
            }
            frame.truncate(len as usize);
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            assert!(!header.is_null(), "no auxiliary data");
            let aux: libc::tpacket_auxdata =
                std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
            let tagged = aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
            Some((frame, tagged.then_some(aux.tp_vlan_tci)))
        }
    }
}

/// Sends twenty numbered frames from one device to the other; returns when the stack receives each,
/// in ms.
///
/// Two sockets listen. The one for all protocols sees the tag, which the stack removes; it sees a
/// frame before emud's ingress and, with hold, after it. The one for the protocol is where the
/// stack is.
fn frames(
    from: (&str, &'static str),
    to: (&str, &'static str),
    tag: Option<u16>,
    protocol: u16,
) -> Vec<f64> {
    const COUNT: u8 = 20;
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = |protocol: u16| {
        let ready = ready.clone();
        inside(to.0, move || {
            let socket = Raw::open(to.1, protocol);
            ready.send(()).expect("the test waits");
            let mut seen = vec![];
            while let Some((frame, vlan)) = socket.receive() {
                let now = clock::now();
                if frame.len() < 14 + 40 || frame[14 + 20] != 0xee {
                    continue;
                }
                let sent = u64::from_ne_bytes(frame[40..48].try_into().expect("8 bytes"));
                seen.push((frame[48], vlan, (now - sent) as f64 / 1e6));
            }
            seen
        })
    };
    let (wire, stack) = (listen(libc::ETH_P_ALL as u16), listen(protocol));
    for _ in 0..2 {
        is_ready.recv().expect("a receiver");
    }
    let sender = inside(from.0, move || {
        let socket = Raw::open(from.1, protocol);
        for number in 0..COUNT {
            let mut body = vec![0u8; 60];
            if protocol == IPV4 {
                // Version and length; a protocol that nobody answers.
                body[0] = 0x45;
                body[3] = 60;
                body[8] = 64;
                body[9] = 253;
            }
            body[20] = 0xee;
            body[26..34].copy_from_slice(&clock::now().to_ne_bytes());
            body[34] = number;
            let mut frame = vec![0xff; 6];
            frame.extend([2, 0, 0, 0, 0, 1]);
            if let Some(tag) = tag {
                frame.extend(0x8100u16.to_be_bytes());
                frame.extend(tag.to_be_bytes());
            }
            frame.extend(protocol.to_be_bytes());
            frame.extend(body);
            socket.send(&frame);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    sender.join().expect("the sender");
    for (number, vlan, _) in wire.join().expect("the receiver") {
        assert_eq!(vlan, tag, "the tag of {number}");
    }
    let came = stack.join().expect("the receiver");
    let numbers: Vec<u8> = came.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>(), "frames that came");
    came.into_iter().map(|(.., delay_ms)| delay_ms).collect()
}

/// Frames that are not IP, and frames with a VLAN tag: delayed if the kernel permits it, otherwise
/// passed and counted.
pub fn other_frames(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let (va, vb) = ((lab.a.as_str(), "va"), (lab.b.as_str(), "vb"));
    lab.attach(engine, "[link]\ndelay = \"30ms\"", &[]);
    for (kind, tag, protocol) in [
        ("not IP", None, OURS),
        ("tagged IPv4", Some(5), IPV4),
        ("tagged, not IP", Some(5), OURS),
    ] {
        for (direction, from, to) in [("up", va, vb), ("down", vb, va)] {
            let passed = |why| lab.shown(&format!("/{direction}/counters/passed/{why}"));
            let (not_ip, failed) = (passed("not_ip"), passed("failed"));
            // The shortest: a pause of the machine makes all others late.
            let got = frames(from, to, tag, protocol)
                .into_iter()
                .fold(f64::MAX, f64::min);
            let name = format!("{kind}, {direction}");
            let limited = engine.is_stamped() && protocol == OURS;
            let delay = match limited && direction == "down" {
                true => 0.0,
                false => DELAY_MS,
            };
            // On egress with their socket.
            let count = if limited { 20 } else { 0 };
            verdict.near(&format!("{name}: ms"), delay, got, within_ms());
            verdict.same(
                &format!("{name}: counted as not IP"),
                count,
                passed("not_ip") - not_ip,
            );
            verdict.same(&format!("{name}: failed"), 0, passed("failed") - failed);
        }
    }
    verdict.end();
}

/// The local copy of a packet to a group was never on the wire.
pub fn own_multicast(engine: Engine) {
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 7, 7, 7);
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    // With damage, packets whose checksum is still to be computed pass the segmenter.
    lab.attach(engine, "[link]\ndelay = \"2s\"\ncorrupt = \"0.1%\"", &[]);
    let came = inside(&lab.a, || {
        let own: Ipv4Addr = Lab::A4.parse().expect("an address");
        let socket = UdpSocket::bind((GROUP, 7011)).expect("bind");
        socket.join_multicast_v4(&GROUP, &own).expect("join");
        let patience = Some(Duration::from_secs(1));
        socket.set_read_timeout(patience).expect("a timeout");
        let sender = UdpSocket::bind((own, 0)).expect("bind");
        sender.send_to(b"own", (GROUP, 7011)).expect("send");
        let mut bytes = [0; 16];
        next(&socket, &mut bytes).map(|n| bytes[..n].to_vec())
    });
    let came = came.join().expect("the receiver");
    verdict.same("own copy", Some(b"own".to_vec()), came);
    verdict.end();
}

const TUNNEL: &str = "mode tunnel auth digest_null '' enc 'ecb(cipher_null)' ''";

fn has_esp(lab: &Lab) -> bool {
    let state = format!("src 10.9.9.1 dst 10.9.9.2 proto esp spi 0x100 {TUNNEL}");
    let script = format!("ip netns exec {} ip xfrm state add {state}", lab.a);
    run(Command::new("sh").args(["-c", &script])).code == 0
}

/// A packet from an IPsec tunnel is received by the device once more, without having been on a wire
/// once more.
pub fn ipsec(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    if !has_esp(&lab) {
        assert!(!promised("EMUD_EXPECT", "esp"), "no ESP");
        println!("    this kernel has no ESP");
        return;
    }
    let (a, b) = (Lab::A4, Lab::B4);
    for (netns, own, other, device, from, to) in
        [(&lab.a, 1, 2, "va", a, b), (&lab.b, 2, 1, "vb", b, a)]
    {
        sh(&format!(
            "at() {{ ip netns exec {netns} ip \"$@\"; }}
             at addr add 10.88.0.{own}/32 dev lo
             at link set lo up
             at route add 10.88.0.{other} dev {device} src 10.88.0.{own}
             at xfrm state add src {from} dst {to} proto esp spi 0x10{own} {TUNNEL}
             at xfrm state add src {to} dst {from} proto esp spi 0x10{other} {TUNNEL}
             at xfrm policy add src 10.88.0.{own} dst 10.88.0.{other} dir out \
                tmpl src {from} dst {to} proto esp mode tunnel
             at xfrm policy add src 10.88.0.{other} dst 10.88.0.{own} dir in \
                tmpl src {to} dst {from} proto esp mode tunnel"
        ));
    }
    lab.attach(engine, "[down]\ndelay = \"50ms\"", &[]);
    let pinged = lab.in_a("ping -n -q -c 5 -i 0.02 10.88.0.2");
    verdict.same("replies", true, pinged.contains(" 5 received"));
    let [least, ..] = rtt_ms(&pinged);
    verdict.at_least("round trip, ms", 50.0, least);
    verdict.at_most("round trip, ms", 75.0, least);
    // Requests go up, replies down; the kernel's own addresses are not involved.
    let packets = lab.shown("/down/counters/packets");
    verdict.same("packets down", 5, packets);
    verdict.end();
}

/// Two VLAN tags are unchanged in both directions. The kernel takes the outer one out of the data
/// before ingress.
pub fn two_tags(engine: Engine) {
    const COUNT: u8 = 20;
    const OUTER: u16 = 7;
    /// In the order of a frame.
    const TAGS: [u8; 8] = [0x88, 0xa8, 0, OUTER as u8, 0x81, 0, 0, 9];
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let (va, vb) = ((lab.a.as_str(), "va"), (lab.b.as_str(), "vb"));
    // Guests have these devices, and the engines that it is about.
    if guest() {
        lab.in_a(
            "ip link add link va name va.7 type vlan proto 802.1ad id 7
             ip link add link va.7 name va.7.9 type vlan id 9",
        );
    }
    let said = lab.attach(engine, "[link]\ndelay = \"30ms\"", &[]).out;
    let noted = said.contains("two VLAN tags (va.7.9) on va: not IP to engine");
    verdict.same("noted", engine.is_stamped() && guest(), noted);
    for (direction, from, to) in [("up", va, vb), ("down", vb, va)] {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let receiver = inside(to.0, move || {
            let socket = Raw::open(to.1, libc::ETH_P_ALL as u16);
            ready.send(()).expect("the test waits");
            // By number, at its last arrival: on ingress the socket also sees it before the link.
            let mut came = vec![f64::NAN; COUNT.into()];
            while let Some((frame, vlan)) = socket.receive() {
                let now = clock::now();
                if vlan != Some(OUTER) || frame.len() < 18 + 9 || frame[..4] != [2, 0, 0, 0] {
                    continue;
                }
                assert_eq!(frame[12..16], TAGS[4..], "the inner tag");
                assert_eq!(frame[16..18], OURS.to_be_bytes());
                let sent = u64::from_ne_bytes(frame[18..26].try_into().expect("8 bytes"));
                came[usize::from(frame[26])] = (now - sent) as f64 / 1e6;
            }
            came
        });
        is_ready.recv().expect("a receiver");
        let sender = inside(from.0, move || {
            let socket = Raw::open(from.1, OURS);
            for number in 0..COUNT {
                let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
                frame.extend(TAGS);
                frame.extend(OURS.to_be_bytes());
                frame.extend(clock::now().to_ne_bytes());
                frame.push(number);
                frame.resize(80, 0xaa);
                socket.send(&frame);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        sender.join().expect("the sender");
        let came = receiver.join().expect("the receiver");
        let whole = came.iter().all(|ms| !ms.is_nan());
        verdict.same(&format!("{direction}: all came"), true, whole);
        // On ingress fq cannot delay a packet that is not IP to the kernel: it passes, and is
        // counted.
        let passes = engine.is_stamped() && direction == "down";
        let delay = if passes { 0.0 } else { DELAY_MS };
        let name = format!("{direction}: ms");
        verdict.near(&name, delay, median(&came), within_ms());
        let passed = lab.shown(&format!("/{direction}/counters/passed/not_ip"));
        // On egress with its socket.
        let want = if engine.is_stamped() {
            u64::from(COUNT)
        } else {
            0
        };
        verdict.same(&format!("{direction}: counted as not IP"), want, passed);
    }
    verdict.end();
}

/// TC_PRIO_CONTROL, which IGMP, MLD and routing daemons use: fq before 6.7 sent it at once.
pub fn control_traffic_waits(engine: Engine) {
    const COUNT: u32 = 100;
    let lab = Lab::new();
    lab.attach(engine, "[up]\ndelay = \"30ms\"\n", &[]);
    let probe = Probe {
        priority: 7,
        ..Probe::new(&lab, COUNT, 1_000_000)
    };
    let arrivals = probe.run();
    let mut verdict = Verdict::default();
    verdict.same("lost", 0, arrivals.lost(COUNT).len());
    let least_ms = least(&arrivals.delays_ms());
    verdict.at_least("least, ms", DELAY_MS - engine.early_ms(), least_ms);
    verdict.end();
}

/// Where the host steers flows (RFS), attach notes what the engines do to it.
pub fn steered_flows(engine: Engine) {
    let lab = Lab::new();
    let attach = |direction: &str| {
        let said = lab.attach(
            engine,
            "[link]\ndelay = \"30ms\"\n",
            &["--direction", direction],
        );
        lab.detach();
        said.out.contains("down: RFS is enabled on va: engine")
    };
    assert!(!attach("both"), "without a table");
    lab.in_a("echo 32 >/sys/class/net/va/queues/rx-0/rps_flow_cnt");
    assert_eq!(attach("both"), engine.is_stamped());
    assert!(!attach("up"), "nothing is received");
}

/// A tun device of the thread's namespace: packets without an Ethernet header.
pub fn tun(name: &str) -> File {
    tun_with(name, 0)
}

fn tun_with(name: &str, flags: libc::c_int) -> File {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .expect("/dev/net/tun");
    // SAFETY: all zero is a valid ifreq, and it outlives the call.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | flags) as libc::c_short;
        let done = libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request);
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
    file
}

/// UDP over IPv4 with the two sides exchanged, checksums and all: an echo.
fn echo(packet: &mut [u8]) {
    let (source, destination): ([u8; 4], [u8; 4]) = (
        packet[12..16].try_into().unwrap(),
        packet[16..20].try_into().unwrap(),
    );
    packet[12..16].copy_from_slice(&destination);
    packet[16..20].copy_from_slice(&source);
    let (from, to): ([u8; 2], [u8; 2]) = (
        packet[20..22].try_into().unwrap(),
        packet[22..24].try_into().unwrap(),
    );
    // The sums do not change by an exchange.
    packet[20..22].copy_from_slice(&to);
    packet[22..24].copy_from_slice(&from);
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A tun: the program behind it returns packets sent to it.
pub fn without_ethernet(engine: Engine) {
    let lab = Lab::empty();
    let file = inside(&lab.a, || tun("tun0")).join().expect("a tun");
    lab.in_a(
        "ip link set dev tun0 addrgenmode none
         ip addr add 10.88.0.1/24 dev tun0
         ip link set dev tun0 up",
    );
    let before = lab.snapshot();
    let mut there = file.try_clone().expect("a descriptor");
    // Ends when the test closes its socket and sends no more: at the packet of 1 byte.
    let program = thread::spawn(move || {
        let mut held = vec![];
        let mut packet = [0u8; 2048];
        loop {
            let len = there.read(&mut packet).expect("read");
            if packet[0] >> 4 != 4 || packet[9] != 17 {
                continue;
            }
            if len == 29 {
                return held;
            }
            held.push(clock::now());
            echo(&mut packet[..len]);
            there.write_all(&packet[..len]).expect("write");
        }
    });
    let profile = lab.profile("[up]\ndelay = \"30ms\"\n[down]\ndelay = \"50ms\"");
    lab.emud(&["attach", "tun0", "-p", &profile, "--engine", engine.name()])
        .expect(0);
    let trips = inside(&lab.a, || {
        let socket = UdpSocket::bind("10.88.0.1:7001").expect("bind");
        socket.connect("10.88.0.2:7002").expect("connect");
        socket
            // For a lost packet, not for a slow host.
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("time-out");
        let trips: Vec<(u64, u64)> = (0..20)
            .map(|number| {
                let sent = clock::now();
                socket.send(&[number; 32]).expect("send");
                let mut answer = [0u8; 64];
                let len = socket.recv(&mut answer).expect("an answer");
                assert_eq!(answer[..len], [number; 32]);
                (sent, clock::now())
            })
            .collect();
        socket.send(&[0]).expect("send");
        trips
    })
    .join()
    .expect("round trips");
    let held = program.join().expect("the program behind the tun");
    let ms = |a: u64, b: u64| (b - a) as f64 / 1e6;
    let up: Vec<f64> = trips.iter().zip(&held).map(|(t, h)| ms(t.0, *h)).collect();
    let down: Vec<f64> = trips.iter().zip(&held).map(|(t, h)| ms(*h, t.1)).collect();
    let mut verdict = Verdict::default();
    // The program in the middle is an ordinary task: a busy host only adds to a trip, so the
    // minimum is the link's.
    verdict.near("up, least ms", 30.0, least(&up), within_ms());
    verdict.near("down, least ms", 50.0, least(&down), within_ms());
    lab.emud(&["detach", "tun0"]).expect(0);
    assert_eq!(before, lab.snapshot());
    verdict.end();
}

/// A tun with the offloads of a network card: its packets have a `struct virtio_net_hdr` in front.
fn offloading_tun(name: &str) -> File {
    const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
    const CSUM_AND_TSO4: libc::c_uint = 1 | 2;
    let file = tun_with(name, libc::IFF_VNET_HDR);
    // SAFETY: the argument is a number.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, CSUM_AND_TSO4) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    file
}

/// Packets on the wire, and their bytes.
#[derive(Default)]
struct Wire {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Passes on what one tun sends to another one, until a namespace is deleted.
fn wire(mut from: File, mut to: File) -> Arc<Wire> {
    const VNET_LEN: usize = 10;
    let wire = Arc::new(Wire::default());
    let counted = wire.clone();
    thread::spawn(move || {
        let mut read = vec![0u8; 68 << 10];
        while let Ok(len) = from.read(&mut read) {
            let gso_size = usize::from(u16::from_ne_bytes([read[4], read[5]]));
            let packet = &read[VNET_LEN..len];
            let mut size = (1, packet.len());
            if read[1] != 0 {
                // IPv4 and TCP, which each packet of the train has in front.
                let ip = usize::from(packet[0] & 15) * 4;
                let headers = ip + usize::from(packet[ip + 12] >> 4) * 4;
                let packets = (packet.len() - headers).div_ceil(gso_size);
                size = (packets, packet.len() + (packets - 1) * headers);
            }
            counted.packets.fetch_add(size.0 as u64, Relaxed);
            counted.bytes.fetch_add(size.1 as u64, Relaxed);
            if to.write_all(&read[..len]).is_err() {
                return;
            }
        }
    });
    wire
}

/// `keep` on a device without an Ethernet header: super-packets stay whole, take the time of their packets
/// on the wire, and count as those.
pub fn keep_without_ethernet(engine: Engine) {
    const RATE: f64 = 50e6;
    let lab = Lab::empty();
    let [ta, tb] = [(&lab.a, "ta", "10.88.0.1"), (&lab.b, "tb", "10.88.0.2")].map(|of| {
        let (space, name, address) = of;
        let file = inside(space, move || offloading_tun(name));
        let file = file.join().expect("a tun");
        sh(&format!(
            "ip -n {space} link set dev {name} addrgenmode none
             ip -n {space} addr add {address}/24 dev {name}
             ip -n {space} link set dev {name} up"
        ));
        file
    });
    let again = |file: &File| file.try_clone().expect("a descriptor");
    let wires = [wire(again(&ta), again(&tb)), wire(again(&tb), again(&ta))];
    let before = lab.snapshot();
    let segmentation = || {
        let limits = "ip -d link show ta | grep -o \"gso_max_[a-z]* [0-9]*\"";
        lab.in_a(&format!("{limits}; ethtool -k ta"))
    };
    let untouched = segmentation();
    // A class only holds packets with engine hold.
    let (limit, bottleneck) = match engine {
        Engine::Hold => ("class = \"b\"", "[bottleneck.b]\nrate = \"50Mbit\"\n"),
        Engine::Fq | Engine::Qdisc => ("rate = \"50Mbit\"", ""),
    };
    let profile = lab.profile(&format!(
        "offload = \"keep\"\n[link]\ndelay = \"5ms\"\n[up]\n{limit}\n{bottleneck}"
    ));
    lab.emud(&["attach", "ta", "-p", &profile, "--engine", engine.name()])
        .expect(0);
    let mut verdict = Verdict::default();
    assert_eq!(untouched, segmentation());
    let goodput = Bulk {
        from: lab.a.clone(),
        to: lab.b.clone(),
        address: "10.88.0.2".parse().unwrap(),
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(2),
        // Keeps the wire busy, and does not fill the queue.
        window: Some(256 << 10),
    }
    .goodput_bit_s();
    let allowed = RATE * bulk::SEGMENT / 1500.0;
    verdict.at_most("payload bit/s", 1.03 * allowed, goodput);
    // A machine that stands still for 0.2 s takes a tenth; tests/pure proves the rate.
    let share = if full() || guest() { 0.97 } else { 0.7 };
    verdict.at_least("payload bit/s", share * allowed, goodput);
    // Until all has arrived, and the holder has reported.
    thread::sleep(Duration::from_secs(1));
    let show = || {
        let mut shown = lab.emud(&["show", "ta", "--json"]).expect(0).json();
        shown["interfaces"][0].take()
    };
    let arrived = |shown: &Value| {
        let mut directions = ["up", "down"].iter().zip(&wires);
        directions.all(|(direction, wire)| {
            let counters = &shown[direction]["counters"];
            let has_left = counters["packets"] == counters["sent_packets"];
            has_left && counters["bytes"] == wire.bytes.load(Relaxed)
        })
    };
    let until = Instant::now() + Duration::from_secs(20);
    let mut shown = show();
    while !arrived(&shown) && Instant::now() < until {
        thread::sleep(Duration::from_millis(100));
        shown = show();
    }
    for (direction, wire) in ["up", "down"].iter().zip(&wires) {
        let counters = &shown[direction]["counters"];
        let of = |key: &str| counters[key].as_u64().expect("a number");
        verdict.same(direction, of("packets"), of("sent_packets"));
        verdict.same("packets", wire.packets.load(Relaxed), of("packets"));
        verdict.same("bytes", wire.bytes.load(Relaxed), of("bytes"));
        verdict.same("bytes sent", of("bytes"), of("sent_bytes"));
    }
    let supers = shown["up"]["counters"]["super_packets"].as_u64();
    verdict.at_least("super-packets", 1.0, supers.expect("a number") as f64);
    lab.emud(&["detach", "ta"]).expect(0);
    assert_eq!(before, lab.snapshot());
    verdict.end();
}

/// Super-packets are split into wire packets before the link sees them, or left and counted.
pub fn segmentation(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    // The link sees packets as the other end sends them.
    sh(&format!("ip -n {} link set dev vb gso_max_segs 1", lab.b));
    lab.in_a("ethtool -K va gro on >/dev/null");
    let limits = || {
        let link = lab.in_a("ip -d link show dev va");
        let segments = link.split("gso_max_segs ").nth(1).expect("a limit");
        let segments: u64 = segments.split(' ').next().unwrap().parse().unwrap();
        let gro = lab.in_a("ethtool -k va | grep generic-receive-offload");
        (segments, gro.contains(": on"))
    };
    let bare = limits();
    assert!(bare.0 > 1 && bare.1, "{bare:?}");
    for (offload, wanted) in [("auto", (1, false)), ("keep", bare)] {
        // A rate requires separate decisions per packet; with fq a delay alone does not.
        lab.attach(
            engine,
            &format!("offload = \"{offload}\"\n[link]\ndelay = \"5ms\""),
            &[],
        );
        let delays_only = if engine.is_stamped() { bare } else { wanted };
        verdict.same(
            &format!("{offload}, delay: gso_max_segs and GRO"),
            delays_only,
            limits(),
        );
        lab.emud(&["set", "va", "rate=10Gbit"]).expect(0);
        verdict.same(
            &format!("{offload}: gso_max_segs and GRO"),
            wanted,
            limits(),
        );
        let goodput = bulk(&lab).goodput_bit_s();
        let packets = lab.shown("/up/counters/packets");
        let bytes = lab.shown("/up/counters/bytes");
        let supers = lab.shown("/up/counters/super_packets");
        println!(
            "    {offload}: {:.0} Mbit/s, {packets} packets, {supers} super-packets",
            goodput / 1e6
        );
        verdict.same(
            &format!("{offload}: super-packets"),
            offload == "keep",
            supers > 0,
        );
        // Wire packets and bytes are counted in either case.
        verdict.at_most(
            &format!("{offload}: bytes a packet"),
            1514.0,
            bytes as f64 / packets as f64,
        );
        lab.detach();
        verdict.same(&format!("{offload}: restored"), bare, limits());
    }
    verdict.end();
}

/// A device with several queues keeps mq, with an fq under each class, if packets of all links may
/// overtake.
pub fn queues(engine: Engine) {
    let constant = "delay = \"30ms\"";
    let overtaking = "delay = { mean = \"30ms\", jitter = \"1us\", reorder = \"jitter\" }";
    let beside = format!("{constant}\n[links.x]\n{overtaking}\n");
    for (delay, mq, fq) in [(constant, 0, 1), (&beside, 0, 1), (overtaking, 1, 4)] {
        several(engine, delay, mq, fq);
    }
}

fn several(engine: Engine, delay: &str, mq: usize, fq: usize) {
    let lab = Lab::with_queues(4);
    lab.attach(engine, &format!("[link]\n{delay}\n"), &[]);
    let roots = lab.in_a("tc qdisc show dev va");
    let count = |kind: &str| roots.lines().filter(|l| l.starts_with(kind)).count();
    let mut verdict = Verdict::default();
    if engine == Engine::Fq {
        verdict.same("mq", mq, count("qdisc mq "));
        verdict.same("fq", fq, count("qdisc fq "));
    }
    let received = lab.ping("-q -c 50 -i 0.01");
    verdict.same(
        "all pings are answered",
        true,
        received.contains(" 0% packet loss"),
    );
    let least = received
        .split("rtt min/avg/max/mdev = ")
        .nth(1)
        .expect("times");
    let least: f64 = least.split('/').next().unwrap().parse().expect("a time");
    verdict.at_least("least round trip, ms", 2.0 * DELAY_MS - 0.1, least);
    let said = lab.emud(&["set", "va", "up.delay=30ms"]).expect(0).out;
    let noted = said.contains("packets overtake one another between the transmit queues");
    let wanted = engine == Engine::Fq && mq == 1;
    verdict.same("set makes a link in order", wanted, noted);
    verdict.end();
}
