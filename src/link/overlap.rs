// SPDX-License-Identifier: GPL-2.0-only
//! Which rules take packets that a later one would match.

use ipnet::IpNet;

use crate::link::report_match::HiddenBy;
use crate::profile::{Match, Rule};

/// Rules named at most; after one that hides all there is no use for more.
const NAMED: usize = 8;

/// How two sets of packets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// No packet is in both.
    Apart,
    Overlap,
    /// The first has all of the second.
    Covers,
}

/// The rules before rule `n` (from 0) that take packets from it.
pub(super) fn hidden(rules: &[Rule], n: usize) -> Vec<HiddenBy> {
    let Some(rule) = rules.get(n) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for (before, earlier) in (1..).zip(&rules[..n]) {
        let wholly = match lie(earlier, rule) {
            Lie::Apart => continue,
            lie => lie == Lie::Covers,
        };
        out.push(HiddenBy {
            rule: before,
            wholly,
        });
        if wholly || out.len() == NAMED {
            break;
        }
    }
    out
}

fn lie(a: &Rule, b: &Rule) -> Lie {
    let directions = match (a.direction, b.direction) {
        (Some(a), Some(b)) if a != b => Lie::Apart,
        (Some(_), None) => Lie::Overlap,
        _ => Lie::Covers,
    };
    parts(&a.matches, &b.matches)
        .into_iter()
        .chain([directions, families(&a.matches, &b.matches)])
        .fold(Lie::Covers, |all, part| match (all, part) {
            (Lie::Apart, _) | (_, Lie::Apart) => Lie::Apart,
            (Lie::Covers, Lie::Covers) => Lie::Covers,
            _ => Lie::Overlap,
        })
}

fn parts(a: &Match, b: &Match) -> [Lie; 11] {
    [
        part(a.source, b.source, nets),
        part(a.destination, b.destination, nets),
        part(a.protocol, b.protocol, same),
        part(a.source_port, b.source_port, |a, b| {
            ranges((a.first, a.last), (b.first, b.last))
        }),
        part(a.destination_port, b.destination_port, |a, b| {
            ranges((a.first, a.last), (b.first, b.last))
        }),
        part(a.tos, b.tos, |a, b| {
            bits((a.0.into(), a.1.into()), (b.0.into(), b.1.into()))
        }),
        part(a.mark, b.mark, bits),
        part(a.vlan, b.vlan, same),
        part(a.icmp_type, b.icmp_type, same),
        part(a.source_mac, b.source_mac, same),
        part(a.destination_mac, b.destination_mac, same),
    ]
}

/// What is not asked for covers all.
fn part<T>(a: Option<T>, b: Option<T>, both: impl Fn(T, T) -> Lie) -> Lie {
    match (a, b) {
        (None, _) => Lie::Covers,
        (Some(_), None) => Lie::Overlap,
        (Some(a), Some(b)) => both(a, b),
    }
}

fn same<T: PartialEq>(a: T, b: T) -> Lie {
    if a == b { Lie::Covers } else { Lie::Apart }
}

fn nets(a: IpNet, b: IpNet) -> Lie {
    if a.contains(&b) {
        Lie::Covers
    } else if b.contains(&a) {
        Lie::Overlap
    } else {
        Lie::Apart
    }
}

fn ranges(a: (u16, u16), b: (u16, u16)) -> Lie {
    if a.0 <= b.0 && b.1 <= a.1 {
        Lie::Covers
    } else if a.1 < b.0 || b.1 < a.0 {
        Lie::Apart
    } else {
        Lie::Overlap
    }
}

fn bits(a: (u32, u32), b: (u32, u32)) -> Lie {
    if (a.0 ^ b.0) & a.1 & b.1 != 0 {
        Lie::Apart
    } else if a.1 & b.1 == a.1 {
        Lie::Covers
    } else {
        Lie::Overlap
    }
}

/// What no single part says: IPv4 beside IPv6, ports beside ICMP.
fn families(a: &Match, b: &Match) -> Lie {
    let ip6 = |m: &Match| {
        let mut nets = [m.source, m.destination].into_iter().flatten();
        nets.next().map(|net| matches!(net, IpNet::V6(_)))
    };
    let kind = |m: &Match| match (m.protocol, m.icmp_type) {
        _ if m.source_port.is_some() || m.destination_port.is_some() => Some(false),
        (_, Some(_)) | (Some(1 | 58), _) => Some(true),
        (Some(_), _) => Some(false),
        (None, None) => None,
    };
    let apart = |a: Option<bool>, b: Option<bool>| a.is_some() && b.is_some() && a != b;
    if apart(ip6(a), ip6(b)) || apart(kind(a), kind(b)) {
        return Lie::Apart;
    }
    Lie::Covers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// Of the last of some rules.
    fn of_last(matches: &[&str]) -> Vec<(usize, bool)> {
        let rule = |m: &&str| format!("[[rule]]\nmatch = {{ {m} }}\nlink = \"link\"\n");
        let text: String = matches.iter().map(rule).collect();
        let profile = match Profile::parse(&format!("[link]\n{text}"), "x") {
            Ok(profile) => profile,
            Err(error) => panic!("{error}"),
        };
        let hidden = hidden(&profile.rules, matches.len() - 1);
        hidden.iter().map(|h| (h.rule, h.wholly)).collect()
    }

    #[test]
    fn what_comes_first_hides_what_it_covers() {
        let net8 = "source = \"10.0.0.0/8\"";
        let net16 = "source = \"10.1.0.0/16\"";
        assert_eq!(of_last(&[net8, net16]), [(1, true)]);
        assert_eq!(of_last(&[net16, net8]), [(1, false)]);
        assert_eq!(of_last(&[net16, "source = \"10.2.0.0/16\""]), []);
        assert_eq!(of_last(&["", net8]), [(1, true)]);
        assert_eq!(of_last(&[net8, ""]), [(1, false)]);
        assert_eq!(
            of_last(&[net16, "vlan = 3", net8]),
            [(1, false), (2, false)]
        );
        assert_eq!(
            of_last(&["source-port = \"5-9\"", "source-port = \"9-12\""]),
            [(1, false)]
        );
        assert_eq!(
            of_last(&["source-port = \"5-9\"", "source-port = \"6-9\""]),
            [(1, true)]
        );
        assert_eq!(
            of_last(&["source-port = \"5-9\"", "source-port = \"10-12\""]),
            []
        );
        assert_eq!(of_last(&["dscp = 46", "tos = 184"]), [(1, true)]);
        assert_eq!(of_last(&["tos = 184", "dscp = 46"]), [(1, false)]);
        assert_eq!(of_last(&["mark = \"1/3\"", "mark = \"2/6\""]), []);
        assert_eq!(of_last(&["mark = \"1/1\"", "mark = \"2/2\""]), [(1, false)]);
        assert_eq!(of_last(&[net8, "source = \"::/0\""]), []);
        assert_eq!(
            of_last(&["source = \"::/0\"", "destination = \"10.0.0.1\""]),
            []
        );
        assert_eq!(of_last(&["icmp-type = 8", "source-port = 5"]), []);
    }
}
