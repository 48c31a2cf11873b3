// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocates the rows of traces and phases in their map. Active rows stay where they are, so that a
//! change of anything else writes none of them; new rows use free space.

use std::os::fd::AsFd;

use aya::maps::{Array, Map, MapData, MapError};

use super::{DatapathError, at, batch};
use crate::abi;
use crate::datapath::stage::compile::Compiled;

const NAME: &str = "emud_rows";
/// Space in addition to the rows of the profile, for those that `emud set` adds.
const SPARE: u32 = 4096;
const SPARE_MAX: u32 = 65_536;

/// Returns the length of the map for this number of rows.
pub(crate) fn len_for(rows: usize) -> u32 {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX - SPARE_MAX);
    rows.saturating_add(rows.clamp(SPARE, SPARE_MAX))
}

pub(crate) struct RowsMap {
    /// For writing many rows at once, which the other map type does not support.
    map: MapData,
    rows: Array<MapData, abi::emud_row>,
}

/// A used part of the map.
#[derive(Debug, Clone, Copy)]
struct Taken {
    timeline: abi::emud_timeline,
    first: u32,
    /// Including the end row.
    len: u32,
}

impl Taken {
    fn of(timeline: &abi::emud_timeline) -> Option<Self> {
        (timeline.count > 0).then_some(Self {
            timeline: *timeline,
            first: timeline.first,
            len: timeline.count + 1,
        })
    }

    fn has_rows_of(&self, other: &Self) -> bool {
        let (this, other) = (&self.timeline, &other.timeline);
        this.content == other.content
            && this.count == other.count
            && this.period_ns == other.period_ns
    }
}

impl RowsMap {
    /// Wraps the map.
    pub(crate) fn new(map: Map) -> Result<Self, DatapathError> {
        let Map::Array(map) = map else {
            return Err(DatapathError::Missing(NAME));
        };
        let same = map.fd().as_fd().try_clone_to_owned();
        let same = same.map_err(|source| at(NAME)(MapError::IoError(source)))?;
        let rows = Map::Array(MapData::from_fd(same).map_err(at(NAME))?);
        let rows = rows.try_into().map_err(at(NAME))?;
        Ok(Self { map, rows })
    }

    /// Returns a row.
    pub(crate) fn get(&self, place: u32) -> Result<abi::emud_row, DatapathError> {
        self.rows.get(&place, 0).map_err(at(NAME))
    }

    /// Finds space for the rows of each link, writes the new ones, and returns the timelines with
    /// their positions, in the order of `links`.
    ///
    /// # Errors
    /// There is no room, expected rows are missing, or the map cannot be written.
    pub(crate) fn place<'a>(
        &mut self,
        in_force: &[abi::emud_timeline],
        links: impl Iterator<Item = &'a Compiled>,
    ) -> Result<Vec<abi::emud_timeline>, DatapathError> {
        let mut taken: Vec<_> = in_force.iter().filter_map(Taken::of).collect();
        links.map(|link| self.one(&mut taken, link)).collect()
    }

    fn one(
        &mut self,
        taken: &mut Vec<Taken>,
        link: &Compiled,
    ) -> Result<abi::emud_timeline, DatapathError> {
        let timeline = link.link.timeline;
        let Some(mut wanted) = Taken::of(&timeline) else {
            return Ok(timeline);
        };
        if let Some(there) = taken.iter().find(|t| t.has_rows_of(&wanted)) {
            // A timeline that has no rows yet does not know its content.
            return Ok(abi::emud_timeline {
                epoch_ns: timeline.epoch_ns,
                id: timeline.id,
                ..there.timeline
            });
        }
        let rows = link.timeline.as_ref().map_or(&[][..], |t| &t.rows);
        if rows.len() != wanted.len as usize {
            return Err(DatapathError::RowsGone);
        }
        let first = self.free(taken, wanted.len)?;
        batch::write_all(self.map.fd().as_fd(), first, rows).map_err(at(NAME))?;
        wanted.timeline.first = first;
        taken.push(Taken { first, ..wanted });
        Ok(wanted.timeline)
    }

    /// Returns the first gap of that length.
    fn free(&self, taken: &mut [Taken], len: u32) -> Result<u32, DatapathError> {
        taken.sort_by_key(|t| t.first);
        let mut from = 0;
        for t in taken.iter() {
            if t.first >= from + len {
                break;
            }
            from = from.max(t.first + t.len);
        }
        match from.checked_add(len) {
            Some(end) if end <= self.rows.len() => Ok(from),
            _ => Err(DatapathError::NoRoomForRows {
                rows: len - 1,
                room: self.rows.len(),
            }),
        }
    }
}
