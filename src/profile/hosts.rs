// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.host`: rules for the addresses that a name has at attach.

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
            for direction in abi::DIRECTIONS.into_iter().filter(|d| rule.is_for(*d)) {
                all.extend(found.iter().map(|ip| of(rule, direction, *ip)));
            }
        }
        self.rules = all;
        Ok(())
    }
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
            .map(|r| (r.direction.unwrap(), r.matches.keys()))
            .collect();
        let ips = ["192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128"];
        let (up, down) = (abi::EMUD_UP, abi::EMUD_DOWN);
        let mut expected: Vec<_> = (ips.iter())
            .map(|ip| (up, format!("destination = \"{ip}\", protocol = \"tcp\"")))
            .collect();
        expected.extend(ips.map(|ip| (down, format!("source = \"{ip}\", protocol = \"tcp\""))));
        expected.push((up, "destination = \"192.0.2.3/32\"".to_owned()));
        assert_eq!(rules, expected);
        assert!(!profile.names_hosts());
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
