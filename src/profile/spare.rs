// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic that passes untouched beside any profile.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::{Match, Ports, Profile, Rule, Target};
use crate::abi;

/// Traffic that passes untouched, whatever the profile's rules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// From and to addresses of other hosts.
    Net(IpNet),
    /// One TCP connection.
    Connection(Connection),
}

/// A TCP connection of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Its end on this host.
    pub local: SocketAddr,
    /// The other one.
    pub remote: SocketAddr,
}

impl Spare {
    /// What passes in a direction of an interface of this host.
    fn matches(self, direction: u32) -> Match {
        let port = |end: SocketAddr| {
            let (first, last) = (end.port(), end.port());
            Some(Ports { first, last })
        };
        let net = |end: SocketAddr| Some(IpNet::from(end.ip()));
        let of = |local: Option<SocketAddr>, remote: Option<SocketAddr>, far: Option<IpNet>| {
            let (source, destination) = match direction {
                abi::EMUD_UP => (local, remote),
                _ => (remote, local),
            };
            let (from, to) = match direction {
                abi::EMUD_UP => (None, far),
                _ => (far, None),
            };
            Match {
                source: source.and_then(net).or(from),
                destination: destination.and_then(net).or(to),
                source_port: source.and_then(port),
                destination_port: destination.and_then(port),
                protocol: remote.map(|_| libc::IPPROTO_TCP as u8),
                ..Match::default()
            }
        };
        match self {
            Self::Net(far) => of(None, None, Some(far)),
            Self::Connection(c) => of(Some(c.local), Some(c.remote), None),
        }
    }
}

impl Profile {
    /// Adds rules before all others, by which this traffic passes untouched. `up` must already be
    /// what the interface sends.
    pub fn spare(&mut self, spare: Spare) {
        let rule = |direction| Rule {
            target: Target::Untouched,
            direction: Some(direction),
            matches: spare.matches(direction),
            ..Rule::default()
        };
        self.rules.splice(0..0, abi::DIRECTIONS.map(rule));
    }

    /// Returns whether there are such rules. Two of a profile's own that let the same traffic pass, one
    /// for each direction, look alike.
    pub fn spares(&self) -> bool {
        self.rules.windows(2).any(|pair| {
            let [up, down] = pair else { return false };
            let towards = |rule: &Rule, direction| {
                rule.target == Target::Untouched && rule.direction == Some(direction)
            };
            let back = Match {
                source: down.matches.destination,
                destination: down.matches.source,
                source_port: down.matches.destination_port,
                destination_port: down.matches.source_port,
                ..down.matches.clone()
            };
            towards(up, abi::EMUD_UP) && towards(down, abi::EMUD_DOWN) && up.matches == back
        })
    }
}

impl std::str::FromStr for Spare {
    type Err = String;

    /// An address or a network.
    fn from_str(text: &str) -> Result<Self, String> {
        let net = text.parse::<IpNet>();
        let net = net.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.map(|net| Self::Net(net.trunc())).map_err(|_| {
            format!("{text:?} is neither `ssh` nor an address or network such as 192.0.2.0/24")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_first_and_name_the_far_end() {
        let text =
            "[link]\nloss = \"1%\"\n[[rule]]\nmatch = { protocol = \"udp\" }\nlink = \"none\"\n";
        let mut profile = Profile::parse(text, "x").unwrap();
        assert!(!profile.spares());
        profile.spare("192.0.2.7/24".parse().unwrap());
        profile.spare(Spare::Connection(Connection {
            local: "10.0.0.1:22".parse().unwrap(),
            remote: "10.0.0.9:50000".parse().unwrap(),
        }));
        let rules: Vec<_> = (profile.rules.iter())
            .map(|rule| (rule.direction, rule.matches.keys()))
            .collect();
        let (up, down) = (Some(abi::EMUD_UP), Some(abi::EMUD_DOWN));
        let ends = |a: &str, p: &str, b: &str, q: &str| {
            format!(
                "source = \"{a}/32\", destination = \"{b}/32\", protocol = \"tcp\", source-port = \"{p}\", \
                 destination-port = \"{q}\""
            )
        };
        let expected = [
            (up, ends("10.0.0.1", "22", "10.0.0.9", "50000")),
            (down, ends("10.0.0.9", "50000", "10.0.0.1", "22")),
            (up, "destination = \"192.0.2.0/24\"".to_owned()),
            (down, "source = \"192.0.2.0/24\"".to_owned()),
            (None, "protocol = \"udp\"".to_owned()),
        ];
        assert_eq!(rules, expected);
        // The kernel keeps the text, from which `emud set` starts.
        let again = Profile::parse(&profile.to_toml(), "x").unwrap();
        assert_eq!(again.rules, profile.rules);
        assert!(again.spares());
        // A connection alone, and behind a rule that was added later.
        let mut one = Profile::parse("[link]\n", "x").unwrap();
        one.spare(Spare::Connection(Connection {
            local: "[fd00::1]:22".parse().unwrap(),
            remote: "[fd00::9]:50000".parse().unwrap(),
        }));
        one.rules.insert(0, Rule::default());
        assert!(one.spares());
        one.rules.remove(1);
        assert!(!one.spares());
        assert!("ssl".parse::<Spare>().unwrap_err().contains("neither"));
    }
}
