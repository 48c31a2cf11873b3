// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest experiment: one program behind one link.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::kinds::Program;
use super::plan::{Link, Node, Plan, PlannedEnd, Route, Wire, everywhere};
use crate::profile::Profile;

/// Name of the node of a single link, and of its device.
const CLIENT: &str = "client";
const DEVICE: &str = "link0";
/// Time limit of the preparation, which only creates the network.
const READY_WITHIN: Duration = Duration::from_secs(10);

impl Plan {
    /// Returns the plan of `emud run --profile P -- CMD`: a node "client", whose device sends what
    /// is `up`, and a wire from there to the host. In `network`, a /30, the host has the first
    /// address and the client the second.
    pub fn single(
        profile: Profile,
        asked: &str,
        program: Program,
        network: Ipv4Net,
        host_interface: &str,
    ) -> Self {
        let mut addresses = network.hosts();
        let mut next = || addresses.next().unwrap_or(network.addr());
        let (host, client) = (next(), next());
        let end = |node: Option<&str>, interface: &str, address| PlannedEnd {
            node: node.map(str::to_owned),
            interface: interface.to_owned(),
            address: Ipv4Net::new(address, network.prefix_len()).ok(),
        };
        Self {
            name: profile.name.clone(),
            text: None,
            nodes: vec![Node {
                name: CLIENT.to_owned(),
                routes: vec![Route {
                    to: everywhere(),
                    via: Some(host),
                    interface: DEVICE.to_owned(),
                }],
                outside: true,
                command: Some(program),
                ..Node::default()
            }],
            wires: vec![Wire {
                ends: [
                    end(Some(CLIENT), DEVICE, client),
                    end(None, host_interface, host),
                ],
                tunnel: None,
            }],
            links: vec![Link {
                name: "link".to_owned(),
                node: CLIENT.to_owned(),
                interface: DEVICE.to_owned(),
                profile,
                asked: asked.to_owned(),
                reversed: false,
                number: 0,
            }],
            media: vec![],
            ready_within: READY_WITHIN,
            clean_up_within: Duration::ZERO,
            measure_for: None,
            elsewhere: String::new(),
            mtu: None,
        }
    }
}
