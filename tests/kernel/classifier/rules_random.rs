// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random rules and packets against a simple implementation of "the first wins".

use std::cell::RefCell;

use emud::profile::{Match, Ports, Profile, Rule, Target};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use support::chance::same_cases;

use super::rules::{send, set};
use super::*;

/// A packet as rules see it.
#[derive(Debug, Clone)]
struct Packet {
    source: [u8; 4],
    destination: [u8; 4],
    ports: [u16; 2],
    protocol: u8,
    tos: u8,
    mark: u32,
    vlan: Option<u16>,
    fragment: bool,
}

impl Packet {
    fn frame(&self) -> Vec<u8> {
        let mut f = udp4(100, self.ports[0]);
        f[15] = self.tos;
        f[20] = if self.fragment { 0x20 } else { 0 };
        f[23] = self.protocol;
        f[26..30].copy_from_slice(&self.source);
        f[30..34].copy_from_slice(&self.destination);
        f[36..38].copy_from_slice(&self.ports[1].to_be_bytes());
        if let Some(id) = self.vlan {
            f.splice(12..12, [[0x81, 0], id.to_be_bytes()].concat());
        }
        f
    }

    fn matches(&self, m: &Match) -> bool {
        let within = |net: &Option<ipnet::IpNet>, address: [u8; 4]| {
            net.is_none_or(|net| net.contains(&std::net::IpAddr::from(address)))
        };
        let has_ports = !self.fragment && [6, 17].contains(&self.protocol);
        let port = |wanted: Option<Ports>, port: u16| {
            wanted.is_none_or(|p| has_ports && (p.first..=p.last).contains(&port))
        };
        let icmp = |kind| !self.fragment && self.protocol == 1 && self.ports[0] >> 8 == kind;
        within(&m.source, self.source)
            && within(&m.destination, self.destination)
            && m.protocol.is_none_or(|p| p == self.protocol)
            && port(m.source_port, self.ports[0])
            && port(m.destination_port, self.ports[1])
            && m.dscp.is_none_or(|dscp| self.tos >> 2 == dscp)
            && m.tos.is_none_or(|(tos, mask)| self.tos & mask == tos)
            && m.mark.is_none_or(|(bits, mask)| self.mark & mask == bits)
            && m.vlan.is_none_or(|id| self.vlan == Some(id))
            && m.icmp_type.is_none_or(|kind| icmp(u16::from(kind)))
    }
}

/// Each with few values, so that rules match packets and each other.
fn packets() -> impl Strategy<Value = Packet> {
    let byte = prop::sample::select(vec![0u8, 1, 2, 127, 128, 255]);
    let address = (byte.clone(), byte).prop_map(|(a, b)| [10, a, 0, b]);
    let port = prop::sample::select(vec![0u16, 1, 7, 8, 9, 255, 256, 2047, 2048, 65535]);
    (
        address.clone(),
        address,
        [port.clone(), port],
        prop::sample::select(vec![1u8, 6, 17, 47]),
        prop::sample::select(vec![0u8, 1, 4, 0xb8, 0xbb]),
        0..4u32,
        prop::option::of(0..3u16),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(source, destination, ports, protocol, tos, mark, vlan, fragment)| Packet {
                source,
                destination,
                ports,
                protocol,
                tos,
                mark,
                vlan,
                fragment,
            },
        )
}

/// A match on some of the fields of a packet.
fn matches() -> impl Strategy<Value = Match> {
    let prefix = prop::sample::select(vec![0u8, 9, 16, 31, 32]);
    let spread = prop::sample::select(vec![0u16, 1, 8, 2000]);
    (
        packets(),
        any::<u16>(),
        [prefix.clone(), prefix],
        [spread.clone(), spread],
    )
        .prop_map(|(like, which, prefixes, spread)| {
            let some = |bit: u16| which >> bit & 1 == 1;
            let net = |bit, address: [u8; 4], length| {
                let net = ipnet::IpNet::new(std::net::IpAddr::from(address), length).unwrap();
                some(bit).then_some(net.trunc())
            };
            let ports = |bit, port: u16, spread: u16| Ports {
                first: port.saturating_sub(spread),
                last: port.saturating_add(spread >> bit),
            };
            // Ports are rare: a range has many masks.
            let ported = some(8) && some(9);
            Match {
                source: net(0, like.source, prefixes[0]),
                destination: net(1, like.destination, prefixes[1]),
                protocol: (some(2) && !ported).then_some(like.protocol),
                source_port: (ported && some(3)).then(|| ports(1, like.ports[0], spread[0])),
                destination_port: (ported && !some(3)).then(|| ports(0, like.ports[1], spread[1])),
                dscp: (some(4) && some(5) && some(6)).then_some(like.tos >> 2),
                tos: (some(4) && some(5) && !some(6)).then_some((like.tos, u8::MAX)),
                mark: (some(6) && some(10)).then_some((like.mark & 2, 2)),
                vlan: like.vlan.filter(|_| some(7)),
                icmp_type: (some(11) && some(12) && some(13) && !ported)
                    .then_some((like.ports[0] >> 8) as u8),
                ..Match::default()
            }
        })
}

/// Link n of a profile has a delay of n + 1 ms.
fn profile(found: Vec<Match>) -> Profile {
    let mut text = "[link]\ndelay = \"1ms\"\n".to_owned();
    for link in 0..found.len() {
        text += &format!("[links.l{link:02}]\ndelay = \"{}ms\"\n", link + 2);
    }
    let mut profile = Profile::parse(&text, "x").unwrap();
    let rule = |(n, matches)| Rule {
        class: None,
        matches,
        target: Target::Named(format!("l{n:02}")),
        direction: None,
        per: None,
    };
    profile.rules = found.into_iter().enumerate().map(rule).collect();
    profile
}

/// One program for all profiles: the verifier takes longer than the packets.
#[test]
fn the_first_rule_that_matches_has_the_packet() {
    let sizes = Sizes {
        links: 21,
        rules: 32,
        rule_keys: 1 << 14,
        ..Sizes::default()
    };
    let bench = RefCell::new(Bench::empty(&sizes));
    let cases = (
        prop::collection::vec(matches(), 1..20),
        prop::collection::vec(packets(), 200),
    );
    let tested = TestRunner::new(same_cases(100)).run(&cases, |(rules, packets)| {
        let profile = profile(rules);
        // A match on too many different fields is rejected, which other tests cover.
        prop_assume!(emud::datapath::compiled::compile_rules(&profile).is_ok());
        set(&mut bench.borrow_mut(), &profile);
        for packet in packets {
            let first = (profile.rules.iter()).position(|rule| packet.matches(&rule.matches));
            let want = first.map_or(1, |n| n as u64 + 2);
            let fate = send(
                &bench.borrow(),
                abi::EMUD_UP,
                &packet.frame(),
                0,
                packet.mark,
            );
            prop_assert_eq!(
                fate.departure / MS,
                want,
                "{:?}\n{:#?}",
                packet,
                profile.rules
            );
        }
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
}
