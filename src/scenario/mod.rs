// SPDX-License-Identifier: GPL-2.0-only
//! Experiments with more than one node: what a scenario file says, and what that means.

mod plan;
mod single;

pub use plan::{Bridge, End, Link, Node, Plan, Program, Route, Wire};
