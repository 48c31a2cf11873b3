// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a scenario may be.

use super::model::{Kind, Topology};

/// Each node is a namespace with processes of its own: what one host can still carry.
pub(crate) const MAX_NODES: u32 = 256;
/// A mesh of so many has 496 links, each with a device's worth of emulation.
const MAX_MESH: u32 = 32;
pub(crate) const MAX_LINKS: usize = 512;

/// The key that says how many a topology of this kind has, the least and the most; of a star it
/// is that of its classes.
pub(crate) fn of_kind(kind: Kind) -> (&'static str, u32, u32) {
    match kind {
        Kind::Chain => ("routers", 1, MAX_NODES - 2),
        Kind::Mesh => ("nodes", 2, MAX_MESH),
        Kind::Dumbbell => ("pairs", 1, (MAX_NODES - 2) / 2),
        Kind::Star => ("peers", 1, MAX_NODES - 1),
    }
}

/// The same for a topology: each class has a peer.
pub(crate) fn of(topology: &Topology) -> (&'static str, u32, u32) {
    let (what, least, most) = of_kind(topology.kind);
    (what, least.max(topology.classes.len() as u32), most)
}
