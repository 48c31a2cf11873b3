// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a grid has the losses between all stations, wherever they go.

use super::propagation::Propagation;
use super::{MediumDraft, Station};
use crate::medium::phy::{Grid, Position};
use crate::text::Mistake;

/// Checks the stations of a medium, if it has a grid: they stay inside, and all but one in cells
/// whose losses as a sender are known, so that those of each pair are.
///
/// # Errors
/// A station that leaves the grid, or two in other cells.
pub(crate) fn check(draft: &MediumDraft, stations: &[Station]) -> Result<(), Mistake> {
    let Propagation::Grid { file, grid } = &draft.table.propagation else {
        return Ok(());
    };
    let at = &draft.name.at;
    let mut other: Option<(&str, Position)> = None;
    for station in stations {
        let name = station.node.as_str();
        let found = elsewhere(grid, station).map_err(|[x, y]| {
            let [low, high] = grid.corners();
            let title = format!("station `{name}` comes to [{x}, {y}], outside of {file}");
            Mistake::new(at, title, format!("the grid is {low:?} to {high:?}, in m"))
        })?;
        let Some(here) = found else { continue };
        if let Some((first, there)) = other {
            let title = format!(
                "{file} has no losses between stations `{first}` at {there:?} and `{name}` at {here:?}"
            );
            let help = "all stations but one stay in cells with a `sender` of the file";
            return Err(Mistake::new(at, title, help));
        }
        other = Some((name, here));
    }
    Ok(())
}

/// Returns the start of the first leg into a cell without a sender. The error is a position outside the grid.
fn elsewhere(grid: &Grid, station: &Station) -> Result<Option<Position>, Position> {
    let waypoints = station.track.waypoints();
    let first = station.track.at(0);
    let legs = (1..waypoints.len()).filter_map(|n| {
        let ((from_ns, from), (to_ns, to)) = (waypoints[n - 1], waypoints[n]);
        let stays = waypoints.get(n + 1).is_none_or(|(at_ns, _)| *at_ns > to_ns);
        match from_ns < to_ns {
            true => Some([from, to]),
            // A jump, of which each axis can be a waypoint: the station is only where it ends.
            false => stays.then_some([to; 2]),
        }
    });
    let mut found = None;
    for [from, to] in std::iter::once([first; 2]).chain(legs) {
        let outside = if grid.cell(from).is_none() { from } else { to };
        let cells = grid.cells(from, to).ok_or(outside)?;
        if !cells.into_iter().all(|cell| grid.has_sender(cell)) {
            found.get_or_insert(from);
        }
    }
    Ok(found)
}
