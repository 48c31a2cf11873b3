// SPDX-License-Identifier: MIT OR Apache-2.0
//! A star: peers around a hub that forwards between them. All links are emulated on one device, the
//! hub's bridge, whose rules identify the peers by their addresses.

use ipnet::{IpNet, Ipv4Net};

use super::error::ScenarioError;
use super::graph::{Graph, PeersOf, Star};
use super::model::{Class, Topology};
use crate::abi;
use crate::profile::{
    DEFAULT_INSTANCES, Link, Match, NamedLink, Offload, Per, Phases, Profile, Rule, Target,
};

/// The node in the centre, and its bridge.
pub(crate) const HUB: &str = "hub";
pub(crate) const BRIDGE: &str = "star";

pub(crate) fn generate(topology: &Topology, graph: &mut Graph, count: u32) {
    let mut classes = Vec::new();
    for (class, peers) in topology.classes.iter().zip(shares(topology, count)) {
        let peers = graph.add_many(&class.name.value, peers, &class.name.at);
        let class = class.clone();
        classes.push(PeersOf { class, peers });
    }
    let hub = graph.add(HUB.to_owned(), &topology.at);
    for peer in 0..hub {
        let name = graph.nodes[peer].node.name.clone();
        graph.join(name, &topology.at, [peer, hub], None);
    }
    graph.edges.iter_mut().for_each(|edge| edge.port = true);
    graph.star = Some(Star { hub, classes });
}

/// Returns the number of peers of each class for a total of `count`: in the file's proportion, at
/// least one.
fn shares(topology: &Topology, count: u32) -> Vec<u32> {
    let mut left = u64::from(topology.count);
    let mut rest = count;
    let mut out = Vec::new();
    for (place, class) in topology.classes.iter().enumerate() {
        let behind = (topology.classes.len() - place - 1) as u32;
        let exact = u64::from(rest) * u64::from(class.peers) / left.max(1);
        // At most `rest`, which fits.
        let share = (exact as u32).min(rest.saturating_sub(behind)).max(1);
        out.push(share);
        rest = rest.saturating_sub(share);
        left -= u64::from(class.peers);
    }
    out
}

/// Returns the profile of the hub's bridge from the view of the peers: `up` is what a peer sends,
/// identified by its source; `down` what a peer receives, identified by its destination. Each peer
/// has a separate instance of its class's link. Packets of other addresses are not emulated.
///
/// # Errors
/// A class has a link that cannot have several instances, such as a trace.
pub(crate) fn profile(
    name: &str,
    classes: &[(&Class, Ipv4Net)],
) -> Result<Option<Profile>, ScenarioError> {
    let mut links = Vec::new();
    let mut rules = Vec::new();
    let mut offload = Offload::default();
    for (class, network) in classes {
        let Some(asked) = &class.profile else {
            continue;
        };
        // That of all classes.
        offload = asked.profile.offload;
        links.push(NamedLink {
            name: class.name.value.clone(),
            up: asked.profile.up.clone(),
            down: asked.profile.down.clone(),
        });
        rules.extend(rules_of(&class.name.value, *network));
    }
    if links.is_empty() {
        return Ok(None);
    }
    rules.push(Rule {
        matches: Match::default(),
        target: Target::Untouched,
        direction: None,
        per: None,
        class: None,
    });
    let profile = Profile {
        name: format!("{name}-star"),
        description: format!("The peers' links of {name}, by their addresses"),
        source: String::new(),
        seed: None,
        offload,
        up: Link::default(),
        down: Link::default(),
        links,
        bottlenecks: Vec::new(),
        rules,
        instances: DEFAULT_INSTANCES,
        matrix: None,
        phases: Phases::default(),
    };
    // Parsed again to check the combination of rules and links.
    let text = profile.to_toml();
    let read = Profile::parse(&text, "the profile of the star's hub");
    read.map(Some).map_err(ScenarioError::Star)
}

fn rules_of(class: &str, network: Ipv4Net) -> [Rule; 2] {
    let rule = |matches, direction, per| Rule {
        matches,
        target: Target::Named(class.to_owned()),
        direction: Some(direction),
        per: Some(per),
        class: None,
    };
    let of_peer = Match {
        source: Some(IpNet::V4(network)),
        ..Match::default()
    };
    let to_peer = Match {
        destination: Some(IpNet::V4(network)),
        ..Match::default()
    };
    [
        rule(of_peer, abi::EMUD_UP, Per::Source),
        rule(to_peer, abi::EMUD_DOWN, Per::Destination),
    ]
}
