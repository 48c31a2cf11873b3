// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of RTP (RFC 3550, section 5.1), and when the packets of a video leave.

/// Bytes of a header without contributing sources and extension.
pub const RTP_HEADER: usize = 12;
/// Ticks of a time stamp in a second, as for video.
pub(super) const CLOCK: u64 = 90_000;
/// Version 2, and nothing else in this byte.
const VERSION: u8 = 0x80;
/// The first dynamic payload type.
const PAYLOAD: u8 = 96;
const MARKER: u8 = 0x80;

/// The fields that a stream changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether this is the last packet of a frame.
    pub marker: bool,
    pub sequence: u16,
    /// Time of the frame in ticks of 90 kHz.
    pub timestamp: u32,
    /// Synchronization source.
    pub source: u32,
}

impl Header {
    pub fn bytes(self) -> [u8; RTP_HEADER] {
        let mut bytes = [0; RTP_HEADER];
        bytes[0] = VERSION;
        bytes[1] = PAYLOAD | if self.marker { MARKER } else { 0 };
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.source.to_be_bytes());
        bytes
    }

    /// Returns the header of a datagram and its payload; `None`: it has no such header.
    pub fn read(data: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = data.split_first_chunk::<RTP_HEADER>()?;
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| bytes[at + n]));
        let header = Self {
            marker: bytes[1] & MARKER != 0,
            sequence: u16::from_be_bytes([bytes[2], bytes[3]]),
            timestamp: word(4),
            source: word(8),
        };
        (bytes[0] == VERSION && bytes[1] & !MARKER == PAYLOAD).then_some((header, rest))
    }
}

/// A stream that gives each frame what its rate has in the time of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames {
    /// Bit/s.
    pub rate: u64,
    /// Frames a second.
    pub fps: u32,
}

impl Frames {
    /// Returns the frame in which a byte of the stream is.
    pub fn of(self, byte: u64) -> u64 {
        let bits = u128::from(byte) * 8 * u128::from(self.fps);
        u64::try_from(bits / u128::from(self.rate)).unwrap_or(u64::MAX)
    }

    /// Returns the time of a frame in units of 1/`units` s.
    pub fn time(self, frame: u64, units: u64) -> u64 {
        let time = u128::from(frame) * u128::from(units) / u128::from(self.fps);
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of RFC 3550, section 5.1.
    #[test]
    fn a_header_has_the_layout_of_the_rfc() {
        let header = Header {
            marker: true,
            sequence: 0x1234,
            timestamp: 0x5678_9abc,
            source: 0xdef0_1122,
        };
        let bytes = [
            0x80, 0xe0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0x22,
        ];
        assert_eq!(header.bytes(), bytes);
        let mut datagram = bytes.to_vec();
        datagram.push(7);
        assert_eq!(Header::read(&datagram), Some((header, &[7][..])));
        datagram[0] = 0x40;
        assert_eq!(Header::read(&datagram), None);
        assert_eq!(Header::read(&bytes[..11]), None);
        let inside = Header {
            marker: false,
            ..header
        };
        assert_eq!(inside.bytes()[1], 96);
    }

    /// 2 Mbit/s are 8,333.3 bytes in a thirtieth of a second; the rate is exact over frames.
    #[test]
    fn a_frame_has_what_the_rate_gives_it() {
        let frames = Frames {
            rate: 2_000_000,
            fps: 30,
        };
        let of = [0, 8_333, 8_334, 249_999, 250_000].map(|byte| frames.of(byte));
        assert_eq!(of, [0, 0, 1, 29, 30]);
        assert_eq!(frames.time(1, 1_000_000_000), 33_333_333);
        assert_eq!(
            [1, 30, 31].map(|n| frames.time(n, CLOCK)),
            [3_000, 90_000, 93_000]
        );
    }
}
