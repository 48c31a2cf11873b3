// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the maps of a program that the kernel already runs.

use aya::maps::{Array, Map, MapData};
use aya::programs::ProgramError;
use emud_monitor::denied::is_denied;

use super::generation::{of_links, slot};
use super::{DatapathError, Maps, at};
use crate::abi;
use crate::bpf::by_id;

const CONTROL: &str = "emud_control";
const LINKS: &str = "emud_links";

pub(super) type Found = Vec<(String, MapData)>;

impl Maps {
    /// Finds the maps from the id of a filter's program.
    ///
    /// # Errors
    /// The program no longer exists or belongs to a different version of emud.
    pub fn of_program(id: u32) -> Result<Self, DatapathError> {
        Self::of_maps(map_ids(id)?)
    }

    /// Returns whether a program uses these maps.
    pub(crate) fn are_of(&self, program: u32) -> bool {
        by_id::map_ids(program).is_ok_and(|ids| ids.contains(&self.id))
    }

    /// Opens maps by ID. Those of a different version may have other types, so its number is read first.
    fn of_maps(ids: Vec<u32>) -> Result<Self, DatapathError> {
        control_in(&mut maps_of(ids.clone(), |name| name == CONTROL, 1)?)?;
        let mut found = maps_of(ids, |_| true, usize::MAX)?;
        Self::from_named(|name| take(&mut found, name))
    }
}

/// Returns the maps of a program by its id.
pub(super) fn maps_of_program(id: u32) -> Result<Found, DatapathError> {
    maps_of(map_ids(id)?, |_| true, usize::MAX)
}

fn map_ids(program: u32) -> Result<Vec<u32>, DatapathError> {
    by_id::map_ids(program).map_err(|e| match ProgramError::from(e) {
        e if is_denied(&e) => DatapathError::Search(e),
        _ => DatapathError::NoProgram(program),
    })
}

/// Returns the maps with these names, up to `most`.
fn maps_of(
    ids: Vec<u32>,
    wanted: impl Fn(&str) -> bool,
    most: usize,
) -> Result<Found, DatapathError> {
    let mut found = Vec::new();
    for id in ids {
        let data = MapData::from_id(id).map_err(at("by id"))?;
        let info = data.info().map_err(at("by id"))?;
        let name = info.name_as_str().unwrap_or_default();
        if wanted(name) {
            found.push((name.to_owned(), data));
        }
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

fn take(found: &mut Found, name: &'static str) -> Result<Map, DatapathError> {
    let at = found.iter().position(|(n, _)| n == name);
    let (_, data) = found.swap_remove(at.ok_or(DatapathError::Missing(name))?);
    Map::from_map_data(data).map_err(|source| DatapathError::Map { name, source })
}

/// Returns the device of a loaded program and the active links of both directions, from two of the
/// maps: opening a map takes most of the time.
///
/// # Errors
/// The program no longer exists, or belongs to a different version of emud.
pub(crate) fn look(
    program: u32,
) -> Result<(abi::emud_control, [abi::emud_link; 2]), DatapathError> {
    let mut found = maps_of(
        map_ids(program)?,
        |name| name == CONTROL || name == LINKS,
        2,
    )?;
    let control = control_in(&mut found)?;
    let links: Array<_, abi::emud_link> = take(&mut found, LINKS)?.try_into().map_err(at(LINKS))?;
    let link = |direction| {
        let slot = slot(direction, of_links(control));
        links.get(&slot, 0).map_err(at(LINKS))
    };
    Ok((control, [link(abi::EMUD_UP)?, link(abi::EMUD_DOWN)?]))
}

/// Returns the control word of a loaded program.
///
/// # Errors
/// As [`look`].
pub(crate) fn control_of(program: u32) -> Result<abi::emud_control, DatapathError> {
    control_in(&mut maps_of(map_ids(program)?, |name| name == CONTROL, 1)?)
}

fn control_in(found: &mut Found) -> Result<abi::emud_control, DatapathError> {
    let control: Array<_, abi::emud_control> =
        take(found, CONTROL)?.try_into().map_err(at(CONTROL))?;
    let control = control.get(&0, 0).map_err(at(CONTROL))?;
    speaks(control.abi)?;
    Ok(control)
}

/// Checks whether a classifier belongs to this version of emud.
fn speaks(found: u32) -> Result<(), DatapathError> {
    match found {
        abi::EMUD_ABI => Ok(()),
        found => Err(DatapathError::Abi { found }),
    }
}
