// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path loss from a grid that was computed before.

use std::sync::Arc;

use emud::medium::phy::{Geometry, Grid, Loss, Radio, Spread, Standard};
use proptest::prelude::*;
use support::chance::same_cases;
use support::damage::{damaged, edit};

/// As in docs/medium.md.
pub const HOUSE: &str = include_str!("house.asc");

fn house() -> Grid {
    Grid::read(HOUSE).unwrap()
}

#[test]
fn a_cell_is_five_metres_and_the_first_row_is_north() {
    let grid = house();
    assert_eq!(grid.corners(), [[0.0, 0.0], [20.0, 10.0]]);
    let from = [0.1, 4.9];
    let losses = [[2.5, 2.5], [9.9, 0.0], [14.0, 1.0], [20.0, 0.0]];
    let southern = losses.map(|to| grid.db(from, to));
    assert_eq!(southern, [Some(40.2), Some(54.0), Some(72.0), Some(76.0)]);
    let northern = [[0.0, 10.0], [5.0, 5.0], [10.0, 7.0], [15.0, 10.0]];
    let northern = northern.map(|to| grid.db(from, to));
    assert_eq!(northern, [Some(54.0), Some(58.5), Some(76.1), None]);
    for outside in [[-0.1, 0.0], [0.0, 10.1], [20.1, 0.0], [f64::NAN, 0.0]] {
        assert_eq!(grid.cell(outside), None);
        assert_eq!(grid.db(from, outside), None);
    }
    assert!(grid.is_consistent());
}

/// Of two senders the first counts; a cell without one has the losses of the other end.
#[test]
fn paths_are_reciprocal_where_one_end_is_a_sender() {
    let grid = Grid::read(&HOUSE.replace("58.5 54   70.5", "58.5 54   71")).unwrap();
    let ([left, right], far) = ([[2.5, 2.5], [7.5, 2.5]], [17.5, 2.5]);
    assert_eq!(grid.db(far, left), Some(76.0));
    assert_eq!(grid.db(far, right), Some(72.25));
    let asymmetric = Grid::read(&HOUSE.replace("54   40.2 66", "55   40.2 66")).unwrap();
    assert_eq!(asymmetric.db(left, right), Some(54.0));
    assert_eq!(asymmetric.db(right, left), Some(55.0));
    // Neither end is one.
    assert_eq!(grid.db(far, [12.5, 2.5]), None);
    assert!(!grid.has_sender(grid.cell(far).unwrap()));
}

/// 20 dBm: 11 Mbit/s down to -85 dBm, a loss of 105 dB; the walls decide, not the distance.
#[test]
fn the_loss_decides_who_hears_whom() {
    let text = HOUSE.replace("72   76", "105  105.01");
    let grid = Arc::new(Grid::read(&text).unwrap());
    let standard = Standard::named("802.11b").unwrap();
    let geometry = Geometry {
        spread: Spread::Radio(Radio::new(standard, Loss::Grid(grid))),
        ber: 0.0,
    };
    let stations = [[2.5, 2.5], [12.5, 2.5], [17.5, 2.5], [17.5, 7.5]];
    let matrix = geometry.matrix(&stations);
    let modes = |to: u16| matrix.reach(0, to).map_or(0, |reach| reach.modes);
    assert_eq!([1, 2, 3].map(modes), [0b1111, 0b0111, 0]);
    assert!(matrix.reach(0, 3).is_none() && matrix.reach(1, 2).is_none());
    assert_eq!([geometry.range_m(3), geometry.sense_m()], [None; 2]);
}

#[test]
fn a_way_has_all_its_cells() {
    let grid = house();
    let of = |from, to| {
        let cells = grid.cells(from, to)?;
        Some(Vec::from_iter(std::collections::BTreeSet::from_iter(cells)))
    };
    assert_eq!(of([1.0, 1.0], [1.0, 1.0]), Some(vec![0]));
    assert_eq!(of([1.0, 1.0], [19.0, 1.0]), Some(vec![0, 1, 2, 3]));
    assert_eq!(of([19.0, 9.0], [1.0, 2.0]), Some(vec![0, 1, 5, 6, 7]));
    // Through a corner.
    assert_eq!(of([19.0, 9.0], [1.0, 1.0]), Some(vec![0, 1, 6, 7]));
    assert_eq!(of([20.0, 10.0], [20.0, 0.0]), Some(vec![3, 7]));
    assert_eq!(of([1.0, 1.0], [1.0, 11.0]), None);
    // Known without the cells up to there.
    assert_eq!(of([1.0, 1.0], [1e12, 1.0]), None);
    assert_eq!(of([1.0, -1e12], [1.0, 1.0]), None);
}

/// (Text, its replacement, where, a part of the problem.)
const MISTAKES: &[(&str, &str, [usize; 2], &str)] = &[
    (
        "72   76",
        "72   x",
        [12, 16],
        "`x` is no loss of 0 to 300 dB",
    ),
    ("72   76", "-72  76", [12, 11], "`-72` is no loss"),
    ("72   76", "NaN  76", [12, 11], "`NaN`"),
    ("72   76", "72", [12, 11], "a row has 4 values, this one 3"),
    ("72   76", "72   76 1", [12, 19], "this one 5"),
    ("ncols 4", "ncols 4.5", [3, 7], "`4.5` is no ncols"),
    ("ncols 4", "ncols 4 4", [3, 1], "one value"),
    ("ncols 4", "columns 4", [3, 1], "`columns` is none of ncols"),
    ("ncols 4", "ncols 70000", [3, 7], "1 to 65535"),
    ("cellsize 5", "cellsize 0", [7, 10], "`0` is no cellsize"),
    ("cellsize 5\n", "", [9, 1], "no `cellsize` above"),
    ("sender 7.5 2.5", "sender 4.9 0", [14, 1], "this cell above"),
    ("sender 7.5 2.5", "sender 7.5", [14, 1], "sender X Y"),
    (
        "sender 7.5 2.5",
        "sender 7.5 12",
        [14, 1],
        "outside of [0.0, 0.0] to [20.0, 10.0]",
    ),
    ("sender 2.5 2.5", "", [11, 1], "follow a line `sender X Y`"),
    ("sender 7.5 2.5", "1 2 3 4", [14, 1], "a grid has 2 rows"),
    ("sender 7.5 2.5", "ncols 5", [14, 7], "`ncols` is 4 above"),
    (
        "nrows 2",
        "nrows 3",
        [14, 1],
        "of the sender in line 10 ends after 2 of 3 rows",
    ),
];

#[test]
fn mistakes_have_a_line_and_a_column() {
    for (part, other, [line, column], problem) in MISTAKES {
        assert!(HOUSE.contains(part), "{part}");
        let error = Grid::read(&HOUSE.replacen(part, other, 1)).unwrap_err();
        assert_eq!(
            [error.line, error.column],
            [*line, *column],
            "{other}: {error}"
        );
        assert!(error.problem.contains(problem), "{error}");
    }
    let empty = Grid::read("").unwrap_err();
    assert!(
        empty
            .to_string()
            .contains("line 1, column 1: the file ends without a grid")
    );
    let cut = Grid::read(HOUSE.trim_end().rsplit_once('\n').unwrap().0).unwrap_err();
    assert_eq!(cut.line, 15);
    assert!(cut.problem.contains("ends after 1 of 2 rows"), "{cut}");
    // As GIS programs write it once more in front of each grid.
    let header = HOUSE.split("# Lower").next().unwrap();
    let repeated = HOUSE.replace("sender", &format!("{header}sender"));
    assert_eq!(Grid::read(&repeated.to_uppercase()).unwrap(), house());
}

proptest! {
    #![proptest_config(same_cases(if support::full() { 40_000 } else { 300 }))]

    #[test]
    fn a_damaged_grid_never_panics(damage in prop::collection::vec(edit(), 1..6)) {
        match Grid::read(&damaged(HOUSE, &damage)) {
            Ok(grid) => prop_assert!(grid.is_consistent()),
            Err(error) => prop_assert!(error.line > 0 && error.column > 0 && !error.problem.is_empty()),
        }
    }
}
