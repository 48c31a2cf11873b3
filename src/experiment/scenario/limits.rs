// SPDX-License-Identifier: MIT OR Apache-2.0
//! Size limits of a scenario.

use super::model::{Kind, Topology};

/// Each node is a namespace with processes: the limit of one host.
pub(crate) const MAX_NODES: u32 = 256;
/// A mesh of this size has 496 links, each with an emulated device.
const MAX_MESH: u32 = 32;
pub(crate) const MAX_LINKS: usize = 512;

/// Returns the key for the size of a topology of this kind, the minimum and the maximum; for a star
/// it is the key of its classes.
pub(crate) fn of_kind(kind: Kind) -> (&'static str, u32, u32) {
    match kind {
        Kind::Chain => ("routers", 1, MAX_NODES - 2),
        Kind::Mesh => ("nodes", 2, MAX_MESH),
        Kind::Dumbbell => ("pairs", 1, (MAX_NODES - 2) / 2),
        Kind::Star => ("peers", 1, MAX_NODES - 1),
    }
}

/// The same for a topology: each class has at least one peer.
pub(crate) fn of(topology: &Topology) -> (&'static str, u32, u32) {
    let (what, least, most) = of_kind(topology.kind);
    (what, least.max(topology.classes.len() as u32), most)
}
