// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[rule]]`: which link a packet takes.

use std::fmt::Write;

use ipnet::IpNet;

use crate::abi;
use crate::text::{Word, words};

/// The link of a rule that is the profile's own, and the one that is none.
pub(super) const OWN: &str = "link";
pub(super) const NONE: &str = "none";

/// One rule; the first that matches wins.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub matches: Match,
    pub target: Target,
    /// `EMUD_UP` or `EMUD_DOWN`; `None`: both.
    pub direction: Option<u32>,
    /// Who has a queue, a loss chain and an order of his own.
    pub per: Option<Per>,
    /// Where its packets wait, in place of the link's class.
    pub class: Option<String>,
}

/// Where a rule's packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The profile's own link.
    Own,
    Named(String),
    /// They pass untouched.
    Untouched,
}

words! {
    /// What each instance of a link is for.
    pub enum Per {
        Flow = "flow",
        Source = "source",
        Destination = "destination",
        Pair = "pair",
    }
}

/// What a packet must have; all parts that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// The packet's own, in either direction.
    pub source: Option<IpNet>,
    pub destination: Option<IpNet>,
    pub protocol: Option<u8>,
    pub source_port: Option<Ports>,
    pub destination_port: Option<Ports>,
    /// Bits of the DS field, and which of them count.
    pub tos: Option<(u8, u8)>,
    /// Bits of skb->mark, and which of them count.
    pub mark: Option<(u32, u32)>,
    /// Id of the outer tag, 0..=4095.
    pub vlan: Option<u16>,
    /// ICMP's or ICMPv6's.
    pub icmp_type: Option<u8>,
    pub source_mac: Option<[u8; 6]>,
    pub destination_mac: Option<[u8; 6]>,
}

/// From and to, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub first: u16,
    pub last: u16,
}

/// The bits of the DS field that are the DSCP.
pub(super) const DSCP: u8 = 0xfc;

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
    /// The same rule seen from the other end of the link.
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

    /// Whether it is for packets of a direction.
    pub fn is_for(&self, direction: u32) -> bool {
        self.direction.is_none_or(|only| only == direction)
    }

    /// As a table of a profile.
    pub(super) fn to_toml(&self) -> String {
        let mut out = "\n[[rule]]\n".to_owned();
        if self.matches != Match::default() {
            let _ = writeln!(out, "match = {{ {} }}", self.matches.keys());
        }
        let link = match &self.target {
            Target::Own => OWN,
            Target::Named(name) => name,
            Target::Untouched => NONE,
        };
        let _ = writeln!(out, "link = \"{link}\"");
        if let Some(direction) = self.direction {
            let name = crate::abi::direction_name(direction);
            let _ = writeln!(out, "direction = \"{name}\"");
        }
        if let Some(per) = self.per {
            let _ = writeln!(out, "per = \"{}\"", per.word());
        }
        if let Some(class) = &self.class {
            let _ = writeln!(out, "class = \"{class}\"");
        }
        out
    }
}

impl Match {
    /// As the keys of `match`.
    pub fn keys(&self) -> String {
        let mut parts = Vec::new();
        let mut quoted = |key: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{key} = \"{value}\"")));
        };
        quoted("source", self.source.map(|net| net.to_string()));
        quoted("destination", self.destination.map(|net| net.to_string()));
        quoted("protocol", self.protocol.map(protocol_name));
        quoted("source-port", self.source_port.map(|p| p.to_string()));
        quoted(
            "destination-port",
            self.destination_port.map(|p| p.to_string()),
        );
        quoted("source-mac", self.source_mac.map(mac));
        quoted("destination-mac", self.destination_mac.map(mac));
        quoted(
            "mark",
            self.mark.map(|(value, mask)| match mask {
                u32::MAX => format!("{value:#x}"),
                mask => format!("{value:#x}/{mask:#x}"),
            }),
        );
        let mut number = |key: &str, value: Option<u16>| {
            parts.extend(value.map(|value| format!("{key} = {value}")));
        };
        match self.tos {
            Some((value, DSCP)) => number("dscp", Some(u16::from(value >> 2))),
            other => number("tos", other.map(|(value, _)| value.into())),
        }
        number("vlan", self.vlan);
        number("icmp-type", self.icmp_type.map(u16::from));
        parts.join(", ")
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

fn protocol_name(number: u8) -> String {
    match PROTOCOLS.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

fn mac(bytes: [u8; 6]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    bytes.join(":")
}
