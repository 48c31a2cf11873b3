// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules as the classifier runs them: keys under masks, one lookup per mask.

use std::collections::HashMap;

use ipnet::IpNet;

use super::{Match, Per, Ports, Rule, Target};
use crate::abi;
use crate::abi::DIRECTIONS;

/// Of a direction; each is 150 bytes of the kernel's memory.
const ENTRIES_MAX: usize = 1 << 18;

/// Why rules cannot be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum RulesError {
    #[error("with this rule the rules match more than {max} different combinations of fields", max = abi::EMUD_MASKS_MAX)]
    Masks { place: usize },
    #[error("with this rule they have more than {max} keys", max = ENTRIES_MAX)]
    Entries { place: usize },
    #[error("with this rule the rules match more than {max} control groups and names", max = abi::EMUD_CGROUPS_MAX)]
    Cgroups { place: usize },
    #[error("rule {} has a `host`, which only `emud attach` and `emud run --profile` resolve: give its address", place + 1)]
    Host { place: usize },
}

impl RulesError {
    /// Returns the index of the rule that is too much, from 0.
    pub const fn place(self) -> usize {
        match self {
            Self::Masks { place }
            | Self::Entries { place }
            | Self::Cgroups { place }
            | Self::Host { place } => place,
        }
    }
}

/// The rules of one direction.
pub struct Table {
    /// The combinations of fields that rules match, in the order in which they are tried.
    pub masks: Box<abi::emud_masks>,
    /// The number of its mask, and what it leaves of a packet.
    pub entries: Vec<(u32, abi::emud_key, abi::emud_rule)>,
}

/// The rules of both directions.
pub struct Compiled {
    /// Indexed by direction.
    pub tables: [Table; 2],
    /// The control groups that rules match; their positions are the bits of `emud_key.cgroups`.
    pub cgroups: Vec<String>,
    /// The names that rules match in answers; their positions are the same bits from the highest on.
    pub names: Vec<String>,
}

/// Returns the tables of a profile without rules.
pub fn none() -> Compiled {
    Compiled {
        tables: DIRECTIONS.map(|_| Table {
            masks: Box::default(),
            entries: Vec::new(),
        }),
        cgroups: Vec::new(),
        names: Vec::new(),
    }
}

/// Compiles rules; `number_of` says the numbers of named links, `service_of` those of classes.
///
/// # Errors
/// They match too many different combinations of fields.
pub fn compile(
    rules: &[Rule],
    number_of: impl Fn(&str) -> Option<u32>,
    service_of: impl Fn(&str) -> Option<u32>,
) -> Result<Compiled, RulesError> {
    let mut out = none();
    out.cgroups = distinct(rules, |m| m.cgroup.as_ref());
    out.names = distinct(rules, |m| m.answer.as_ref());
    if out.cgroups.len() + out.names.len() > abi::EMUD_CGROUPS_MAX as usize {
        let last = |rule: &Rule| {
            let m = &rule.matches;
            m.cgroup.is_some() && m.cgroup.as_ref() == out.cgroups.last()
                || m.answer.is_some() && m.answer.as_ref() == out.names.last()
        };
        let place = rules.iter().rposition(last).unwrap_or_default();
        return Err(RulesError::Cgroups { place });
    }
    for (direction, table) in DIRECTIONS.into_iter().zip(&mut out.tables) {
        let mut builder = Builder::default();
        for (place, rule) in rules.iter().enumerate() {
            if rule.matches.host.is_some() {
                return Err(RulesError::Host { place });
            }
            if rule.is_for(direction) {
                let value = value_of(place, rule, &number_of, &service_of);
                builder.add(table, value, rule, (&out.cgroups, &out.names))?;
            }
        }
    }
    Ok(out)
}

/// Returns the values that rules match in a field, each once.
pub fn distinct(rules: &[Rule], field: impl Fn(&Match) -> Option<&String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for value in rules.iter().filter_map(|rule| field(&rule.matches)) {
        if !out.contains(value) {
            out.push(value.clone());
        }
    }
    out
}

/// Returns how many keys the direction has that has most of them.
pub fn entries(compiled: &Compiled) -> usize {
    compiled
        .tables
        .iter()
        .map(|table| table.entries.len())
        .sum()
}

/// What is there already.
#[derive(Default)]
struct Builder {
    masks: HashMap<Words, u32>,
    keys: HashMap<(u32, Words), u32>,
}

/// A key, to compare it.
type Words = [u64; 8];

/// Returns the value of a rule in the table.
fn value_of(
    place: usize,
    rule: &Rule,
    number_of: &impl Fn(&str) -> Option<u32>,
    service_of: &impl Fn(&str) -> Option<u32>,
) -> abi::emud_rule {
    abi::emud_rule {
        place: place as u32,
        link: match &rule.target {
            Target::Own => 0,
            // The profile's reader has looked that there is such a link.
            Target::Named(name) => number_of(name).unwrap_or(0),
            Target::Untouched => abi::EMUD_LINK_NONE,
        },
        per: match rule.per {
            None => abi::EMUD_PER_LINK,
            Some(Per::Flow) => abi::EMUD_PER_FLOW,
            Some(Per::Source) => abi::EMUD_PER_SOURCE,
            Some(Per::Destination) => abi::EMUD_PER_DESTINATION,
            Some(Per::Pair) => abi::EMUD_PER_PAIR,
        },
        // And such a class.
        service: rule.class.as_deref().and_then(service_of).unwrap_or(0),
    }
}

impl Builder {
    fn add(
        &mut self,
        table: &mut Table,
        value: abi::emud_rule,
        rule: &Rule,
        (cgroups, names): (&[String], &[String]),
    ) -> Result<(), RulesError> {
        let place = value.place as usize;
        let position = |all: &[String], one: &Option<String>| {
            all.iter().position(|known| Some(known) == one.as_ref())
        };
        let group = position(cgroups, &rule.matches.cgroup).map_or(0, |n| 1 << n);
        let name = position(names, &rule.matches.answer);
        let name = name.map_or(0, |n| 1 << (abi::EMUD_CGROUPS_MAX - 1) >> n);
        let group: u16 = group | name;
        for (mut bits, mut key) in expanded(&rule.matches) {
            (bits.cgroups, key.cgroups) = (group, group);
            let mask = self.mask(table, place, &bits)?;
            // The first rule wins, so a later one of the same key is never met.
            if self.keys.contains_key(&(mask, words(&key))) {
                continue;
            }
            if table.entries.len() == ENTRIES_MAX {
                return Err(RulesError::Entries { place });
            }
            self.keys.insert((mask, words(&key)), value.place);
            table.entries.push((mask, key, value));
        }
        Ok(())
    }

    /// Returns the number of a mask.
    fn mask(
        &mut self,
        table: &mut Table,
        place: usize,
        bits: &abi::emud_key,
    ) -> Result<u32, RulesError> {
        if let Some(number) = self.masks.get(&words(bits)) {
            return Ok(*number);
        }
        let number = self.masks.len();
        let slot = table.masks.mask.get_mut(number);
        *slot.ok_or(RulesError::Masks { place })? = abi::emud_mask {
            bits: *bits,
            first: place as u64,
        };
        self.masks.insert(words(bits), number as u32);
        table.masks.count = number as u32 + 1;
        Ok(number as u32)
    }
}

/// Returns the masks and keys that are a rule together: a range of ports is several.
fn expanded(m: &Match) -> Vec<(abi::emud_key, abi::emud_key)> {
    let (bits, key) = without_ports(m);
    let mut out = Vec::new();
    for (source_bits, source) in prefixes(m.source_port) {
        for (destination_bits, destination) in prefixes(m.destination_port) {
            let (mut bits, mut key) = (bits, key);
            (bits.source_port, key.source_port) = (source_bits.to_be(), source.to_be());
            (bits.destination_port, key.destination_port) =
                (destination_bits.to_be(), destination.to_be());
            out.push((bits, key));
        }
    }
    out
}

fn without_ports(m: &Match) -> (abi::emud_key, abi::emud_key) {
    let (mut bits, mut key) = (abi::emud_key::default(), abi::emud_key::default());
    let mut has = |which: u32, there: bool| {
        if there {
            bits.has |= which as u8;
            key.has |= which as u8;
        }
    };
    let nets = [m.source, m.destination];
    let ip6 = nets.iter().flatten().any(|net| matches!(net, IpNet::V6(_)));
    let addressed = nets.iter().any(Option::is_some);
    let of_ip = addressed || m.protocol.is_some() || m.ds_field().is_some();
    has(abi::EMUD_HAS_IP, of_ip);
    has(abi::EMUD_HAS_IP6, ip6);
    has(
        abi::EMUD_HAS_PORTS,
        m.source_port.is_some() || m.destination_port.is_some(),
    );
    has(abi::EMUD_HAS_ICMP, m.icmp_type.is_some());
    has(abi::EMUD_HAS_VLAN, m.vlan.is_some());
    has(
        abi::EMUD_HAS_MAC,
        m.source_mac.is_some() || m.destination_mac.is_some(),
    );
    if addressed {
        bits.has |= abi::EMUD_HAS_IP6 as u8;
    }
    (bits.source, key.source) = address(m.source);
    (bits.destination, key.destination) = address(m.destination);
    let byte = |value: Option<u8>| value.map_or((0, 0), |value| (u8::MAX, value));
    (bits.protocol, key.protocol) = byte(m.protocol);
    (bits.icmp_type, key.icmp_type) = byte(m.icmp_type);
    let mac = |value: Option<[u8; 6]>| value.map_or(([0; 6], [0; 6]), |mac| ([u8::MAX; 6], mac));
    (bits.source_mac, key.source_mac) = mac(m.source_mac);
    (bits.destination_mac, key.destination_mac) = mac(m.destination_mac);
    if let Some((value, mask)) = m.ds_field() {
        (bits.tos, key.tos) = (mask, value);
    }
    if let Some((value, mask)) = m.mark {
        (bits.mark, key.mark) = (mask, value);
    }
    if let Some(vlan) = m.vlan {
        (bits.vlan, key.vlan) = (u16::MAX, vlan);
    }
    (bits, key)
}

/// Returns mask and bits of a prefix in the byte order of a packet.
fn address(net: Option<IpNet>) -> ([u64; 2], [u64; 2]) {
    let first = |bytes: [u8; 4]| {
        let mut all = [0; 16];
        all[..4].copy_from_slice(&bytes);
        abi::address_words(all)
    };
    match net {
        None => ([0; 2], [0; 2]),
        Some(IpNet::V4(net)) => (first(net.netmask().octets()), first(net.network().octets())),
        Some(IpNet::V6(net)) => (
            abi::address_words(net.netmask().octets()),
            abi::address_words(net.network().octets()),
        ),
    }
}

/// Returns a range as prefixes: mask and bits of each; without a range, one that matches everything.
pub(crate) fn prefixes(ports: Option<Ports>) -> Vec<(u16, u16)> {
    let Some(ports) = ports else {
        return vec![(0, 0)];
    };
    let mut out = Vec::new();
    let (mut first, last) = (u32::from(ports.first), u32::from(ports.last));
    while first <= last {
        // The largest block that begins here and does not end after the range.
        let aligned = first.trailing_zeros().min(16);
        let fits = (last - first + 1).ilog2();
        let size = aligned.min(fits);
        let mask = (u32::from(u16::MAX) << size) & u32::from(u16::MAX);
        out.push((mask as u16, first as u16));
        first += 1 << size;
    }
    out
}

fn words(key: &abi::emud_key) -> Words {
    let mac = |m: [u8; 6]| m.iter().fold(0, |all, b| all << 8 | u64::from(*b));
    let small = [key.has, key.protocol, key.tos, key.icmp_type];
    [
        key.source[0],
        key.source[1],
        key.destination[0],
        key.destination[1],
        u64::from(key.source_port) << 16 | u64::from(key.destination_port),
        u64::from(key.mark) << 32 | u64::from(u32::from_ne_bytes(small)),
        mac(key.source_mac) << 16 | u64::from(key.vlan),
        mac(key.destination_mac) << 16 | u64::from(key.cgroups),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_a_range_are_that_range() {
        for (first, last) in [
            (0, 65535),
            (1, 65534),
            (80, 80),
            (1000, 2000),
            (0, 0),
            (65535, 65535),
            (1024, 2047),
        ] {
            let parts = prefixes(Some(Ports { first, last }));
            for port in 0..=65535u16 {
                let hits = parts.iter().filter(|(mask, bits)| port & mask == *bits);
                let want = usize::from((first..=last).contains(&port));
                assert_eq!(hits.count(), want, "{first}-{last}: {port}");
            }
        }
        assert_eq!(
            prefixes(Some(Ports {
                first: 1024,
                last: 2047
            }))
            .len(),
            1
        );
    }
}
