// SPDX-License-Identifier: MIT OR Apache-2.0
//! The match of a rule as filters of tc.

use ipnet::IpNet;

use crate::profile::Match;

/// A filter without its device, parent and class.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub protocol: &'static str,
    pub text: String,
    pub notes: Vec<&'static str>,
}

const PORTS: &str = "u32 compares ports at a fixed position: packets with IP options or extension headers, \
                     and without `protocol` those of other protocols, match by chance";

/// Returns one filter; two if the rule is for both IPv4 and IPv6.
///
/// # Errors
/// The keys for which there is no filter.
pub(super) fn filters(matches: &Match) -> Result<Vec<Filter>, Vec<String>> {
    let Match {
        source,
        destination,
        host,
        answer,
        cgroup,
        protocol,
        source_port,
        destination_port,
        dscp: _,
        tos: _,
        mark,
        vlan,
        icmp_type,
        source_mac,
        destination_mac,
    } = matches;
    let all = |protocol, text: String| Filter {
        protocol,
        text,
        notes: vec![],
    };
    if *matches == Match::default() {
        return Ok(vec![all("all", "matchall".to_owned())]);
    }
    let mut reasons = vec![];
    for (key, given) in [
        ("host", host.is_some()),
        ("answer", answer.is_some()),
        ("cgroup", cgroup.is_some()),
        ("vlan", vlan.is_some()),
        ("icmp-type", icmp_type.is_some()),
        ("source-mac", source_mac.is_some()),
        ("destination-mac", destination_mac.is_some()),
    ] {
        if given {
            reasons.push(format!("`{key}` is not exported"));
        }
    }
    if let Some((value, mask)) = mark {
        let alone = Match {
            mark: *mark,
            ..Match::default()
        };
        if *matches != alone || *value == 0 {
            reasons.push("`mark`: a fw filter has one mark above 0, and no other key".to_owned());
        }
        let handle = match *mask {
            u32::MAX => format!("{value:#x}"),
            mask => format!("{value:#x}/{mask:#x}"),
        };
        return match reasons.is_empty() {
            true => Ok(vec![all("all", format!("handle {handle} fw"))]),
            false => Err(reasons),
        };
    }
    for (key, ports) in [
        ("source-port", source_port),
        ("destination-port", destination_port),
    ] {
        if ports.is_some_and(|ports| ports.first != ports.last) {
            reasons.push(format!("`{key}`: u32 has no range"));
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let addresses = || source.iter().chain(destination);
    let family = |name: &'static str, ip: &str, traffic_class: &str| {
        let mut text = "u32".to_owned();
        let net = |key: &str, net: &IpNet| format!(" match {ip} {key} {net}");
        text.extend(source.iter().map(|source| net("src", source)));
        text.extend(
            destination
                .iter()
                .map(|destination| net("dst", destination)),
        );
        let number =
            |key: &str, value: u32, mask: u32| format!(" match {ip} {key} {value} {mask:#x}");
        text.extend(protocol.map(|protocol| number("protocol", protocol.into(), 0xff)));
        text.extend(source_port.map(|ports| number("sport", ports.first.into(), 0xffff)));
        text.extend(destination_port.map(|ports| number("dport", ports.first.into(), 0xffff)));
        text.extend(
            matches
                .ds_field()
                .map(|(value, mask)| number(traffic_class, value.into(), mask.into())),
        );
        let has_ports = source_port.is_some() || destination_port.is_some();
        Filter {
            protocol: name,
            text,
            notes: if has_ports { vec![PORTS] } else { vec![] },
        }
    };
    let mut filters = vec![];
    if addresses().all(|net| matches!(net, IpNet::V4(_))) {
        filters.push(family("ip", "ip", "tos"));
    }
    if addresses().all(|net| matches!(net, IpNet::V6(_))) {
        filters.push(family("ipv6", "ip6", "priority"));
    }
    match filters.is_empty() {
        true => Err(vec![
            "addresses of IPv4 and IPv6 in one rule match no packet".to_owned(),
        ]),
        false => Ok(filters),
    }
}
