// SPDX-License-Identifier: MIT OR Apache-2.0
//! Echo requests and replies (RFC 792, RFC 4443).

use std::net::IpAddr;

use super::probe::Wire;

const HEADER: usize = 8;

pub struct Icmp {
    v6: bool,
    ident: u16,
}

impl Icmp {
    pub fn new(peer: IpAddr, ident: u16) -> Self {
        Self {
            v6: peer.is_ipv6(),
            ident,
        }
    }

    const fn request(&self) -> u8 {
        if self.v6 { 128 } else { 8 }
    }

    const fn reply(&self) -> u8 {
        if self.v6 { 129 } else { 0 }
    }
}

impl Wire for Icmp {
    fn pack(&self, payload: &[u8], number: u32) -> Vec<u8> {
        let mut packet = vec![self.request(), 0, 0, 0];
        packet.extend(self.ident.to_be_bytes());
        packet.extend((number as u16).to_be_bytes());
        packet.extend(payload);
        // The kernel computes the checksum of ICMPv6, which includes the addresses.
        if !self.v6 {
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    fn unpack<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        // A raw IPv4 socket returns the IP header as well.
        let skip = match self.v6 {
            true => 0,
            false => usize::from(packet.first()? & 15) * 4,
        };
        let (header, payload) = packet.get(skip..)?.split_at_checked(HEADER)?;
        let ours = header[0] == self.reply() && header[4..6] == self.ident.to_be_bytes();
        ours.then_some(payload)
    }
}

/// Returns the checksum of RFC 1071.
fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_over_the_packet_and_its_checksum_is_zero() {
        let icmp = Icmp::new(IpAddr::from([10, 0, 0, 1]), 77);
        for payload in [&b"even"[..], b"odd"] {
            assert_eq!(checksum(&icmp.pack(payload, 5)), 0);
        }
    }

    #[test]
    fn a_reply_is_known_and_a_request_is_not() {
        let icmp = Icmp::new(IpAddr::from([10, 0, 0, 1]), 77);
        let mut packet = vec![0x45; 20];
        packet.extend(icmp.pack(b"payload", 5));
        assert_eq!(icmp.unpack(&packet), None);
        packet[20] = 0;
        assert_eq!(icmp.unpack(&packet), Some(&b"payload"[..]));
        assert_eq!(
            Icmp::new(IpAddr::from([10, 0, 0, 1]), 78).unpack(&packet),
            None
        );
        assert_eq!(icmp.unpack(&packet[..22]), None);
    }
}
