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
mod layout;
mod limits;
mod model;
mod plan;
mod print;
mod read;
mod routes;
pub mod shipped;
mod single;
mod star;
mod topology_read;
mod value;
mod work_out;

pub use error::ScenarioError;
pub use model::Scenario;
pub use plan::{Bridge, End, Link, Node, Plan, Program, Route, Wire};
pub use shipped::load;
pub use work_out::Overrides;
