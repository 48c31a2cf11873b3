// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud top`: every link of the host, live. The state follows from readings, alarms and keys; the
//! picture is a function of the state. `emud medium watch` is beside it. Reading, terminal and
//! processes are in `src/cli/top/`.

mod draw;
mod keys;
mod line;
mod map;
mod row;
mod state;
mod stations;

pub use draw::draw;
pub use keys::{Action, Key};
pub use line::{TOP_SCHEMA, TopLine};
pub use row::TopRow;
pub use state::{Top, Watching};
pub use stations::{Stations, draw_stations};

#[cfg(test)]
mod tests;
