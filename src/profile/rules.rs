// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[rule]]`: which link a packet takes.

use ipnet::IpNet;

use super::bottleneck::ClassName;
use super::kinds::OneOf;
use super::rule_kinds::{
    Byte, Cgroup, Dscp, Host, LinkName, Mac, Mark, Name, Net, PortRange, Protocol, Tos, Towards,
    Vlan,
};
use crate::abi;
use crate::text::{table, words};

/// The link of a rule that is the profile's own, and the one that is none.
pub(super) const OWN: &str = "link";
pub(super) const NONE: &str = "none";

table! {
    /// One rule; the first that matches wins.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Rule {
        target: Target = Target::Own, "link" as LinkName;
        /// `EMUD_UP` or `EMUD_DOWN`; `None`: both.
        direction: Option<u32> = None, "direction" as Towards;
        /// Each flow, source and so on has a separate queue, loss chain and order.
        per: Option<Per> = None, "per" as OneOf<Per>;
        /// Where its packets wait, in place of the link's class.
        class: Option<String> = None, "class" as ClassName;
    }
    beside {
        matches: Match = Match::default();
    }
    struct RuleDraft {
        matches: Match;
    }
}

/// Where a rule's packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The profile's own link.
    Own,
    /// The named link.
    Named(String),
    /// They pass untouched.
    Untouched,
}

words! {
    /// The packets that share an instance of a link.
    pub enum Per {
        Flow = "flow",
        Source = "source",
        Destination = "destination",
        Pair = "pair",
    }
}

table! {
    /// Fields that a packet must have; all that are given must match.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Match {
        /// The packet's own, in either direction.
        source: Option<IpNet> = None, "source" as Net;
        destination: Option<IpNet> = None, "destination" as Net;
        /// The other host by its name, until attach resolves it.
        host: Option<String> = None, "host" as Host;
        /// The other host by the name whose addresses DNS answers on the path give; attach adds such a
        /// rule to each with `host`.
        answer: Option<String> = None, "answer" as Name;
        /// Of the application: a path below the root of cgroup v2, without a leading slash.
        cgroup: Option<String> = None, "cgroup" as Cgroup;
        protocol: Option<u8> = None, "protocol" as Protocol;
        source_port: Option<Ports> = None, "source-port" as PortRange;
        destination_port: Option<Ports> = None, "destination-port" as PortRange;
        source_mac: Option<[u8; 6]> = None, "source-mac" as Mac;
        destination_mac: Option<[u8; 6]> = None, "destination-mac" as Mac;
        /// Bits of skb->mark, and which of them count.
        mark: Option<(u32, u32)> = None, "mark" as Mark;
        /// The upper six bits of the DS field, 0..=63; not beside `tos`.
        dscp: Option<u8> = None, "dscp" as Dscp;
        /// Bits of the DS field, and which of them count.
        tos: Option<(u8, u8)> = None, "tos" as Tos;
        /// Id of the outer tag, 0..=4095.
        vlan: Option<u16> = None, "vlan" as Vlan;
        /// ICMP's or ICMPv6's.
        icmp_type: Option<u8> = None, "icmp-type" as Byte;
    }
    struct MatchDraft {}
}

/// From and to, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

/// Protocols by the names that people write; the first of a number is printed.
pub(super) const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("icmp6", 58),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];

impl Rule {
    /// Returns the same rule seen from the other end of the link.
    pub(super) fn reversed(self) -> Self {
        let other = |d| match d {
            abi::EMUD_UP => abi::EMUD_DOWN,
            _ => abi::EMUD_UP,
        };
        Self {
            direction: self.direction.map(other),
            ..self
        }
    }

    /// Returns whether it is for packets of a direction.
    pub fn is_for(&self, direction: u32) -> bool {
        self.direction.is_none_or(|only| only == direction)
    }

    /// As a table of a profile.
    pub(super) fn to_toml(&self) -> String {
        let all = self.matches == Match::default();
        let matches = (!all).then(|| format!("match = {{ {} }}", self.matches.keys()));
        let own = (self.target == Target::Own).then(|| format!("link = \"{OWN}\""));
        let keys = matches.into_iter().chain(own).chain(self.keys_text());
        let keys: Vec<_> = keys.collect();
        format!("\n[[rule]]\n{}\n", keys.join("\n"))
    }
}

impl Match {
    /// As the keys of `match`.
    pub fn keys(&self) -> String {
        self.keys_text().join(", ")
    }

    /// Returns bits of the DS field, and which of them count.
    pub fn ds_field(&self) -> Option<(u8, u8)> {
        let dscp = self.dscp.map(|dscp| (dscp << 2, 0xfc));
        dscp.or(self.tos)
    }
}

impl std::fmt::Display for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

pub(super) fn protocol_name(number: u8) -> String {
    match PROTOCOLS.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

pub(super) fn mac_name(bytes: &[u8; 6]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    bytes.join(":")
}
