// SPDX-License-Identifier: MIT OR Apache-2.0
//! Size limits of a scenario.

use crate::datapath::radio::MOST_STATIONS;

/// Nodes of a scenario, on all of its hosts.
pub(crate) const MAX_NODES: u32 = 2048;
/// Each node is a namespace with processes, each link has its devices: the limit of one host.
const MAX_OF_A_HOST: usize = 1024;
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
pub(crate) const MAX_LINKS: usize = 2048;
/// A thread each.
pub(crate) const MAX_MEDIA: usize = 16;
/// Stations of a medium: every frame has a decision for each of them.
pub(crate) const MAX_STATIONS: u32 = MOST_STATIONS as u32;

/// Returns why one host cannot take `nodes` and `wires`; `None`: it can.
pub fn beyond_a_host(nodes: usize, wires: usize) -> Option<String> {
    let (number, what) = match nodes > wires {
        true => (nodes, "nodes"),
        false => (wires, "links"),
    };
    (number > MAX_OF_A_HOST).then(|| {
        format!(
            "{number} {what}: one host takes up to {MAX_OF_A_HOST}; `emud fleet run` divides a scenario among \
             several hosts"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_number_is_named() {
        assert_eq!(beyond_a_host(1024, 1024), None);
        let begins = |nodes, wires, with| beyond_a_host(nodes, wires).unwrap().starts_with(with);
        assert!(begins(
            1025,
            1024,
            "1025 nodes: one host takes up to 1024; "
        ));
        assert!(begins(
            1024,
            1030,
            "1030 links: one host takes up to 1024; "
        ));
    }
}
