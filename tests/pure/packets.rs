// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of each packet between two captures.

use emud::packets::{Capture, CaptureError, Fate, Listing, pair, read};
use support::site::Scratch;

const MS: u64 = 1_000_000;
const AT: u64 = 1_700_000_000_000_000_000;

/// UDP over IPv4 in Ethernet, after `hops` routers.
fn udp(number: u16, hops: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![hops; 12];
    frame.extend([0x08, 0x00, 0x45, 0x02 * u8::from(hops > 0)]);
    frame.extend((28 + len as u16).to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend([0x40, 0, 64 - hops, 17, hops, hops, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x1b, 0x59, 0x1b, 0x5a]);
    frame.extend((8 + len as u16).to_be_bytes());
    // The checksum, which the device of the sender computes after the capture.
    frame.extend([0, hops]);
    frame.extend((0..len).map(|at| (at % 251) as u8));
    frame
}

/// A frame of IPv6 with the headers of the network changed by `hops` routers.
fn icmp6(number: u8, hops: u8) -> Vec<u8> {
    let mut frame = vec![hops; 12];
    // An 802.1Q tag.
    frame.extend([0x81, 0x00, 0x00, 0x07, 0x86, 0xdd]);
    frame.extend([0x60, hops << 4, 0, 9, 0, 16, 58, 64 - hops]);
    frame.extend([0xfd; 32]);
    frame.extend([128, 0, 1, 2, 0, 0, 0, number, 1, 2, 3, 4, 5, 6, 7, 8]);
    frame
}

/// A frame, its time in ns, and how many of its bytes the capture has.
type Record = (u64, Vec<u8>, usize);

fn whole(time_ns: u64, frame: Vec<u8>) -> Record {
    let len = frame.len();
    (time_ns, frame, len)
}

fn pcap(records: &[Record], has_ns: bool) -> Vec<u8> {
    let (magic, unit): (u32, u64) = match has_ns {
        true => (0xa1b2_3c4d, 1),
        false => (0xa1b2_c3d4, 1_000),
    };
    let mut file = magic.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for (time_ns, frame, taken) in records {
        let (s, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / unit);
        for word in [s as u32, rest as u32, *taken as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame[..*taken]);
    }
    file
}

/// pcapng with times in units of 2^-20 s.
fn pcapng(records: &[Record]) -> Vec<u8> {
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = (padded as u32 + 12).to_le_bytes();
        let mut block = [&kind.to_le_bytes()[..], &len, body].concat();
        block.resize(8 + padded, 0);
        block.extend(len);
        block
    }
    let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(
        1,
        &[
            1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 0x94, 0, 0, 0, 0, 0, 0, 0,
        ],
    ));
    for (time_ns, frame, taken) in records {
        let ticks = (u128::from(*time_ns) << 20).div_ceil(1_000_000_000) as u64;
        let mut body = vec![0; 4];
        for word in [
            (ticks >> 32) as u32,
            ticks as u32,
            *taken as u32,
            frame.len() as u32,
        ] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&frame[..*taken]);
        file.extend(block(6, &body));
    }
    file
}

/// Reads a file of these bytes.
fn file(bytes: &[u8]) -> Result<Capture, CaptureError> {
    let folder = Scratch::new();
    let path = folder.join("pcap");
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

fn capture(records: &[Record]) -> Capture {
    file(&pcap(records, true)).unwrap()
}

fn fates(listing: &Listing<'_>) -> Vec<(u64, Fate)> {
    let packets = listing.packets.iter();
    packets
        .map(|listed| ((listed.packet.time_ns - AT) / MS, listed.fate))
        .collect()
}

/// Ten packets, of which the third is lost and the fifth copied; the second capture ends before the last.
fn both_sides() -> [Vec<Record>; 2] {
    let sent = |number: u16| AT + u64::from(number) * MS;
    let before = (0..10)
        .map(|n| whole(sent(n), udp(n, 0, 100 + usize::from(n))))
        .collect();
    let came = [0, 1, 3, 4, 4, 5, 6, 7, 8];
    let delays = [20, 21, 20, 20, 25, 20, 20, 20, 20];
    let after = came.into_iter().zip(delays);
    let after = after.map(|(n, ms)| whole(sent(n) + ms * MS, udp(n, 1, 100 + usize::from(n))));
    [before, after.collect()]
}

fn arrived(ms: u64) -> Fate {
    Fate::Arrived { delay_ns: ms * MS }
}

#[test]
fn each_packet_has_its_fate() {
    let captures = both_sides().map(|records| capture(&records));
    let listing = pair(&captures[0], &captures[1]).unwrap();
    let mut wanted: Vec<_> = (0..10).map(|n| (n, arrived(20))).collect();
    wanted[1].1 = arrived(21);
    wanted[2].1 = Fate::Lost;
    wanted[9].1 = Fate::Open;
    wanted.insert(5, (4, Fate::Copied { delay_ns: 25 * MS }));
    assert_eq!(fates(&listing), wanted);
    assert_eq!(listing.of_elsewhere, 0);
    let first = listing.packets[0].packet;
    assert_eq!(
        (first.ports, first.protocol, first.bytes),
        (Some([7001, 7002]), 17, 128)
    );
    assert_eq!(first.source.to_string(), "10.0.0.1");
}

#[test]
fn formats_say_the_same() {
    let [before, after] = both_sides();
    let second = capture(&after);
    let by_ns = capture(&before);
    for bytes in [pcap(&before, false), pcapng(&before)] {
        let first = file(&bytes).unwrap();
        // A tick of pcapng is 954 ns here.
        for (one, other) in first.packets.iter().zip(&by_ns.packets) {
            assert!(one.time_ns.abs_diff(other.time_ns) < 1_000);
        }
        let [one, other] =
            [&first, &by_ns].map(|first| fates_by_kind(&pair(first, &second).unwrap()));
        assert_eq!(one, other);
    }
}

fn fates_by_kind(listing: &Listing<'_>) -> [usize; 4] {
    let mut counts = [0; 4];
    for listed in &listing.packets {
        let kind = match listed.fate {
            Fate::Arrived { .. } => 0,
            Fate::Copied { .. } => 1,
            Fate::Lost => 2,
            Fate::Open => 3,
        };
        counts[kind] += 1;
    }
    counts
}

/// `tcpdump -s 60` in front of the link only.
#[test]
fn a_capture_that_cuts_packets_is_compared_as_far_as_it_goes() {
    let [mut before, after] = both_sides();
    for (.., taken) in &mut before {
        *taken = 60;
    }
    let captures = [before, after].map(|records| capture(&records));
    let listing = pair(&captures[0], &captures[1]).unwrap();
    assert_eq!(fates_by_kind(&listing), [8, 1, 1, 1]);
}

#[test]
fn equal_packets_are_taken_in_their_order() {
    let frame = || icmp6(1, 0);
    let first = capture(&[whole(AT, frame()), whole(AT + 10 * MS, frame())]);
    let later = [15, 26].map(|ms| whole(AT + ms * MS, icmp6(1, 3)));
    let second = capture(&later);
    let listing = pair(&first, &second).unwrap();
    assert_eq!(fates(&listing), [(0, arrived(15)), (10, arrived(16))]);
    // One that came before any was sent is of another sender, or by another clock.
    let second = capture(&[vec![whole(AT - MS, icmp6(1, 3))], later.to_vec()].concat());
    let listing = pair(&first, &second).unwrap();
    assert_eq!(fates(&listing), [(0, arrived(15)), (10, arrived(16))]);
    assert_eq!((listing.of_elsewhere, listing.earlier), (0, 1));
    let later = capture(&later);
    let listing = pair(&later, &first).unwrap();
    assert_eq!(fates_by_kind(&listing)[0], 0);
    assert_eq!((listing.of_elsewhere, listing.earlier), (0, 2));
}

/// Answers pass the second capture before the first one. That is no loss, also of one that the second one began too
/// late for.
#[test]
fn answers_are_not_listed() {
    let [mut before, mut after] = both_sides();
    let answer = |number: u16, hops| {
        let mut frame = udp(number, hops, 50);
        frame[26..30].copy_from_slice(&[10, 0, 0, 2]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 1]);
        frame
    };
    let at = |number: u16| AT + 21 * MS + u64::from(number) * MS;
    after.extend((1..5).map(|n| whole(at(n), answer(n, 1))));
    before.extend((0..4).map(|n| whole(at(n) + 3 * MS, answer(n, 2))));
    for records in [&mut before, &mut after] {
        records.sort_by_key(|(time_ns, ..)| *time_ns);
    }
    let listing = [before, after].map(|records| capture(&records));
    let listing = pair(&listing[0], &listing[1]).unwrap();
    assert_eq!(fates_by_kind(&listing), [8, 1, 1, 1]);
    assert_eq!((listing.earlier, listing.of_elsewhere), (4, 1));
}

/// Nothing says what became of a packet while nobody looked.
#[test]
fn nothing_is_lost_outside_of_the_second_capture() {
    let [before, after] = both_sides();
    let before = capture(&before);
    let nothing = Capture::default();
    let listing = pair(&before, &nothing).unwrap();
    assert_eq!(fates_by_kind(&listing), [0, 0, 0, 10]);
    let late = capture(&after[4..]);
    let listing = pair(&before, &late).unwrap();
    // The first four came before it begins. Of the fifth only the copy did not.
    assert_eq!(fates_by_kind(&listing), [5, 0, 4, 1]);
}

#[test]
fn a_super_packet_is_an_error_and_no_loss() {
    let first = capture(&[whole(AT, udp(1, 0, 4_000)), whole(AT + MS, udp(2, 0, 100))]);
    let parts = [1_400, 1_400, 1_200, 100].map(|len| whole(AT + 2 * MS, udp(1, 1, len)));
    let second = capture(&parts);
    let merged = pair(&first, &second).unwrap_err();
    assert_eq!((merged.packet.bytes, merged.is_first), (4_028, true));
    let merged = pair(&second, &first).unwrap_err();
    assert_eq!((merged.packet.bytes, merged.is_first), (4_028, false));
    // One that is lost with all of its flow is a packet of a larger MTU.
    let second = capture(&[whole(AT, icmp6(1, 0)), whole(AT + MS, icmp6(2, 0))]);
    assert!(pair(&first, &second).is_ok());
}

#[test]
fn other_files_are_errors() {
    let of = |bytes: &[u8]| {
        let e = file(bytes).unwrap_err();
        (e.exit_code(), e.to_string())
    };
    for bytes in [
        &b""[..],
        b"\xd4\xc3",
        b"no capture at all, but text of some length",
    ] {
        let (code, text) = of(bytes);
        assert!(code == 65 && text.contains("tcpdump -w FILE"), "{text}");
    }
    let [before, _] = both_sides();
    let mut other = pcap(&before, true);
    other[20] = 147;
    assert!(of(&other).1.contains("capture on Ethernet"));
    let missing = read(&Scratch::new().join("none")).unwrap_err();
    assert_eq!(missing.exit_code(), 66);
}

/// A capture that was killed ends within a packet.
#[test]
fn the_rest_of_a_packet_is_left_out() {
    let [before, _] = both_sides();
    let whole = pcap(&before, true);
    let read = file(&whole[..whole.len() - 1]).unwrap();
    assert_eq!((read.packets.len(), read.ends_within), (9, true));
    let read = file(&whole).unwrap();
    assert_eq!((read.packets.len(), read.ends_within), (10, false));
}

#[test]
fn other_protocols_are_counted() {
    let mut arp = vec![0; 42];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let read = capture(&[
        whole(AT, arp),
        whole(AT, udp(1, 0, 10)),
        whole(AT, vec![0; 9]),
    ]);
    assert_eq!((read.packets.len(), read.not_ip), (1, 2));
}

/// Headers of any content are read, or counted.
#[test]
fn no_frame_is_a_panic() {
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    let frames = (0..20_000).map(|n| {
        let mut frame = if n % 2 == 0 {
            udp(n, 0, 60)
        } else {
            icmp6(1, 0)
        };
        let len = 14 + usize::from(random()) % (frame.len() - 13);
        for _ in 0..3 {
            let at = 12 + usize::from(random()) % (frame.len() - 12);
            frame[at] = random();
        }
        (AT + u64::from(n), frame, len)
    });
    let frames: Vec<_> = frames.collect();
    let first = capture(&frames);
    assert_eq!(first.packets.len() as u64 + first.not_ip, 20_000);
    let listing = pair(&first, &first).unwrap();
    assert!(
        listing
            .packets
            .iter()
            .all(|listed| listed.fate == arrived(0))
    );
}
