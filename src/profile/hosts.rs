// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.host`: rules for the addresses that a name has at attach, and for those of later DNS answers
//! on the path (`match.answer`).

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use ipnet::IpNet;

use super::{Profile, Rule};
use crate::abi;

/// A name of a rule has no address.
#[derive(Debug, thiserror::Error)]
#[error("rule {rule}: cannot resolve host \"{host}\": {cause}")]
pub struct Unresolved {
    /// From 1.
    pub rule: usize,
    /// The name.
    pub host: String,
    /// Why.
    pub cause: io::Error,
}

/// Returns the addresses of a name by the resolver of this host.
///
/// # Errors
/// The name has none, or no resolver answers.
pub fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .collect())
}

impl Profile {
    /// Returns whether a rule has a `host`.
    pub fn names_hosts(&self) -> bool {
        self.rules.iter().any(|rule| rule.matches.host.is_some())
    }

    /// Returns whether a rule has an `answer`.
    pub fn names_answers(&self) -> bool {
        self.rules.iter().any(|rule| rule.matches.answer.is_some())
    }

    /// Returns whether a rule has a `cgroup`.
    pub fn names_cgroups(&self) -> bool {
        self.rules.iter().any(|rule| rule.matches.cgroup.is_some())
    }

    /// Replaces each rule with a `host` by rules for the addresses of the host: as destination of what
    /// the interface sends, as source of what it receives.
    ///
    /// # Errors
    /// A name has no address: no rule may be left out, nor match all packets.
    pub fn resolve(
        &mut self,
        addresses: impl Fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Result<(), Unresolved> {
        let mut all = vec![];
        for (rule, number) in self.rules.iter().zip(1..) {
            let Some(host) = &rule.matches.host else {
                all.push(rule.clone());
                continue;
            };
            let failed = |cause| Unresolved {
                rule: number,
                host: host.clone(),
                cause,
            };
            let mut found = addresses(host).map_err(failed)?;
            found.sort_unstable();
            found.dedup();
            if found.is_empty() {
                return Err(failed(io::Error::other("it has no address")));
            }
            all.extend(resolved(rule, &found));
        }
        self.rules = all;
        Ok(())
    }
}

/// Returns the rules for these addresses of the host of a rule, and for later ones; a rule without a
/// host as it is.
pub(super) fn resolved(rule: &Rule, addresses: &[IpAddr]) -> Vec<Rule> {
    let Some(host) = &rule.matches.host else {
        return vec![rule.clone()];
    };
    let directions = abi::DIRECTIONS.into_iter().filter(|d| rule.is_for(*d));
    let mut all: Vec<_> = directions
        .flat_map(|direction| addresses.iter().map(move |ip| of(rule, direction, *ip)))
        .collect();
    let name = host.strip_suffix('.').unwrap_or(host);
    if hash(name).is_some() {
        let mut later = rule.clone();
        later.matches.host = None;
        later.matches.answer = Some(name.to_owned());
        all.push(later);
    }
    all
}

/// Returns the hash of a name as the classifier computes it from a question; `None`: no question can
/// have it, as an address.
pub(crate) fn hash(name: &str) -> Option<u64> {
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.is_ascii();
    if name.len() > 253 || name.parse::<IpAddr>().is_ok() || !name.split('.').all(is_label) {
        return None;
    }
    let absorb = |hash: u64, byte: u8| abi::absorb(hash, byte.to_ascii_lowercase().into());
    let hash = name.split('.').fold(abi::EMUD_FOR_NAME, |hash, label| {
        let hash = abi::absorb(hash, label.len() as u64);
        label.bytes().fold(hash, absorb)
    });
    Some(abi::mix(hash) & !1)
}

/// Returns the resolvers of this host that answer over the network, at most
/// [`abi::EMUD_RESOLVERS_MAX`]. Those behind a local one are systemd-resolved's.
pub fn resolvers() -> Vec<IpAddr> {
    let of = |file: &str| resolvers_of(&std::fs::read_to_string(file).unwrap_or_default());
    let found = of("/etc/resolv.conf");
    match found.is_empty() {
        true => of("/run/systemd/resolve/resolv.conf"),
        false => found,
    }
}

fn resolvers_of(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver");
        let address = address.and_then(|_| words.next())?;
        // A link-local one has a zone.
        let address: IpAddr = address.split('%').next()?.parse().ok()?;
        (!address.is_loopback()).then_some(address)
    };
    let all = text.lines().filter_map(address);
    all.take(abi::EMUD_RESOLVERS_MAX as usize).collect()
}

fn of(rule: &Rule, direction: u32, ip: IpAddr) -> Rule {
    let mut rule = rule.clone();
    rule.matches.host = None;
    rule.direction = Some(direction);
    let end = match direction {
        abi::EMUD_UP => &mut rule.matches.destination,
        _ => &mut rule.matches.source,
    };
    *end = Some(IpNet::from(ip));
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "[link]\ndelay = \"10ms\"\n[links.slow]\ndelay = \"1s\"\n\
        [[rule]]\nmatch = { host = \"api.example.org\", protocol = \"tcp\" }\nlink = \"slow\"\n\
        [[rule]]\nmatch = { host = \"up.example.org\" }\ndirection = \"up\"\nlink = \"none\"\n";

    fn found(host: &str) -> io::Result<Vec<IpAddr>> {
        match host {
            "api.example.org" => Ok(["192.0.2.2", "192.0.2.1", "192.0.2.2", "2001:db8::1"]
                .map(|ip| ip.parse().unwrap())
                .into()),
            "up.example.org" => Ok(vec!["192.0.2.3".parse().unwrap()]),
            _ => Ok(vec![]),
        }
    }

    #[test]
    fn a_name_is_its_addresses() {
        let mut profile = Profile::parse(PROFILE, "x").unwrap();
        assert!(profile.names_hosts());
        assert_eq!(
            Profile::parse(&profile.to_toml(), "x").unwrap().rules,
            profile.rules
        );
        // Until then it matches nothing and is no rule.
        let compiled = crate::profile::rule_keys::compile(&profile.rules, |_| Some(1), |_| None);
        assert!(compiled.err().unwrap().to_string().contains("host"));
        profile.resolve(found).unwrap();
        let rules: Vec<_> = (profile.rules.iter())
            .map(|r| (r.direction, r.matches.keys()))
            .collect();
        let ips = ["192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128"];
        let (up, down) = (Some(abi::EMUD_UP), Some(abi::EMUD_DOWN));
        let mut expected: Vec<_> = (ips.iter())
            .map(|ip| (up, format!("destination = \"{ip}\", protocol = \"tcp\"")))
            .collect();
        expected.extend(ips.map(|ip| (down, format!("source = \"{ip}\", protocol = \"tcp\""))));
        let later = "answer = \"api.example.org\", protocol = \"tcp\"";
        expected.push((None, later.to_owned()));
        expected.push((up, "destination = \"192.0.2.3/32\"".to_owned()));
        expected.push((up, "answer = \"up.example.org\"".to_owned()));
        assert_eq!(rules, expected);
        assert!(!profile.names_hosts());
    }

    #[test]
    fn resolvers_are_those_of_the_network() {
        let text = "# nameserver 192.0.2.9\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver 192.0.2.1\nnameserver\t2001:db8::1\nnameserver fe80::1%eth0\n\
                    nameserver ::1\nnameservers 192.0.2.2\nnameserver host\n";
        let found: Vec<_> = resolvers_of(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.1", "2001:db8::1", "fe80::1"]);
        let many = "nameserver 192.0.2.1\n".repeat(20);
        assert_eq!(resolvers_of(&many).len(), 8);
    }

    #[test]
    fn a_hash_is_that_of_a_name() {
        assert_eq!(hash("a.Example.org"), hash("A.example.ORG"));
        assert_ne!(hash("a.example.org"), hash("aexample.org"));
        let long = "a".repeat(64);
        for none in [
            "",
            ".",
            "a..b",
            "192.0.2.1",
            "2001:db8::1",
            "ä.org",
            long.as_str(),
        ] {
            assert_eq!(hash(none), None, "{none}");
        }
    }

    #[test]
    fn a_name_without_address_is_an_error() {
        let text = PROFILE.replace("up.example.org", "no.example.org");
        let mut profile = Profile::parse(&text, "x").unwrap();
        let before = profile.rules.clone();
        let e = profile.resolve(found).unwrap_err().to_string();
        assert!(
            e.starts_with("rule 2: cannot resolve host \"no.example.org\""),
            "{e}"
        );
        assert_eq!(profile.rules, before);
        let both = PROFILE.replace("protocol = \"tcp\"", "source = \"10.0.0.0/8\"");
        let e = Profile::parse(&both, "x").unwrap_err().to_string();
        assert!(e.contains("`host` beside"), "{e}");
        let empty = PROFILE.replace("up.example.org", " ");
        assert!(Profile::parse(&empty, "x").is_err());
    }
}
