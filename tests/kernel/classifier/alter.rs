// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies with separate delays, and bit errors.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use super::*;
use emud::profile::{ChecksumAfter, Corrupt, Duplicate};
use support::site::unique;

fn corrupted(f: impl FnOnce(&mut Corrupt)) -> Link {
    link(|l| {
        l.corrupt.probability = 1.0;
        f(&mut l.corrupt);
    })
}

/// The frame after the link.
fn pass(b: &Bench, frame: &[u8]) -> Vec<u8> {
    let left = run(&b.loaded, frame, &arriving(b.start));
    assert_eq!(left.verdict, TC_ACT_UNSPEC);
    left.frame
}

/// Returns the differing bits, counted from the start of the IP header.
fn flipped(before: &[u8], after: &[u8]) -> Vec<usize> {
    assert_eq!(before.len(), after.len());
    let bits = |i: usize| (0..8).filter(move |bit| (before[i] ^ after[i]) >> bit & 1 == 1);
    let all = (0..before.len()).flat_map(|i| bits(i).map(move |bit| (i, bit)));
    all.map(|(i, bit)| {
        assert!(i >= 14, "not in the Ethernet header");
        (i - 14) * 8 + bit
    })
    .collect()
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    let mut sum: u32 = words
        .map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// Addresses, protocol and length as in the pseudo-header.
fn pseudo(frame: &[u8]) -> u32 {
    let (addresses, proto, l4) = l4_of(frame);
    sum(addresses) + u32::from(proto) + (frame.len() - l4) as u32
}

fn l4_of(frame: &[u8]) -> (&[u8], u8, usize) {
    match frame[12] {
        0x08 => (&frame[26..34], frame[23], 34),
        _ => (&frame[22..54], frame[20], 54),
    }
}

fn checksum_at(frame: &[u8]) -> usize {
    let (_, proto, l4) = l4_of(frame);
    match proto {
        6 => l4 + 16,
        17 => l4 + 6,
        _ => l4 + 2,
    }
}

/// ICMP over IPv4 has no pseudo-header.
fn l4_is_right(frame: &[u8]) -> bool {
    let (_, proto, l4) = l4_of(frame);
    let pseudo = if proto == 1 { 0 } else { pseudo(frame) };
    let whole = pseudo + sum(&frame[l4..]);
    (whole & 0xffff) + (whole >> 16) == 0xffff
}

fn ip_is_right(frame: &[u8]) -> bool {
    frame[12] != 0x08 || sum(&frame[14..34]) == 0xffff
}

/// Returns `frame` with payload and valid checksums.
fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    let l4 = l4_of(&frame).2;
    for (i, byte) in frame.iter_mut().enumerate().skip(l4 + 20) {
        *byte = (i * 37) as u8;
    }
    if l4_of(&frame).1 == 17 {
        let len = (frame.len() - l4) as u16;
        frame[l4 + 4..l4 + 6].copy_from_slice(&len.to_be_bytes());
    }
    if frame[12] == 0x08 {
        frame[24..26].fill(0);
        let checksum = !(sum(&frame[14..34]) as u16);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    let at = checksum_at(&frame);
    frame[at..at + 2].fill(0);
    let pseudo = if l4_of(&frame).1 == 1 {
        0
    } else {
        pseudo(&frame)
    };
    let whole = pseudo + sum(&frame[l4..]);
    let checksum = !(((whole & 0xffff) + (whole >> 16)) as u16);
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    assert!(l4_is_right(&frame) && ip_is_right(&frame));
    frame
}

pub(super) fn ip4(proto: u8, len: usize) -> Vec<u8> {
    let mut frame = udp4(len, 1000);
    frame[23] = proto;
    frame[46] = if proto == 6 { 0x50 } else { 0 };
    summed(frame)
}

fn ip6_of(proto: u8) -> Vec<u8> {
    let mut frame = ip6(proto, if proto == 58 { 128 } else { 3 });
    frame[66] = if proto == 6 { 0x50 } else { 0 };
    summed(frame)
}

#[test]
fn as_many_bits_as_asked_turn_over_in_the_range() {
    let frame = ip4(17, 200);
    for bits in [1, 2, 7, 32] {
        let b = Bench::new(&corrupted(|c| {
            c.bits = bits;
            c.from = 28;
            c.to = Some(60);
        }));
        let mut seen = [false; 32 * 8];
        for _ in 0..4000 {
            let out = pass(&b, &frame);
            let hit = flipped(&frame, &out);
            assert_eq!(hit.len(), bits as usize);
            for bit in hit {
                assert!((28 * 8..60 * 8).contains(&bit), "bit {bit}");
                seen[bit - 28 * 8] = true;
            }
        }
        // 4000 bits of 256: one is never chosen with probability 256 e^-15.6.
        assert!(seen.iter().all(|seen| *seen), "{bits} bits");
        let c = b.counters();
        assert_eq!((c.corrupted, c.unaltered), (4000, 0));
    }
}

/// Every bit of the IP packet is equally likely, those of Ethernet padding are never chosen.
#[test]
fn all_bits_are_hit_alike() {
    let mut frame = ip4(17, 60);
    frame.extend([0; 20]);
    let b = Bench::new(&corrupted(|_| {}));
    let (n, bits) = (46_000u32, 46 * 8);
    let mut hits = vec![0f64; bits];
    for _ in 0..n {
        for bit in flipped(&frame, &pass(&b, &frame)) {
            hits[bit] += 1.0;
        }
    }
    let mean = f64::from(n) / bits as f64;
    let chi2: f64 = hits.iter().map(|h| (h - mean).powi(2) / mean).sum();
    // Chi-squared of k degrees: mean k, standard deviation sqrt(2k).
    let k = (bits - 1) as f64;
    assert!((chi2 - k).abs() < 3.5 * (2.0 * k).sqrt(), "{chi2} for {k}");
}

#[test]
fn a_share_is_corrupted() {
    for correlation in [0.0, 0.4] {
        let b = Bench::new(&link(|l| {
            l.corrupt = Corrupt {
                probability: 0.05,
                correlation,
                ..Corrupt::default()
            }
        }));
        let (n, frame) = (40_000u64, ip4(17, 100));
        let changed: Vec<u64> = (0..n).filter(|_| pass(&b, &frame) != frame).collect();
        assert_eq!(b.counters().corrupted, changed.len() as u64);
        let t = emud::profile::quantile::normal_quantile(0.05);
        let others: f64 = (1..500)
            .map(|lag| support::chain::both_below(t, correlation.powi(lag)))
            .sum();
        let share = support::chain::Expected {
            value: 0.05,
            error: ((0.05 * 0.95 + 2.0 * others) / n as f64).sqrt(),
        };
        share.meets(
            &format!("correlation {correlation}"),
            changed.len() as f64 / n as f64,
        );
    }
}

#[test]
fn a_checksum_is_kept_or_mended() {
    let frames = [
        ip4(17, 121),
        ip4(6, 200),
        ip4(1, 99),
        ip6_of(17),
        ip6_of(6),
        ip6_of(58),
    ];
    for frame in frames {
        let keep = Bench::new(&corrupted(|c| c.from = 40));
        let mend = Bench::new(&corrupted(|c| {
            c.bits = 3;
            c.checksum = ChecksumAfter::Mend;
            // Version, header length, lengths and protocol stay: the positions of other fields
            // depend on them.
            c.from = if frame[12] == 0x08 { 12 } else { 8 };
        }));
        for _ in 0..500 {
            let out = pass(&keep, &frame);
            assert_eq!(flipped(&frame, &out).len(), 1);
            assert!(!l4_is_right(&out), "kept, so wrong: {out:02x?}");
            let out = pass(&mend, &frame);
            assert!(l4_is_right(&out) && ip_is_right(&out), "{out:02x?}");
            // Three bits of the data, and the bits of the checksums.
            let sums = [checksum_at(&frame), 24];
            let own = |bit: &usize| {
                !sums
                    .iter()
                    .any(|s| (s - 14) * 8 <= *bit && *bit < (s - 12) * 8)
            };
            let own = flipped(&frame, &out)
                .into_iter()
                .filter(|bit| own(bit) || (frame[12] != 0x08 && (10 * 8..12 * 8).contains(bit)));
            assert_eq!(own.count(), 3, "{out:02x?}");
        }
    }
}

#[test]
fn a_udp_packet_without_a_checksum_stays_so() {
    let mut frame = ip4(17, 100);
    frame[40..42].fill(0);
    for checksum in [ChecksumAfter::Keep, ChecksumAfter::Mend] {
        let b = Bench::new(&corrupted(|c| {
            c.from = 28;
            c.checksum = checksum;
        }));
        for _ in 0..100 {
            assert_eq!(flipped(&frame, &pass(&b, &frame)).len(), 1);
        }
    }
}

#[test]
fn what_cannot_be_corrupted_is_counted() {
    // The range begins after the packet's end.
    let b = Bench::new(&corrupted(|c| c.from = 86));
    let frame = ip4(17, 100);
    assert_eq!(pass(&b, &frame), frame);
    // The checksum of a fragment is that of the whole packet.
    let mut fragment = frame.clone();
    fragment[20] = 0x20;
    let mend = Bench::new(&corrupted(|c| c.checksum = ChecksumAfter::Mend));
    assert_eq!(pass(&mend, &fragment), fragment);
    for b in [&b, &mend] {
        let c = b.counters();
        assert_eq!((c.corrupted, c.unaltered), (0, 1));
    }
    // A packet that is not IP has no checksum to repair.
    let mut lldp = vec![0u8; 60];
    lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
    assert_eq!(flipped(&lldp, &pass(&mend, &lldp)).len(), 1);
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;

/// TCP in a frame of this kind, with these flags.
fn tcp_in(mut frame: Vec<u8>, flags: u8) -> Vec<u8> {
    let l4 = l4_of(&frame).2;
    frame[l4 + 13] = flags;
    summed(frame)
}

#[test]
fn a_share_of_tcp_packets_becomes_resets() {
    const SHARE: f64 = 0.05;
    let b = Bench::new(&link(|l| l.reset = SHARE));
    let n = 20_000u64;
    let mut resets = 0;
    for kind in [ip4(6, 200), ip6_of(6)] {
        let frame = tcp_in(kind, ACK | PSH);
        let reset = tcp_in(frame.clone(), ACK | RST);
        let before = resets;
        for _ in 0..n {
            let left = pass(&b, &frame);
            resets += u64::from(left == reset);
            assert!(left == reset || left == frame, "{left:02x?}");
        }
        let share = support::chain::Expected {
            value: SHARE,
            error: (SHARE * (1.0 - SHARE) / n as f64).sqrt(),
        };
        share.meets("share of resets", (resets - before) as f64 / n as f64);
    }
    let c = b.counters();
    assert_eq!((c.reset, c.unaltered), (resets, 0));
}

/// A receiver accepts the sequence number of these, and conntrack accepts their flags.
#[test]
fn a_reset_has_no_other_flag_of_a_connection() {
    let b = Bench::new(&link(|l| l.reset = 1.0));
    for (flags, wanted) in [
        (SYN | ACK, RST | ACK),
        (FIN | ACK, RST | ACK),
        (ACK | PSH | URG, RST | ACK),
        (ACK | ECE, RST | ACK | ECE),
        (0, RST),
    ] {
        let frame = tcp_in(ip4(6, 200), flags);
        assert_eq!(
            pass(&b, &frame),
            tcp_in(frame.clone(), wanted),
            "{flags:#x}"
        );
    }
}

#[test]
fn what_has_no_connection_to_end_is_not_reset() {
    let b = Bench::new(&link(|l| l.reset = 1.0));
    let mut fragment = tcp_in(ip4(6, 200), ACK);
    fragment[21] = 1;
    let of_tcp = [SYN, SYN | ECE, RST, RST | ACK].map(|flags| tcp_in(ip4(6, 200), flags));
    for frame in of_tcp
        .into_iter()
        .chain([fragment, ip4(17, 100), ip4(1, 99), ip6_of(58)])
    {
        assert_eq!(pass(&b, &frame), frame);
    }
    let c = b.counters();
    assert_eq!((c.reset, c.unaltered), (0, 0));
}

#[test]
fn the_same_seed_corrupts_the_same_bits() {
    let frame = ip4(17, 300);
    let run = |seed| {
        let b = Bench::with(&corrupted(|c| c.bits = 2), seed, stamp_place());
        (0..50).map(|_| pass(&b, &frame)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn checksums_are_computed_first_while_a_link_keeps_them() {
    let keeps = corrupted(|_| {});
    let mends = corrupted(|c| c.checksum = ChecksumAfter::Mend);
    let mut b = Bench::new(&link(|_| {}));
    for (l, wanted) in [(&keeps, 1), (&mends, 0), (&keeps, 1), (&link(|_| {}), 0)] {
        b.set(l, 42, stamp_place());
        let word = b.maps.control().unwrap().generation;
        assert_eq!(word / abi::EMUD_SUMS % 2, wanted);
    }
}

/// A veth in a separate namespace: a packet redirected to one end arrives at the other.
struct Wire {
    name: String,
    socket: OwnedFd,
    /// Index of the end that receives redirected packets.
    ifindex: u32,
}

impl Wire {
    /// Puts the calling thread into the namespace.
    fn new() -> Self {
        let name = unique("alter");
        for line in [
            format!("netns add {name}"),
            format!("-n {name} link add w0 type veth peer name w1"),
            format!("-n {name} link set w0 up"),
            format!("-n {name} link set w1 up"),
        ] {
            let done = Command::new("ip").args(line.split(' ')).status().unwrap();
            assert!(done.success(), "ip {line}");
        }
        emud::netlink::enter(&name).unwrap();
        let index = |device: &str| {
            let device = std::ffi::CString::new(device).unwrap();
            // SAFETY: a string that lives until the call returns.
            unsafe { libc::if_nametoindex(device.as_ptr()) }
        };
        // SAFETY: plain calls with valid arguments; the descriptor is owned here alone.
        let socket = unsafe {
            let all = i32::from((libc::ETH_P_ALL as u16).to_be());
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, all);
            assert!(fd >= 0);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = index("w1") as i32;
            let length = size_of_val(&address) as libc::socklen_t;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0);
            OwnedFd::from_raw_fd(fd)
        };
        let ifindex = index("w0");
        Self {
            name,
            socket,
            ifindex,
        }
    }

    /// Returns all frames with a departure time in front: the time, and the rest.
    fn frames(&self) -> Vec<(u64, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: the buffer has the given length.
            let len = unsafe {
                let (at, len) = (buffer.as_mut_ptr().cast(), buffer.len());
                libc::recv(self.socket.as_raw_fd(), at, len, 0)
            };
            let Ok(len) = usize::try_from(len) else {
                return frames;
            };
            let magic = u32::from_ne_bytes(buffer[8..12].try_into().unwrap());
            // IPv6 packets that the device sends by itself.
            let header = size_of::<abi::emud_hold_hdr>();
            if len > header && magic == abi::EMUD_HOLD_MAGIC {
                let departure = u64::from_ne_bytes(buffer[..8].try_into().unwrap());
                frames.push((departure, buffer[header..len].to_vec()));
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
    }
}

/// Returns the departures of packets and copies, for those that were copied.
fn copies(wire: &Wire, l: &Link, n: u64) -> (Bench, Vec<(f64, f64)>) {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_HOLD,
        ifindex: wire.ifindex,
        l3: false,
    };
    let mut b = Bench::with(l, 42, place);
    let holder = abi::emud_holder {
        lease_ns: u64::MAX / 2,
        ..Default::default()
    };
    b.maps.set_holder(abi::EMUD_UP, &holder).unwrap();
    let frame = ip4(17, 100);
    let mut copied = Vec::new();
    for i in 0..n {
        let at = i * 100_000;
        let ctx = arriving(b.start + at);
        let mut data = [0u8; 4096];
        let program = b.loaded.program(Program::Classify).unwrap();
        let result = program.test_run(TestRunOptions {
            data_in: Some(&frame),
            data_out: Some(&mut data),
            ctx_in: Some(&ctx),
            ..TestRunOptions::new()
        });
        assert_eq!(result.unwrap().return_value as i32, TC_ACT_REDIRECT);
        let header = size_of::<abi::emud_hold_hdr>();
        assert_eq!(
            data[header..header + 100],
            frame,
            "the packet without a change"
        );
        let own = u64::from_ne_bytes(data[..8].try_into().unwrap());
        let delay = |departure: u64| (departure - b.start - at) as f64;
        for (departure, copy) in wire.frames() {
            assert_eq!(copy, frame);
            copied.push((delay(own), delay(departure)));
        }
    }
    (b, copied)
}

/// Veths deliver packets in softirq, which runs before a test run returns.
#[test]
fn a_copy_takes_its_own_delay() {
    let wire = Wire::new();
    let (mean, sd, n) = (100e6, 10e6, 20_000u64);
    let mut l = jitter(mean as u64, sd, Distribution::Normal, Reorder::Jitter);
    l.duplicate = Duplicate {
        probability: 0.2,
        correlation: 0.0,
    };
    let (b, copied) = copies(&wire, &l, n);
    let c = b.counters();
    assert_eq!((c.duplicated, c.unaltered), (copied.len() as u64, 0));
    assert_eq!(c.packets, n, "a copy was not sent");
    let share = support::chain::Expected {
        value: 0.2,
        error: (0.2 * 0.8 / n as f64).sqrt(),
    };
    share.meets("copies", copied.len() as f64 / n as f64);
    let k = copied.len() as f64;
    let (own, others): (Vec<f64>, Vec<f64>) = copied.iter().copied().unzip();
    for delays in [&own, &others] {
        let (m, s) = moments(delays);
        assert!((m - mean).abs() < 3.5 * sd / k.sqrt(), "mean {m}");
        assert!((s - sd).abs() < 3.5 * sd / (2.0 * k).sqrt(), "sd {s}");
    }
    let together: f64 = copied.iter().map(|(a, b)| (a - mean) * (b - mean)).sum();
    let correlation = together / k / (sd * sd);
    assert!(
        correlation.abs() < 3.5 / k.sqrt(),
        "correlation {correlation}"
    );

    // In order, all packets of one instant have the same delay; a constant delay is the same
    // anyway.
    let mut l = jitter(100 * MS, 10e6, Distribution::Normal, Reorder::Never);
    l.duplicate.probability = 1.0;
    let (b, copied) = copies(&wire, &l, 500);
    assert_eq!(copied.len(), 500);
    assert!(copied.iter().all(|(own, copy)| own == copy));
    assert_eq!(b.counters().reordered, 0);

    // A copy is one of the packet's current state, damaged or not.
    let mut l = corrupted(|c| c.from = 28);
    l.duplicate.probability = 1.0;
    let b = Bench::with(
        &l,
        42,
        PacketTarget {
            release: abi::EMUD_RELEASE_STAMP,
            ifindex: 0,
            l3: false,
        },
    );
    // By stamp: to the loopback of this namespace, which has no receiver.
    assert_ne!(pass(&b, &ip4(17, 100)), ip4(17, 100));
    let c = b.counters();
    assert_eq!((c.corrupted, c.duplicated, c.unaltered), (1, 1, 0));
}

/// The stamp of a copy is not left on the packet, nor its mark.
#[test]
fn a_copy_leaves_the_packet_as_it_was() {
    let mut l = jitter(100 * MS, 10e6, Distribution::Normal, Reorder::Jitter);
    let plain = Bench::new(&l);
    l.duplicate.probability = 1.0;
    let b = Bench::new(&l);
    let frame = ip4(17, 100);
    for i in 0..200 {
        assert_eq!(
            b.send(&frame, i * MS),
            plain.send(&frame, i * MS),
            "packet {i}"
        );
    }
    let c = b.counters();
    // If loopback is down here, the kernel rejects the clone, which is counted.
    assert_eq!(c.duplicated + c.unaltered, 200);
}
