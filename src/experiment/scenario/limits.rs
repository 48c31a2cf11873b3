// SPDX-License-Identifier: MIT OR Apache-2.0
//! Size limits of a scenario.

use super::model::{Kind, Topology};

/// Each node is a namespace with processes: the limit of one host.
pub(crate) const MAX_NODES: u32 = 1024;
/// Besides the client and the server.
pub(crate) const MAX_ROUTERS: u32 = MAX_NODES - 2;
/// A mesh of this size has 496 links, each with an emulated device.
pub(crate) const MAX_MESH: u32 = 32;
/// Besides the two routers.
pub(crate) const MAX_PAIRS: u32 = (MAX_NODES - 2) / 2;
/// Besides the hub, whose bridge has a port for each.
pub(crate) const MAX_PEERS: u32 = 255;
/// The addresses of the /24 of a class.
pub(crate) const MAX_PEERS_OF_CLASS: u32 = 254;
/// Two nodes would have two links of one name.
pub(crate) const MIN_RING: u32 = 3;
/// As many nodes with one each and a switch in between.
pub(crate) const MAX_SWITCHES: u32 = MAX_NODES / 2;
pub(crate) const MAX_LINKS: usize = 1024;
/// A thread each.
pub(crate) const MAX_MEDIA: usize = 16;
/// Of a medium: every frame has a decision for each of them.
pub(crate) const MAX_STATIONS: u32 = 256;

/// Returns what a topology has a number of, the minimum and the maximum: each class of a star has
/// at least one peer.
pub(crate) fn of(topology: &Topology) -> (&'static str, u32, u32) {
    match topology.kind {
        Kind::Chain if topology.on_air.is_some() => ("routers", 1, MAX_STATIONS - 2),
        Kind::Mesh if topology.on_air.is_some() => ("nodes", 2, MAX_STATIONS),
        Kind::Chain => ("routers", 1, MAX_ROUTERS),
        Kind::Mesh => ("nodes", 2, MAX_MESH),
        Kind::Dumbbell => ("pairs", 1, MAX_PAIRS),
        Kind::Ring => ("nodes", MIN_RING, MAX_NODES),
        Kind::Tandem => ("nodes", 2, MAX_NODES),
        Kind::Switches => ("nodes", 1, MAX_NODES / topology.switches - 1),
        Kind::Star => {
            let classes = topology.classes.len().max(1) as u32;
            (
                "peers",
                classes,
                MAX_PEERS.min(MAX_PEERS_OF_CLASS * classes),
            )
        }
    }
}
