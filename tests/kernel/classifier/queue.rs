// SPDX-License-Identifier: MIT OR Apache-2.0
//! Framing, burst, limits and ECN: to the nanosecond. `aqm` tests the queue managers.

use emud::profile::{Cells, Queue, Wire};

use super::timeline::{rates, traced};
use super::*;

/// 1 us a byte.
const RATE: u64 = 8_000_000;

fn wire(wire: Wire, overhead: i32) -> Link {
    link(|l| {
        l.rate = Some(RATE);
        l.wire = wire;
        l.overhead = overhead;
    })
}

/// Measures links one after the other, each on an idle wire.
struct Scale {
    bench: Bench,
    at: u64,
}

impl Scale {
    fn new() -> Self {
        Self {
            bench: Bench::new(&link(|_| {})),
            at: 0,
        }
    }

    /// A packet's bytes on the wire, from its time there.
    fn bytes(&mut self, l: &Link, len: usize) -> u64 {
        self.at += 10 * MS;
        self.bench.set(l, 42, stamp_place());
        let ns = self.bench.send(&udp4(len, 1), self.at).departure - self.at;
        assert_eq!(ns % 1000, 0);
        ns / 1000
    }
}

#[test]
fn cells_and_least_lengths_are_as_tc_has_them() {
    let mut scale = Scale::new();
    let mut bytes = |l: &Link, len| scale.bytes(l, len);
    let atm = Wire {
        cells: Some(Cells::Atm),
        ..Wire::default()
    };
    // The examples of tc-stab(8) and tc-netem(8), and the edges of a cell.
    for (len, want) in [
        (100, 159),
        (50, 106),
        (48, 53),
        (49, 106),
        (96, 106),
        (1514, 1696),
    ] {
        assert_eq!(bytes(&wire(atm, 0), len), want, "atm, {len}");
    }
    // tc-stab(8): PPPoA over VC/Mux, 10 bytes beside the IP packet's.
    assert_eq!(bytes(&wire(atm, -4), 100), 2 * 53, "atm, overhead -4");
    assert_eq!(bytes(&wire(atm, -5), 101), 2 * 53, "atm, overhead -5");
    let ptm = Wire {
        cells: Some(Cells::Ptm),
        ..Wire::default()
    };
    for (len, want) in [(64, 65), (65, 67), (128, 130), (1514, 1538)] {
        assert_eq!(bytes(&wire(ptm, 0), len), want, "ptm, {len}");
    }
    let shrinking = Wire {
        cells: Some(Cells::Of {
            size: 100,
            overhead: -10,
        }),
        ..Wire::default()
    };
    assert_eq!(bytes(&wire(shrinking, 0), 150), 180);
    let mpu = Wire {
        mpu: 64,
        ..Wire::default()
    };
    for (overhead, len, want) in [
        (0, 50, 64),
        (0, 64, 64),
        (0, 65, 65),
        (4, 50, 64),
        (18, 50, 68),
    ] {
        assert_eq!(
            bytes(&wire(mpu, overhead), len),
            want,
            "mpu 64, {len} + {overhead}"
        );
    }
    assert_eq!(
        bytes(&wire(Wire { mpu: 64, ..atm }, 0), 45),
        106,
        "mpu before cells"
    );
}

#[test]
fn every_packet_of_a_super_packet_is_framed() {
    let atm = Wire {
        cells: Some(Cells::Atm),
        mpu: 64,
        ..Wire::default()
    };
    let cells = |len: u64| len.max(64).div_ceil(48) * 53;
    // 42 bytes of headers; pieces of 1000 and what is left.
    for payload in [2000u64, 2001, 2010, 2500, 3400] {
        let b = Bench::new(&wire(atm, 8));
        let fate = b.send_gso(&udp4(42 + payload as usize, 1), 0, 1000);
        let (full, rest) = (payload / 1000, payload % 1000);
        let last = if rest > 0 { cells(42 + rest + 8) } else { 0 };
        let want = full * cells(1042 + 8) + last;
        assert_eq!(fate.departure, want * 1000, "{payload}");
        assert_eq!(b.counters().packets, payload.div_ceil(1000));
    }
}

#[test]
fn a_burst_passes_at_once_after_idleness_and_no_more() {
    let burst = |bytes| Wire {
        burst: Some(bytes),
        ..Wire::default()
    };
    let b = Bench::new(&wire(burst(4000), 0));
    let sent = |n: usize, at: u64| -> Vec<u64> {
        (0..n)
            .map(|_| b.send(&udp4(1000, 1), at).departure)
            .collect()
    };
    assert_eq!(sent(6, 0), [0, 0, 0, 0, MS, 2 * MS]);
    // The wire has been idle since 2 ms: the burst is available again.
    assert_eq!(sent(3, 4 * MS + 500_000)[..2], [4 * MS + 500_000; 2]);
    assert_eq!(sent(1, 4 * MS + 500_000), [6 * MS]);
    assert_eq!(
        sent(5, 1_000 * MS),
        [1_000 * MS, 1_000 * MS, 1_000 * MS, 1_000 * MS, 1_001 * MS]
    );
    // In the long run it is the rate, and no fraction is lost: 21,333 1/3 us each.
    let b = Bench::new(&link(|l| {
        l.rate = Some(384_000);
        l.wire = burst(3 * 1024);
        l.queue = Limit::Packets(65_536).into();
    }));
    for n in 0..300u64 {
        let want = n.saturating_sub(2) * 8 * 1024 * 1_000_000_000 / 384_000;
        assert_eq!(b.send(&udp4(1024, 1), 0).departure, want, "packet {n}");
    }
}

#[test]
fn a_burst_goes_on_top_of_the_queue() {
    let b = Bench::new(&link(|l| {
        l.rate = Some(RATE);
        l.wire.burst = Some(4000);
        l.queue = Limit::Bytes(3000).into();
    }));
    let admitted = (0..20)
        .filter(|_| b.send(&udp4(1000, 1), 0).verdict == TC_ACT_UNSPEC)
        .count();
    assert_eq!(admitted, 4 + 3);
}

#[test]
fn all_limits_hold_together() {
    for (packets, bytes, ms, fits) in [(4, 9_000, 9, 4), (9, 5_000, 9, 5), (9, 9_000, 2, 3)] {
        let b = Bench::new(&link(|l| {
            l.rate = Some(RATE);
            l.queue = Queue {
                packets: Some(packets),
                bytes: Some(bytes),
                time_ns: Some(ms * MS),
                ..Queue::default()
            };
        }));
        let admitted = (0..20)
            .filter(|_| b.send(&udp4(1000, 1), 0).verdict == TC_ACT_UNSPEC)
            .count();
        assert_eq!(admitted, fits, "{packets}p {bytes}B {ms}ms");
        assert_eq!(b.counters().queue_dropped, 20 - fits as u64);
    }
}

/// Trains of 1 to 40 packets at random times, so that they end and begin anywhere in the ring. One
/// that is longer than the queue is admitted to an empty one only.
#[test]
fn a_limit_in_packets_counts_those_of_super_packets() {
    for limit in [1, 10, 39, 100] {
        let queue = Limit::Packets(limit as u32).into();
        trains(
            limit,
            &link(|l| {
                l.rate = Some(RATE);
                l.queue = queue;
            }),
        );
        // The rows' queue is other code.
        trains(
            limit,
            &Link {
                queue,
                ..traced(rates(&[(0, RATE), (10, RATE)], 20, true))
            },
        );
    }
}

fn trains(limit: u64, link: &Link) {
    const EACH: u64 = 50_000;
    let b = Bench::new(link);
    let mut random = limit;
    let mut below = |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % n
    };
    // Until when each packet in the queue counts: until the last of its train has left the wire.
    let mut queue: Vec<u64> = Vec::new();
    let (mut at, mut free, mut refused) = (0, 0, 0);
    for train in 0..2_000 {
        let n = 1 + below(40);
        at += below(2 * n * EACH);
        queue.retain(|left| *left > at);
        // 42 bytes of headers and 8 of payload are 50 us.
        let fate = b.send_gso(&udp4(42 + 8 * n as usize, 1), at, 8);
        let fits = queue.len() as u64 + n <= limit || queue.is_empty();
        if !fits {
            assert_eq!(fate.verdict, TC_ACT_STOLEN, "{limit}: train {train} of {n}");
            refused += n;
            continue;
        }
        free = free.max(at) + n * EACH;
        queue.extend((0..n).map(|_| free));
        let want = Fate {
            verdict: TC_ACT_UNSPEC,
            departure: free,
        };
        assert_eq!(fate, want, "{limit}: train {train} of {n}");
    }
    assert!(refused > 0);
    assert_eq!(b.counters().queue_dropped, refused);
}

/// Sends a frame; its verdict and what it became.
pub fn send_and_see(b: &Bench, frame: &[u8], at: u64) -> (i32, Vec<u8>) {
    let left = run(&b.loaded, frame, &arriving(b.start + at));
    (left.verdict, left.frame)
}

/// The sum over an IPv4 header; 0xffff if its checksum is right.
fn ip4_sum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// [`udp4`] of `len` bytes with these ECN bits and a right header checksum.
pub fn udp4_ecn(len: usize, ecn: u8) -> Vec<u8> {
    let mut f = udp4(len, 1);
    f[15] = 0xb8 | ecn; // with a DSCP that must stay
    let sum = !ip4_sum(&f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(ip4_sum(&f[14..34]), 0xffff);
    f
}

fn udp6_ecn(len: usize, ecn: u8) -> Vec<u8> {
    let mut f = ip6(17, 0);
    f.resize(len, 7);
    f[14] = 0x6b;
    f[15] = 0x85 | ecn << 4; // DSCP 101110, flow label 5....
    f
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    let mut f = frame[..12].to_vec();
    f.extend_from_slice(&[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7]);
    f.extend_from_slice(&frame[12..]);
    f
}

#[test]
fn above_the_threshold_what_understands_it_is_marked() {
    let marking = link(|l| {
        l.rate = Some(RATE);
        l.queue.ecn_above_ns = Some(5 * MS);
    });
    type Make = fn(usize, u8) -> Vec<u8>;
    // Where the ECN bits are: byte and shift.
    let cases: [(&str, Make, usize, u8); 4] = [
        ("IPv4", udp4_ecn, 15, 0),
        ("IPv6", udp6_ecn, 15, 4),
        (
            "IPv4, two tags",
            |len, ecn| tagged(&udp4_ecn(len - 8, ecn)),
            23,
            0,
        ),
        (
            "IPv6, two tags",
            |len, ecn| tagged(&udp6_ecn(len - 8, ecn)),
            23,
            4,
        ),
    ];
    for (name, make, byte, shift) in cases {
        for ecn in 0..4u8 {
            let b = Bench::new(&marking);
            let frame = make(1000, ecn);
            for n in 0..12u64 {
                let (verdict, got) = send_and_see(&b, &frame, 0);
                assert_eq!(verdict, TC_ACT_UNSPEC);
                let mut want = frame.clone();
                // It waits for n ms.
                if n > 5 && ecn != 0 {
                    want[byte] |= 3 << shift;
                    if shift == 0 {
                        let ip = byte - 1;
                        want[ip + 10..ip + 12].fill(0);
                        let sum = !ip4_sum(&want[ip..ip + 20]);
                        want[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
                    }
                }
                assert!(got == want, "{name}, ECN {ecn}, packet {n}");
            }
            let marked = if ecn == 0 { 0 } else { 6 };
            assert_eq!(b.counters().marked, marked, "{name}, ECN {ecn}");
            assert_eq!(b.counters().queue_dropped, 0);
        }
    }
}

#[test]
fn what_is_not_ip_is_never_marked() {
    let b = Bench::new(&link(|l| {
        l.rate = Some(RATE);
        l.queue.ecn_above_ns = Some(0);
    }));
    let mut lldp = vec![0xff; 60];
    lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
    for _ in 0..3 {
        assert_eq!(send_and_see(&b, &lldp, 0), (TC_ACT_UNSPEC, lldp.clone()));
    }
    assert_eq!(b.counters().marked, 0);
}

#[test]
fn another_rate_keeps_the_time_to_a_nanosecond() {
    // The fraction that 1 Tbit/s leaves is in another unit than that of 9600 bit/s.
    let mut b = Bench::new(&link(|l| l.rate = Some(999_999_999_999)));
    let busy = b.send(&udp4(61, 1), 0).departure;
    b.set(&link(|l| l.rate = Some(9_600)), 42, stamp_place());
    let next = b.send(&udp4(60, 1), 0).departure;
    assert!(
        next - busy - 60 * 8_000_000_000 / 9_600 <= 1,
        "{next} after {busy}"
    );
}
