// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments with several nodes: scenario files and their meaning.
//!
//! The data flow is: text -> [`crate::text`] (TOML with positions) -> `read` -> [`Scenario`]
//! (content of the file) -> `generate`, `expand` (nodes and wires) -> `check` -> `layout`, `routes`
//! (addresses) -> [`Plan`]. The format is in docs/scenario.md.

mod check;
mod error;
mod expand;
mod generate;
mod graph;
mod keys;
mod kinds;
mod layout;
mod limits;
mod medium;
mod medium_routes;
mod model;
mod plan;
mod planning;
mod print;
mod read;
mod reading;
mod routes;
pub mod shipped;
mod single;
mod star;
mod stations;
mod topology_read;
mod value;

pub use error::ScenarioError;
pub use kinds::{NodeNames, Program};
pub(crate) use layout::overlap;
pub use limits::beyond_a_host;
pub use medium::{Medium, Station};
pub use model::{Scenario, Top};
pub use plan::{Bridge, Link, Node, Plan, PlannedEnd, Route, Tunnel, Wire};
pub use planning::Overrides;
pub use shipped::find;

/// Returns the tables of keys in docs/scenario.md: the name of each, and its rows of key, meaning
/// and default.
pub fn key_tables() -> [(&'static str, Vec<[String; 3]>); 2] {
    [("scenario", Top::rows()), ("node", Node::rows())]
}
