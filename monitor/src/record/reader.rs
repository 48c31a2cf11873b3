// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a recording, event by event.

use std::io::{self, Read};

use super::bytes::{RECORD_BYTES, Record};
use super::end::EndRecord;
use super::header::{MAGIC, VERSION};
use super::{Event, Header, ReadError, SCHEMA, Trailer};

/// A longer header or trailer is rejected.
const JSON_MAX: u32 = 1 << 20;

/// The end of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The file is complete.
    Complete(Trailer),
    /// The recorder did not reach the end (kill -9, full disk): intervals that were open then and
    /// the last counts of lost records are missing.
    Cut {
        /// Length of the incomplete last record.
        stray_bytes: u64,
    },
}

/// The events of a recording; stops after the first error.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    crc: crc32fast::Hasher,
    /// Offset of the next record.
    offset: u64,
    records: u64,
    failed: bool,
    end: Option<End>,
}

impl<R: Read> Reader<R> {
    /// Reads the header. `input` should be buffered.
    ///
    /// # Errors
    /// An error of `input`, or the file is not a recording that this version reads.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut fixed = [0; 16];
        let got = read_up_to(&mut input, &mut fixed)?;
        let magic = got.min(MAGIC.len());
        if got == 0 || fixed[..magic] != MAGIC[..magic] {
            return Err(ReadError::NotARecording);
        }
        if got < fixed.len() {
            return Err(ReadError::CutInHeader);
        }
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
        let (version, length) = (word(8), word(12));
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        if length > JSON_MAX {
            return Err(ReadError::Header(format!(
                "invalid length of {length} bytes"
            )));
        }
        let mut json = vec![0; length as usize];
        if read_up_to(&mut input, &mut json)? < json.len() {
            return Err(ReadError::CutInHeader);
        }
        let header: Header =
            serde_json::from_slice(&json).map_err(|e| ReadError::Header(e.to_string()))?;
        if header.schema != SCHEMA {
            return Err(ReadError::Header(format!("schema {:?}", header.schema)));
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&fixed);
        crc.update(&json);
        Ok(Self {
            input,
            header,
            crc,
            offset: (fixed.len() + json.len()) as u64,
            records: 0,
            failed: false,
            end: None,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the end of the recording; known once all events are read without an error.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Returns the number of records read so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn read_event(&mut self) -> Result<Option<Event>, ReadError> {
        let mut record: Record = [0; RECORD_BYTES];
        let got = read_up_to(&mut self.input, &mut record)?;
        if got < record.len() {
            let stray_bytes = got as u64;
            self.end = Some(End::Cut { stray_bytes });
            return Ok(None);
        }
        if record[0] == EndRecord::CODE {
            self.end = Some(self.read_end(&record)?);
            return Ok(None);
        }
        let event = Event::decode(&record).map_err(|problem| self.damaged(problem))?;
        self.crc.update(&record);
        self.offset += RECORD_BYTES as u64;
        self.records += 1;
        Ok(Some(event))
    }

    fn read_end(&mut self, record: &Record) -> Result<End, ReadError> {
        let end =
            EndRecord::decode(record).ok_or_else(|| self.damaged("the end record is invalid"))?;
        if end.records != self.records {
            let problem = format!("{} records, and {} were written", self.records, end.records);
            return Err(self.damaged(problem));
        }
        if end.crc != self.crc.clone().finalize() {
            return Err(self.damaged("the checksum of the records differs"));
        }
        if end.trailer_bytes > JSON_MAX {
            return Err(self.damaged(format!(
                "invalid length of the trailer, {} bytes",
                end.trailer_bytes
            )));
        }
        let mut json = vec![0; end.trailer_bytes as usize];
        let got = read_up_to(&mut self.input, &mut json)?;
        if got < json.len() {
            let stray_bytes = (RECORD_BYTES + got) as u64;
            return Ok(End::Cut { stray_bytes });
        }
        if crc32fast::hash(&json) != end.trailer_crc {
            return Err(self.damaged("the checksum of the trailer differs"));
        }
        if read_up_to(&mut self.input, &mut [0])? > 0 {
            return Err(self.damaged("bytes after the end"));
        }
        serde_json::from_slice(&json)
            .map(End::Complete)
            .map_err(|e| self.damaged(format!("the trailer is invalid: {e}")))
    }

    fn damaged(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Damaged {
            offset: self.offset,
            problem: problem.into(),
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.end.is_some() {
            return None;
        }
        let event = self.read_event();
        self.failed = event.is_err();
        event.transpose()
    }
}

/// Reads up to the length of `buffer`; fewer bytes mean the end of the input.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
