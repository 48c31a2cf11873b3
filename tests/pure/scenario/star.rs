// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hub's rules assign the link of its class to every peer.

use std::net::IpAddr;

use emud::abi::{DIRECTIONS, EMUD_DOWN, EMUD_UP};
use emud::experiment::scenario::{Overrides, Plan, shipped};
use emud::profile::{Offload, Per, Profile, Target, shipped as profiles};

use super::{read, with};

fn star() -> Plan {
    let scenario = shipped::find("star").unwrap();
    scenario.plan(&Overrides::default()).unwrap()
}

fn address(plan: &Plan, node: &str) -> IpAddr {
    plan.addresses(node)[0].addr().into()
}

/// Returns the class of the link that a packet takes; `None`: it passes without emulation.
fn class(profile: &Profile, direction: u32, source: IpAddr, destination: IpAddr) -> Option<String> {
    let first = profile.rules.iter().find(|rule| {
        let of = |net: Option<ipnet::IpNet>, address| net.is_none_or(|net| net.contains(&address));
        let matches = &rule.matches;
        rule.is_for(direction) && of(matches.source, source) && of(matches.destination, destination)
    });
    match &first.expect("a rule for every packet").target {
        Target::Named(name) => Some(name.clone()),
        Target::Untouched => None,
        Target::Own => panic!("the profile's own link"),
    }
}

#[test]
fn what_the_bridge_receives_is_its_senders_and_what_it_sends_its_receivers() {
    let plan = star();
    let [link] = &plan.links[..] else {
        panic!("{:?}", plan.links)
    };
    assert_eq!(
        (link.node.as_str(), link.interface.as_str()),
        ("hub", "star")
    );
    assert!(link.reversed);
    let of = |name: &str| match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "untouched" | "hub" => None,
        class => Some(class.to_owned()),
    };
    for from in &plan.nodes {
        for to in plan.nodes.iter().filter(|to| to.name != from.name) {
            let (source, destination) = (address(&plan, &from.name), address(&plan, &to.name));
            let met = |direction| class(&link.profile, direction, source, destination);
            assert_eq!(
                met(EMUD_DOWN),
                of(&from.name),
                "{} to {}",
                from.name,
                to.name
            );
            assert_eq!(met(EMUD_UP), of(&to.name), "{} to {}", from.name, to.name);
        }
    }
}

#[test]
fn each_peer_has_a_link_of_its_own() {
    let plan = star();
    for rule in plan.links[0]
        .profile
        .rules
        .iter()
        .filter(|r| r.target != Target::Untouched)
    {
        let per = match rule.direction {
            Some(EMUD_DOWN) => Per::Source,
            _ => Per::Destination,
        };
        assert_eq!(rule.per, Some(per));
    }
}

#[test]
fn a_peers_uplink_is_what_the_profile_calls_up() {
    let text = "[topology]\nkind = \"star\"\n[topology.class.a]\npeers = 2\nprofile = \"dsl\"\n\
                [node.a1]\ncommand = \"true\"\n";
    let plan = with(text, &Overrides::default());
    let dsl = profiles::find("dsl").unwrap();
    let [up, down] = DIRECTIONS.map(|d| plan.links[0].profile.links[0].direction(d).clone());
    assert_eq!((up, down), (dsl.down, dsl.up));
}

/// A class without a profile has none: its packets are not emulated.
#[test]
fn the_hub_has_the_offload_of_its_classes() {
    for (offload, expected) in [("auto", Offload::Auto), ("keep", Offload::Keep)] {
        let text = format!(
            "[topology]\nkind = \"star\"\nclass.a.peers = 1\nclass.b.peers = 1\nclass.c.peers = 1\n\
             class.b.profile = {{ offload = \"{offload}\", link.delay = \"1ms\" }}\n\
             class.c.profile = {{ offload = \"{offload}\", link.delay = \"2ms\" }}\n\
             [node.a1]\ncommand = \"true\"\n"
        );
        let plan = with(&text, &Overrides::default());
        assert_eq!(plan.links[0].profile.offload, expected);
    }
}

#[test]
fn peers_are_divided_as_in_the_file() {
    let scenario = shipped::find("star").unwrap();
    let divided = |nodes| {
        let overrides = Overrides {
            nodes: Some(nodes),
            ..Overrides::default()
        };
        let plan = scenario.plan(&overrides).unwrap();
        ["mobile", "landline", "untouched"].map(|class| {
            let of = plan
                .nodes
                .iter()
                .filter(|node| node.name.starts_with(class));
            of.count()
        })
    };
    assert_eq!(divided(32), [16, 15, 1]);
    assert_eq!(divided(3), [1, 1, 1]);
    assert_eq!(divided(64), [32, 30, 2]);
    assert_eq!(divided(100).iter().sum::<usize>(), 100);
}

/// A /24 has 254 addresses, so that all peers of a class have one of them.
#[test]
fn all_peers_have_addresses_of_their_class() {
    let text = "[topology]\nkind = \"star\"\nclass.a.peers = 4\n[node.a1]\ncommand = \"true\"\n";
    let scenario = read(text).unwrap();
    let of = |nodes| Overrides {
        nodes: Some(nodes),
        ..Overrides::default()
    };
    let plan = scenario.plan(&of(254)).unwrap();
    let last = plan.addresses("a254")[0];
    assert_eq!(
        (last.addr().octets()[2..].to_vec(), last.prefix_len()),
        (vec![1, 254], 32)
    );
    let error = scenario.plan(&of(255)).unwrap_err().to_string();
    assert!(error.contains("254"), "{error}");
}
