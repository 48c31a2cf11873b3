// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic that passes untouched beside any profile.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::{Match, Ports, Profile, Rule, Target};
use crate::abi;

/// Traffic that passes untouched, whatever the profile's rules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// From and to these addresses.
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
    /// Returns the spared traffic that the interface sends; of received traffic it is the opposite.
    fn matches(self) -> Vec<Match> {
        let net = |end: SocketAddr| Some(IpNet::from(end.ip()));
        let port = |end: SocketAddr| {
            let (first, last) = (end.port(), end.port());
            Some(Ports { first, last })
        };
        match self {
            // Behind the interface may be either end: it may be that of a router, or the host's end of a veth.
            Self::Net(net) => vec![
                Match {
                    destination: Some(net),
                    ..Match::default()
                },
                Match {
                    source: Some(net),
                    ..Match::default()
                },
            ],
            Self::Connection(Connection { local, remote }) => vec![Match {
                source: net(local),
                destination: net(remote),
                source_port: port(local),
                destination_port: port(remote),
                protocol: Some(libc::IPPROTO_TCP as u8),
                ..Match::default()
            }],
        }
    }
}

impl Profile {
    /// Adds rules before all others, by which this traffic passes untouched. `up` must already be
    /// what the interface sends.
    pub fn spare(&mut self, spare: Spare) {
        let rule = |direction, matches| Rule {
            target: Target::Untouched,
            direction: Some(direction),
            matches,
            ..Rule::default()
        };
        let pairs = spare.matches().into_iter().flat_map(|up| {
            let down = opposite(&up);
            [rule(abi::EMUD_UP, up), rule(abi::EMUD_DOWN, down)]
        });
        self.rules.splice(0..0, pairs);
    }

    /// Returns whether there are such rules. Two of a profile's own that let the same traffic pass, one
    /// for each direction, look alike.
    pub fn spares(&self) -> bool {
        self.rules.windows(2).any(is_spare)
    }

    /// Returns the number of such rules at the front, where [`Self::spare`] adds them.
    pub(super) fn spared(&self) -> usize {
        2 * self
            .rules
            .chunks(2)
            .take_while(|pair| is_spare(pair))
            .count()
    }
}

fn is_spare(pair: &[Rule]) -> bool {
    let [up, down] = pair else { return false };
    let towards = |rule: &Rule, direction| {
        rule.target == Target::Untouched && rule.direction == Some(direction)
    };
    towards(up, abi::EMUD_UP)
        && towards(down, abi::EMUD_DOWN)
        && up.matches == opposite(&down.matches)
}

/// Returns the same traffic in the other direction.
fn opposite(matches: &Match) -> Match {
    Match {
        source: matches.destination,
        destination: matches.source,
        source_port: matches.destination_port,
        destination_port: matches.source_port,
        ..matches.clone()
    }
}

impl std::str::FromStr for Spare {
    type Err = String;

    /// Reads an address or a network.
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
    fn the_rules_are_first_and_for_both_directions() {
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
            (up, "source = \"192.0.2.0/24\"".to_owned()),
            (down, "destination = \"192.0.2.0/24\"".to_owned()),
            (None, "protocol = \"udp\"".to_owned()),
        ];
        assert_eq!(rules, expected);
        // The kernel keeps the text, from which `emud set` starts.
        let again = Profile::parse(&profile.to_toml(), "x").unwrap();
        assert_eq!(again.rules, profile.rules);
        assert!(again.spares());
        // Other rules replace its own only.
        let of_tcp = r#"rule=[{match={protocol="tcp"},link="link"}]"#;
        for (set, own) in [
            ([of_tcp, "rule=none"], None),
            (["rule=none", of_tcp], Some("protocol = \"tcp\"")),
        ] {
            let changed = again.with_changes(&set.map(str::to_owned)).unwrap();
            assert_eq!(changed.rules[..6], profile.rules[..6]);
            let rest = changed.rules[6..].iter();
            let rest: Vec<_> = rest.map(|rule| rule.matches.keys()).collect();
            assert_eq!(rest, Vec::from_iter(own));
        }
        // A connection alone, and after a rule that was added later.
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
