// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a recording.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::bytes::{KINDS, RECORD_BYTES, Record};
use super::end::EndRecord;
use super::event::Kind;
use super::header::{MAGIC, VERSION};
use super::{Event, Header, Trailer};

/// A recording under construction. Without [`Self::finish`] it reads as cut short.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    crc: crc32fast::Hasher,
    counts: [u64; KINDS],
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let json = serde_json::to_vec(header)?;
        let length = u32::try_from(json.len()).map_err(io::Error::other)?;
        let mut writer = Self {
            out,
            crc: crc32fast::Hasher::new(),
            counts: [0; KINDS],
        };
        writer.put(MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&length.to_le_bytes())?;
        writer.put(&json)?;
        Ok(writer)
    }

    /// Writes one event.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.record(&event.encode())
    }

    /// Writes a little-endian record unchanged.
    pub(super) fn record(&mut self, record: &Record) -> io::Result<()> {
        if let Some(i) = Kind::all().position(|k| k.code() == record[0]) {
            self.counts[i] += 1;
        }
        self.put(record)
    }

    /// Returns the number of records written so far, by kind.
    pub fn counts(&self) -> BTreeMap<Kind, u64> {
        let counts = Kind::all().zip(self.counts);
        counts.filter(|(_, n)| *n > 0).collect()
    }

    /// Passes buffered data to the system, so that it survives this process.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the end, which shows a reader that nothing is missing.
    pub fn finish(mut self, trailer: &Trailer) -> io::Result<W> {
        let json = serde_json::to_vec(trailer)?;
        let end = EndRecord {
            records: self.counts.iter().sum(),
            trailer_bytes: u32::try_from(json.len()).map_err(io::Error::other)?,
            trailer_crc: crc32fast::hash(&json),
            crc: self.crc.finalize(),
        };
        self.out.write_all(&end.encode())?;
        self.out.write_all(&json)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.out.write_all(bytes)
    }
}

const _: () = assert!(RECORD_BYTES == 32, "docs/record-format.md");
