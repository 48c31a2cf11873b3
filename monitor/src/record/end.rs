// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last record of the file.

use super::abi;
use super::bytes::{
    EXTRA, ID, NETNS, RECORD_BYTES, Record, VALUE, put_id, put_times, u32_at, u64_at,
};

/// The record before the trailer: number of records, length and checksum of the trailer, checksum
/// of everything before this record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndRecord {
    pub records: u64,
    pub trailer_bytes: u32,
    pub trailer_crc: u32,
    pub crc: u32,
}

impl EndRecord {
    pub const CODE: u8 = abi::EMUD_REC_END as u8;

    pub fn encode(&self) -> Record {
        let mut r = [0; RECORD_BYTES];
        r[0] = Self::CODE;
        put_id(&mut r, self.trailer_bytes, self.trailer_crc);
        put_times(&mut r, 0, self.records);
        r[EXTRA..].copy_from_slice(&self.crc.to_le_bytes());
        r
    }

    /// Returns `None` if it holds a value that [`Self::encode`] does not write.
    pub fn decode(r: &Record) -> Option<Self> {
        let end = Self {
            records: u64_at(r, VALUE),
            trailer_bytes: u32_at(r, ID),
            trailer_crc: u32_at(r, NETNS),
            crc: u32_at(r, EXTRA),
        };
        (end.encode() == *r).then_some(end)
    }
}
