// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of a datagram: its number, its host, and when it was sent.

use std::fs;
use std::io::{self, ErrorKind};

/// Length of the header in each datagram: a number of 40 bits, a host of 24, and the time of sending, all little-endian.
/// With RTP it follows [`RTP_HEADER`](super::RTP_HEADER).
pub const DATAGRAM_MIN: usize = 16;

const NUMBER_BITS: u32 = 40;

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EmudHeader {
    /// Of its sender, from 0.
    pub number: u64,
    /// Of its sender, as [`host()`] returns it.
    pub host: u32,
    /// CLOCK_MONOTONIC of that host.
    pub sent_ns: u64,
}

impl EmudHeader {
    pub fn bytes(self) -> [u8; DATAGRAM_MIN] {
        let first = self.number | u64::from(self.host) << NUMBER_BITS;
        let mut bytes = [0; DATAGRAM_MIN];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes
    }

    /// Returns nothing for a datagram that is too short.
    pub fn read(data: &[u8]) -> Option<Self> {
        let (first, rest) = data.split_first_chunk()?;
        let first = u64::from_le_bytes(*first);
        Some(Self {
            number: first & ((1 << NUMBER_BITS) - 1),
            host: (first >> NUMBER_BITS) as u32,
            sent_ns: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// Returns 24 random bits of the kernel's start. Clocks of different starts cannot be compared.
pub fn host() -> io::Result<u32> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let bits = id
        .get(..6)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    bits.ok_or_else(|| ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = EmudHeader {
            number: (1 << NUMBER_BITS) - 2,
            host: 0x00ff_eedd,
            sent_ns: u64::MAX - 1,
        };
        assert_eq!(EmudHeader::read(&header.bytes()), Some(header));
        assert_eq!(EmudHeader::read(&header.bytes()[..15]), None);
    }

    #[test]
    fn a_host_has_24_bits() {
        assert!(host().unwrap() < 1 << 24);
        assert_eq!(host().unwrap(), host().unwrap());
    }
}
