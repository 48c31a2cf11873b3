// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.host`: rules for the addresses that a name has at attach, and for those of later DNS answers
//! on the path (`match.answer`).

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use ipnet::IpNet;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::{Profile, Rule};
use crate::abi;

/// A name of a rule has no address.
#[derive(Debug, thiserror::Error)]
#[error("rule {rule}: cannot resolve host \"{host}\": {cause}")]
pub struct Unresolved {
    /// Number of the rule, from 1.
    pub rule: usize,
    /// Name that could not be resolved.
    pub host: String,
    /// Error of the resolution.
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

/// Returns the first [`abi::EMUD_RESOLVERS_MAX`] of these resolvers and of those of this host that answer over
/// the network. Those behind a local one are systemd-resolved's.
pub fn resolvers(first: &[IpAddr]) -> Vec<IpAddr> {
    let of = |file: &str| resolvers_of(&std::fs::read_to_string(file).unwrap_or_default());
    let found = of("/etc/resolv.conf");
    let own = match found.is_empty() {
        true => of("/run/systemd/resolve/resolv.conf"),
        false => found,
    };
    joined(first, own)
}

fn joined(first: &[IpAddr], mut own: Vec<IpAddr>) -> Vec<IpAddr> {
    own.retain(|address| !first.contains(address));
    let all = first.iter().copied().chain(own);
    all.take(abi::EMUD_RESOLVERS_MAX as usize).collect()
}

/// Returns the resolvers of a container that answer over the network, by its root folder; none if its
/// resolv.conf cannot be read.
pub fn resolvers_in(root: &Path) -> Vec<IpAddr> {
    resolvers_of(&resolv_conf(root).unwrap_or_default())
}

/// Reads the file of a container, which owns it: a link must not lead out of its root, nor a FIFO block, nor a
/// device fill the memory.
fn resolv_conf(root: &Path) -> io::Result<String> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, root, folder, Mode::empty())?;
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat2(
        root,
        "etc/resolv.conf",
        how,
        Mode::empty(),
        ResolveFlags::IN_ROOT,
    )?;
    let mut text = Vec::new();
    File::from(file).take(64 << 10).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
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
    text.lines().filter_map(address).collect()
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
        let many: String = (0..20)
            .map(|n| format!("nameserver 192.0.2.{n}\n"))
            .collect();
        let many = resolvers_of(&many);
        let joined = joined(&many[5..7], many.clone());
        let [fifth, sixth, ..] = joined[..] else {
            panic!("{joined:?}")
        };
        assert_eq!([fifth, sixth], many[5..7]);
        assert_eq!(joined[2..7], many[..5]);
        assert_eq!((joined[7], joined.len()), (many[7], 8));
    }

    /// Of a container, whose links are those of its root.
    #[test]
    fn resolvers_of_a_container_are_found_in_its_root() {
        let folder = std::env::temp_dir().join(format!("emud-root-{}", std::process::id()));
        let root = folder.join("root");
        std::fs::create_dir_all(root.join("etc")).unwrap();
        std::fs::create_dir_all(root.join("run")).unwrap();
        std::fs::write(root.join("run/dns"), "nameserver 10.89.0.1\n").unwrap();
        std::fs::write(folder.join("dns"), "nameserver 192.0.2.66\n").unwrap();
        assert_eq!(resolvers_in(&root), [] as [IpAddr; 0]);
        for (link, found) in [
            ("/run/dns", &["10.89.0.1"][..]),
            ("../../../run/dns", &["10.89.0.1"]),
            ("../../dns", &[]),
            ("/dev/zero", &[]),
        ] {
            let path = root.join("etc/resolv.conf");
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(link, &path).unwrap();
            let found: Vec<IpAddr> = found.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(resolvers_in(&root), found, "{link}");
        }
        assert_eq!(resolvers_in(&folder.join("none")), [] as [IpAddr; 0]);
        std::fs::remove_dir_all(folder).unwrap();
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
