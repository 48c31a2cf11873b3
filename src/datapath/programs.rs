// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which programs a link has, by its engine and its directions, and which hooks run them.

use super::engine::Engine;
use super::maps::Program;
use crate::abi::{self, DIRECTIONS};
use crate::netlink::{FilterOrder, Hook};

/// Returns all programs of a link, first those that emulate.
pub fn of_link(engine: Engine, directions: [bool; 2]) -> Vec<Program> {
    let others = match engine {
        Engine::Fq => &[Program::Orphan][..],
        Engine::Hold => &[Program::TapUp, Program::TapDown],
        Engine::Qdisc => &[],
    };
    [&emulating(engine, directions)[..], others].concat()
}

/// Returns the programs that emulate the directions of a link, that of the first one first.
pub(super) fn emulating(engine: Engine, directions: [bool; 2]) -> Vec<Program> {
    let mut programs: Vec<_> = emulated(directions)
        .map(|direction| of_direction(engine, direction))
        .collect();
    programs.dedup();
    programs
}

/// Returns the program of a direction.
pub(super) fn of_direction(engine: Engine, direction: u32) -> Program {
    match is_by_tcx(engine, direction) {
        true => Program::Egress,
        false => Program::Classify,
    }
}

/// Returns whether tcx runs the program of a direction, and not a filter of clsact. Every kernel with
/// BPF qdiscs has tcx. At ingress the program runs after the filters of others, which tcx does not.
pub(super) fn is_by_tcx(engine: Engine, direction: u32) -> bool {
    engine == Engine::Qdisc && direction == abi::EMUD_UP
}

/// Returns the order of emud's filter. First: the other filters see each packet once, after the link. Last on
/// ingress with a qdisc: the ifb puts packets back after all filters, so filters must see a packet before.
pub(super) fn place_of(engine: Engine, hook: Hook) -> FilterOrder {
    match (engine, hook) {
        (Engine::Fq | Engine::Qdisc, Hook::Ingress) => FilterOrder::Last,
        _ => FilterOrder::First,
    }
}

/// Returns whether a link has filters of clsact.
pub(super) fn uses_clsact(engine: Engine, directions: [bool; 2]) -> bool {
    emulated(directions).any(|direction| !is_by_tcx(engine, direction))
}

fn emulated(directions: [bool; 2]) -> impl Iterator<Item = u32> {
    let all = DIRECTIONS.into_iter().zip(directions);
    all.filter_map(|(direction, emulated)| emulated.then_some(direction))
}
