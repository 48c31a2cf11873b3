// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `emud_saved` map: a text in pieces, of which the kernel has as many as it is long. A write
//! fills the half of the map that is not in force; then one entry puts it in force.

use aya::maps::{HashMap, MapData, MapError};

use super::{DatapathError, at};
use crate::abi;

const NAME: &str = "emud_saved";
const HEAD: u32 = 0;
const PIECE: usize = abi::EMUD_PIECE_LEN as usize;
const LEN_MAX: usize = PIECE * abi::EMUD_PIECES as usize;
const EMPTY: abi::emud_piece = abi::emud_piece {
    first: 0,
    len: 0,
    writes: 0,
    bytes: [0; PIECE],
};
/// Reads that writes may disturb. Only `emud set` writes more than once.
const ATTEMPTS: usize = 100;

/// The record that attach saves for show, set and detach.
pub(crate) struct Record {
    map: HashMap<MapData, u32, abi::emud_piece>,
}

impl Record {
    /// Wraps the map.
    pub(crate) fn new(map: HashMap<MapData, u32, abi::emud_piece>) -> Self {
        Self { map }
    }

    /// Returns the bytes of the last write.
    pub(crate) fn read(&self) -> Result<Vec<u8>, DatapathError> {
        for _ in 0..ATTEMPTS {
            let Some(head) = self.head()? else {
                return Ok(Vec::new());
            };
            let pieces = keys(&head).map(|key| self.piece(key));
            let pieces = pieces.collect::<Result<Option<Vec<_>>, _>>()?;
            let unchanged = self.head()?.is_some_and(|now| now.writes == head.writes);
            if let (true, Some(pieces)) = (unchanged, pieces) {
                let mut bytes: Vec<u8> = pieces.into_iter().flat_map(|p| p.bytes).collect();
                bytes.truncate(head.len as usize);
                return Ok(bytes);
            }
        }
        Err(at(NAME)(MapError::KeyNotFound))
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// There are too many bytes, or the map cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), DatapathError> {
        if bytes.len() > LEN_MAX {
            return Err(DatapathError::TooLong(bytes.len()));
        }
        let before = self.head()?;
        let head = abi::emud_piece {
            first: match before {
                Some(before) if before.first == 1 => 1 + abi::EMUD_PIECES,
                _ => 1,
            },
            len: bytes.len() as u32,
            writes: before.map_or(0, |before| before.writes.wrapping_add(1)),
            ..EMPTY
        };
        for (key, part) in keys(&head).zip(bytes.chunks(PIECE)) {
            let mut piece = EMPTY;
            piece.bytes[..part.len()].copy_from_slice(part);
            self.set(key, piece)?;
        }
        self.set(HEAD, head)?;
        for key in before.iter().flat_map(keys) {
            self.map.remove(&key).map_err(at(NAME))?;
        }
        Ok(())
    }

    fn head(&self) -> Result<Option<abi::emud_piece>, DatapathError> {
        self.piece(HEAD)
    }

    fn piece(&self, key: u32) -> Result<Option<abi::emud_piece>, DatapathError> {
        match self.map.get(&key, 0) {
            Ok(piece) => Ok(Some(piece)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(e) => Err(at(NAME)(e)),
        }
    }

    fn set(&mut self, key: u32, piece: abi::emud_piece) -> Result<(), DatapathError> {
        self.map.insert(key, piece, 0).map_err(at(NAME))
    }
}

fn keys(head: &abi::emud_piece) -> impl Iterator<Item = u32> + use<> {
    head.first..head.first + head.len.div_ceil(abi::EMUD_PIECE_LEN)
}
