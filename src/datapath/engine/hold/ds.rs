// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DS field of a frame that waits: its DSCP, and the ECN bits (RFC 3168) that a class marks.

use super::frame::VNET_LEN;

const ETHER_TYPE: usize = VNET_LEN + 12;
const TAG_LEN: usize = 4;
/// As many as bpf/parse.h follows.
const TAGS: usize = 2;
const IP4_CHECKSUM: usize = 10;
const CE: u8 = 3;

/// An IP header in a frame after its vnet header.
enum Header {
    Ip4(usize),
    Ip6(usize),
}

fn header(frame: &[u8]) -> Option<Header> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = ETHER_TYPE;
    for _ in 0..TAGS {
        if ![0x8100, 0x88a8].contains(&word(at)?) {
            break;
        }
        at += TAG_LEN;
    }
    let (ether_type, ip) = (word(at)?, at + 2);
    match (ether_type, frame.get(ip)? >> 4) {
        (0x0800, 4) if frame.len() >= ip + 20 => Some(Header::Ip4(ip)),
        (0x86dd, 6) if frame.len() >= ip + 40 => Some(Header::Ip6(ip)),
        _ => None,
    }
}

/// Returns the DS field of a frame after its vnet header; 0 without IP.
pub(super) fn of(frame: &[u8]) -> u8 {
    match header(frame) {
        Some(Header::Ip4(ip)) => frame[ip + 1],
        Some(Header::Ip6(ip)) => frame[ip] << 4 | frame[ip + 1] >> 4,
        None => 0,
    }
}

/// Sets CE. The checksum of IPv4 changes by as much as the header (RFC 1624); no other covers it.
pub(super) fn mark(frame: &mut [u8]) {
    match header(frame) {
        Some(Header::Ip4(ip)) => {
            let added = CE & !frame[ip + 1];
            frame[ip + 1] |= CE;
            let at = ip + IP4_CHECKSUM;
            let sum = !u16::from_be_bytes([frame[at], frame[at + 1]]);
            let (sum, carry) = sum.overflowing_add(added.into());
            let sum = !(sum + u16::from(carry));
            frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Some(Header::Ip6(ip)) => frame[ip + 1] |= CE << 4,
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sum of RFC 1071 over a header: 0xffff if its checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2);
        let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn frame(tags: usize, ether_type: u16, ip: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHER_TYPE];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend(ether_type.to_be_bytes());
        frame.extend(ip);
        frame
    }

    fn ip4(ds: u8, id: u16) -> Vec<u8> {
        let mut ip = vec![0x45, ds, 0, 40];
        ip.extend(id.to_be_bytes());
        ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = !sum(&ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip
    }

    #[test]
    fn ipv4_is_marked_with_its_checksum() {
        // Over all identifications, and with them all values of the checksum.
        for id in 0..=u16::MAX {
            let ds = 46 << 2 | (id % 3 + 1) as u8;
            let mut frame = frame(usize::from(id % 3), 0x0800, &ip4(ds, id));
            assert_eq!(of(&frame), ds);
            mark(&mut frame);
            assert_eq!(of(&frame), 46 << 2 | 3);
            assert_eq!(sum(&frame[frame.len() - 20..]), 0xffff, "{id}");
        }
    }

    #[test]
    fn ipv6_is_marked_and_nothing_else_of_it_changes() {
        let mut ip = vec![0x6b, 0x8a, 0xbc, 0xde];
        ip.resize(40, 0x11);
        let mut marked = frame(1, 0x86dd, &ip);
        assert_eq!(of(&marked), 0xb8);
        mark(&mut marked);
        ip[1] = 0xba;
        assert_eq!(marked, frame(1, 0x86dd, &ip));
    }

    #[test]
    fn what_is_not_ip_stays_as_it_is() {
        let short = ip4(1, 1)[..19].to_vec();
        for (ether_type, ip) in [(0x0806, ip4(1, 1)), (0x0800, short), (0x86dd, ip4(1, 1))] {
            let before = frame(0, ether_type, &ip);
            let mut after = before.clone();
            mark(&mut after);
            assert_eq!((of(&before), after), (0, before));
        }
        for len in 0..ETHER_TYPE + 4 {
            mark(&mut vec![0; len]);
        }
    }
}
