// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rules take packets that a later one would match.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::profile::{Match, Ports, Rule};

/// Number of rules hiding a part of another that are reported at most, besides one that hides all
/// of it.
pub const MOST_REPORTED: usize = 32;
/// Number of rules, from the first, that are compared with later ones: each pair takes a comparison.
pub const COMPARED: usize = 1024;

/// Returns a note if there are more rules than are compared.
pub fn bound(rules: usize) -> Option<String> {
    (rules > COMPARED).then(|| {
        format!("which rules hide others is looked up among the first {COMPARED} of {rules} only")
    })
}

/// A rule that comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HiddenBy {
    /// Number of the rule, from 1.
    #[schemars(range(min = 1))]
    pub rule: usize,
    /// No packet remains for the later rule.
    pub wholly: bool,
}

/// How two sets of packets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// No packet is in both.
    Apart,
    Overlap,
    /// The first has all of the second.
    Covers,
}

/// Returns the rules before rule `n` (from 0) that take packets from it.
pub(crate) fn hidden(rules: &[Rule], n: usize) -> Vec<HiddenBy> {
    let Some(rule) = rules.get(n) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for (before, earlier) in (1..).zip(&rules[..n.min(COMPARED)]) {
        let wholly = match lie(earlier, rule) {
            Lie::Apart => continue,
            lie => lie == Lie::Covers,
        };
        // A rule that hides all may follow rules that hide a part.
        if wholly || out.len() < MOST_REPORTED {
            out.push(HiddenBy {
                rule: before,
                wholly,
            });
        }
        if wholly {
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
    let first = [directions, families(&a.matches, &b.matches)];
    let mut all = Lie::Covers;
    // Lazily: the first field already separates most rules.
    for lie in first.into_iter().chain(parts(&a.matches, &b.matches)) {
        match lie {
            Lie::Apart => return Lie::Apart,
            Lie::Overlap => all = Lie::Overlap,
            Lie::Covers => {}
        }
    }
    all
}

fn parts(a: &Match, b: &Match) -> impl Iterator<Item = Lie> {
    const PARTS: [fn(&Match, &Match) -> Lie; 13] = [
        |a, b| part(a.source_port, b.source_port, ports),
        |a, b| part(a.destination_port, b.destination_port, ports),
        |a, b| part(a.source, b.source, nets),
        |a, b| part(a.destination, b.destination, nets),
        |a, b| part(a.protocol, b.protocol, same),
        |a, b| part(a.cgroup.as_deref(), b.cgroup.as_deref(), groups),
        |a, b| part(a.answer.as_deref(), b.answer.as_deref(), names),
        |a, b| {
            part(a.ds_field(), b.ds_field(), |a, b| {
                bits((a.0.into(), a.1.into()), (b.0.into(), b.1.into()))
            })
        },
        |a, b| part(a.mark, b.mark, bits),
        |a, b| part(a.vlan, b.vlan, same),
        |a, b| part(a.icmp_type, b.icmp_type, same),
        |a, b| part(a.source_mac, b.source_mac, same),
        |a, b| part(a.destination_mac, b.destination_mac, same),
    ];
    PARTS.iter().map(|part| part(a, b))
}

/// Compares one field of two rules; one that a rule does not match covers all values.
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

/// Groups of which one is below the other have packets of both, others have none.
fn groups(a: &str, b: &str) -> Lie {
    let below = |group: &str, of: &str| {
        let rest = group.strip_prefix(of);
        rest.is_some_and(|rest| of.is_empty() || rest.is_empty() || rest.starts_with('/'))
    };
    match (below(b, a), below(a, b)) {
        (true, _) => Lie::Covers,
        (_, true) => Lie::Overlap,
        _ => Lie::Apart,
    }
}

/// Names may share an address.
fn names(a: &str, b: &str) -> Lie {
    if a == b { Lie::Covers } else { Lie::Overlap }
}

fn ports(a: Ports, b: Ports) -> Lie {
    if a.first <= b.first && b.last <= a.last {
        Lie::Covers
    } else if a.last < b.first || b.last < a.first {
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

/// Compares what no single field shows: IPv4 and IPv6, ports and ICMP.
fn families(a: &Match, b: &Match) -> Lie {
    let ip6 = |m: &Match| {
        let mut nets = [m.source, m.destination].into_iter().flatten();
        nets.next().map(|net| matches!(net, IpNet::V6(_)))
    };
    let apart = |a: Option<bool>, b: Option<bool>| a.is_some() && b.is_some() && a != b;
    if apart(ip6(a), ip6(b)) || no_protocol_of_both(a, b) {
        return Lie::Apart;
    }
    Lie::Covers
}

/// Ports and ICMP types say something of the protocol too; none: it may be any.
fn protocols(m: &Match) -> &[u8] {
    // DCCP, SCTP and UDP-Lite beside TCP and UDP.
    const WITH_PORTS: &[u8] = &[6, 17, 33, 132, 136];
    const ICMP: &[u8] = &[1, 58];
    match &m.protocol {
        Some(protocol) => std::slice::from_ref(protocol),
        None if m.source_port.is_some() || m.destination_port.is_some() => WITH_PORTS,
        None if m.icmp_type.is_some() => ICMP,
        None => &[],
    }
}

fn no_protocol_of_both(a: &Match, b: &Match) -> bool {
    let (a, b) = (protocols(a), protocols(b));
    !a.is_empty() && !b.is_empty() && !a.iter().any(|p| b.contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// Returns the overlaps of the last rule.
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
        let app = "cgroup = \"/app\"";
        assert_eq!(of_last(&[app, "cgroup = \"/app/a\""]), [(1, true)]);
        assert_eq!(of_last(&["cgroup = \"/app/a\"", app]), [(1, false)]);
        assert_eq!(of_last(&[app, "cgroup = \"/apple\""]), []);
        assert_eq!(of_last(&["cgroup = \"/\"", app]), [(1, true)]);
        assert_eq!(of_last(&[app, ""]), [(1, false)]);
        // GRE has no ports, TCP has.
        assert_eq!(of_last(&["protocol = \"gre\"", "source-port = 5"]), []);
        assert_eq!(of_last(&["protocol = \"gre\"", "icmp-type = 8"]), []);
        assert_eq!(
            of_last(&["protocol = \"tcp\"", "source-port = 5"]),
            [(1, false)]
        );
    }

    #[test]
    fn what_hides_all_is_found_behind_what_hides_a_part() {
        let ports: Vec<_> = (1..=8)
            .map(|n| format!("protocol = \"udp\", source-port = {n}"))
            .collect();
        let mut rules: Vec<_> = ports.iter().map(String::as_str).collect();
        rules.extend([
            "protocol = \"udp\"",
            "protocol = \"udp\", destination = \"10.0.0.0/8\"",
        ]);
        let hidden = of_last(&rules);
        assert_eq!(hidden.len(), 9, "{hidden:?}");
        assert_eq!(hidden[8], (9, true));
    }

    #[test]
    fn so_many_rules_are_looked_at_and_told() {
        let rule = |port: u16| Rule {
            matches: Match {
                source_port: (port > 0).then_some(Ports {
                    first: port,
                    last: port,
                }),
                ..Match::default()
            },
            target: crate::profile::Target::Own,
            direction: None,
            per: None,
            class: None,
        };
        let mut rules: Vec<_> = (1..=3000).map(rule).collect();
        rules.push(rule(0));
        assert_eq!(hidden(&rules, 3000).len(), MOST_REPORTED);
        rules.push(rule(COMPARED as u16));
        let by = hidden(&rules, 3001);
        assert_eq!(by.iter().map(|h| h.rule).collect::<Vec<_>>(), [COMPARED]);
        rules.push(rule(COMPARED as u16 + 1));
        assert_eq!(hidden(&rules, 3002), []);
        assert!(bound(COMPARED).is_none() && bound(COMPARED + 1).is_some());
    }
}
