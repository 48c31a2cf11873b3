// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules from the text of a profile.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::kinds::quoted;
use super::rule_keys::{RulesError, compile};
use super::rules::{MatchDraft, NONE, OWN, PROTOCOLS, RuleDraft, mac_name, protocol_name};
use super::{Bottleneck, Match, NamedLink, Ports, Profile, Rule, Target, keys, links};
use crate::abi;
use crate::text::{
    At, Draft, Entry, Kind, Located, Mistake, Reader, Value, closest, is_none, kinds,
};

/// The longest queue of an instance in packets.
const INSTANCE_PACKETS: u32 = 1024;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
/// TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

kinds! {
    /// The name of a link.
    LinkName: Target = target, |target| quoted(match target {
        Target::Own => OWN,
        Target::Named(name) => name,
        Target::Untouched => NONE,
    });
    Towards: u32 = direction, |direction| quoted(abi::direction_name(*direction));
    Net: IpNet = net, |net| quoted(net);
    Host: String = host, |host| quoted(host);
    Protocol: u8 = protocol, |number| quoted(protocol_name(*number));
    PortRange: Ports = ports, |ports| quoted(ports);
    Mac: [u8; 6] = mac, |mac| quoted(mac_name(mac));
    Mark: (u32, u32) = mark, |(bits, mask)| match *mask {
        u32::MAX => format!("\"{bits:#x}\""),
        mask => format!("\"{bits:#x}/{mask:#x}\""),
    };
    Dscp: u8 = dscp, u8::to_string;
    Byte: u8 = |value, key| number(value, key, u8::MAX), u8::to_string;
    Vlan: u16 = |value, key| number(value, key, 4095), u16::to_string;
}

/// Reads all rules: an array of tables; `none` takes them away.
pub(super) fn read(reader: &mut Reader, value: &Located<Value>) -> Vec<RuleDraft> {
    if is_none(value) {
        return Vec::new();
    }
    let help = "write a header [[rule]] for each rule, its keys below";
    let Value::List(rules) = &value.value else {
        let title = format!("`rule` cannot be {}", value.value.kind());
        reader.mistakes.push(Mistake::new(&value.at, title, help));
        return Vec::new();
    };
    let mut drafts = Vec::new();
    for rule in rules {
        match &rule.value {
            Value::Table(entries) => drafts.push(one(reader, &rule.at, entries)),
            other => {
                let title = format!("a rule cannot be {}", other.kind());
                reader.mistakes.push(Mistake::new(&rule.at, title, help));
            }
        }
    }
    drafts
}

fn one(reader: &mut Reader, at: &At, entries: &[Entry]) -> RuleDraft {
    let mut draft = RuleDraft {
        at: Some(at.clone()),
        ..RuleDraft::default()
    };
    for entry in entries {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "match" => match &value.value {
                Value::Table(parts) => draft.matches = matches(reader, parts),
                other => {
                    let title = format!("`match` cannot be {}", other.kind());
                    let help = "write match = { destination = \"10.0.0.0/8\", protocol = \"tcp\" }";
                    reader.mistakes.push(Mistake::new(&value.at, title, help));
                }
            },
            // "none" is a target here.
            "link" => reader.put(&mut draft.target, value, |v| LinkName::read(v, "link")),
            _ if draft.key(reader, entry) => {}
            _ => reader.mistakes.push(keys::unknown(&entry.key, &keys::RULE)),
        }
    }
    if draft.target.is_none() && !entries.iter().any(|e| e.key.value == "class") {
        let help = "say where its packets go: link = \"NAME\" of a [links.NAME], \"link\" for the \
                    profile's own, \"none\" to let them pass untouched";
        reader
            .mistakes
            .push(Mistake::new(at, "a rule without `link` or `class`", help));
    }
    draft
}

fn matches(reader: &mut Reader, entries: &[Entry]) -> Match {
    let mut draft = MatchDraft::default();
    let find = |key: &str| entries.iter().find(|e| e.key.value == key);
    for entry in entries {
        if !draft.key(reader, entry) {
            let unknown = keys::unknown(&entry.key, &keys::MATCH);
            reader.mistakes.push(unknown);
        }
    }
    let m = draft.values();
    if let (Some(_), Some(second)) = (find("dscp"), find("tos")) {
        let help = "keep one: the DSCP is the upper six bits of the ToS";
        let title = "both `dscp` and `tos` are given";
        reader
            .mistakes
            .push(Mistake::new(&second.key.at, title, help));
    }
    if let (Some(IpNet::V4(_)), Some(IpNet::V6(_))) | (Some(IpNet::V6(_)), Some(IpNet::V4(_))) =
        (m.source, m.destination)
        && let Some(second) = find("destination")
    {
        let title = "an IPv4 and an IPv6 prefix in one rule";
        let help = "no packet has both: make it two rules";
        reader
            .mistakes
            .push(Mistake::new(&second.value.at, title, help));
    }
    if let (Some(host), Some(_)) = (find("host"), find("source").or(find("destination"))) {
        let title = "`host` beside `source` or `destination`";
        let help = "keep one: `host` is the address of the other host, in both directions";
        reader
            .mistakes
            .push(Mistake::new(&host.key.at, title, help));
    }
    never(reader, &m, &find);
    m
}

/// Parts that the protocol given has not.
fn never<'a>(reader: &mut Reader, m: &Match, find: &impl Fn(&str) -> Option<&'a Entry>) {
    let Some(protocol) = m.protocol else { return };
    let mut without = |key: &str, help: &str| {
        if let Some(entry) = find(key) {
            let title = format!("this protocol has no `{key}`");
            reader
                .mistakes
                .push(Mistake::new(&entry.key.at, title, help));
        }
    };
    if !WITH_PORTS.contains(&protocol) {
        let help = "ports are those of tcp, udp, dccp, sctp and udplite";
        without("source-port", help);
        without("destination-port", help);
    }
    if protocol != ICMP && protocol != ICMP6 {
        without("icmp-type", "write protocol = \"icmp\" or \"icmpv6\"");
    }
}

fn text(value: &Located<Value>, key: &str, example: &str) -> Result<String, Mistake> {
    match &value.value {
        Value::Text(text) | Value::Number(text) => Ok(text.trim().to_owned()),
        other => {
            let title = format!("`{key}` cannot be {}", other.kind());
            let help = format!("write {key} = {example}");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

fn target(value: &Located<Value>, key: &str) -> Result<Target, Mistake> {
    let name = text(value, key, "\"lte\"")?;
    Ok(match name.as_str() {
        OWN => Target::Own,
        NONE => Target::Untouched,
        _ => Target::Named(name),
    })
}

fn net(value: &Located<Value>, key: &str) -> Result<IpNet, Mistake> {
    let text = text(value, key, "\"10.0.0.0/8\"")?;
    let net = IpNet::from_str(&text).or_else(|_| IpAddr::from_str(&text).map(IpNet::from));
    let Ok(net) = net else {
        let title = format!("`{text}` is not an address or prefix");
        let help = format!("write {key} = \"10.0.0.0/8\", \"2001:db8::/32\" or one address");
        return Err(Mistake::new(&value.at, title, help));
    };
    if net != net.trunc() {
        let title = format!("`{text}` has bits behind its prefix");
        let help = format!(
            "write \"{}\", or \"{}\" for that one address",
            net.trunc(),
            net.addr()
        );
        return Err(Mistake::new(&value.at, title, help));
    }
    Ok(net)
}

fn host(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let name = text(value, key, "\"api.example.org\"")?;
    let valid = |c: char| !c.is_whitespace() && !c.is_control() && c != '/';
    if name.is_empty() || !name.chars().all(valid) {
        let title = format!("`{name}` is not the name of a host");
        let help = "write host = \"api.example.org\"";
        return Err(Mistake::new(&value.at, title, help));
    }
    Ok(name)
}

/// A number from 0 to `most`, decimal or with 0x.
fn number<T: TryFrom<u32> + std::fmt::Display + Copy + Into<u32>>(
    value: &Located<Value>,
    key: &str,
    most: T,
) -> Result<T, Mistake> {
    let text = text(value, key, "5")?;
    let read = integer(&text).filter(|n| *n <= most.into());
    read.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
        let title = format!("`{key}` cannot be `{text}`");
        let help = format!("it is a whole number from 0 to {most}");
        Mistake::new(&value.at, title, help)
    })
}

fn integer(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

fn protocol(value: &Located<Value>, key: &str) -> Result<u8, Mistake> {
    let text = text(value, key, "\"tcp\"")?;
    let lower = text.to_lowercase();
    if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == lower) {
        return Ok(*number);
    }
    if let Some(number) = integer(&text).and_then(|n| u8::try_from(n).ok()) {
        return Ok(number);
    }
    let names = PROTOCOLS.iter().map(|(name, _)| *name);
    let help = match closest(&lower, names.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let names: Vec<_> = names.collect();
            format!("write its number, 0 to 255, or one of {}", names.join(", "))
        }
    };
    let title = format!("there is no protocol `{text}`");
    Err(Mistake::new(&value.at, title, help))
}

fn ports(value: &Located<Value>, key: &str) -> Result<Ports, Mistake> {
    let text = text(value, key, "\"1000-2000\"")?;
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let port = |text: &str| text.trim().parse::<u16>().ok();
    let help = format!("write {key} = 80 or \"1000-2000\", from 0 to 65535");
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Ports { first, last }),
        (Some(first), Some(last)) => {
            let title = format!("the ports `{text}` end before they begin");
            let help = format!("did you mean \"{last}-{first}\"?");
            Err(Mistake::new(&value.at, title, help))
        }
        _ => {
            let title = format!("`{text}` is not a port or a range of ports");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

/// RFC 2474, 2597, 3246, 5865, 8622.
fn dscp(value: &Located<Value>, key: &str) -> Result<u8, Mistake> {
    let text = text(value, key, "\"ef\"")?;
    let name = text.to_lowercase();
    let digit = |at: usize| name.as_bytes().get(at).map(|d| d.wrapping_sub(b'0'));
    let by_name = match name.as_str() {
        "be" | "df" | "default" => Some(0),
        "le" => Some(1),
        "ef" => Some(46),
        "va" | "voice-admit" => Some(44),
        _ if name.starts_with("cs") && name.len() == 3 => {
            digit(2).filter(|n| *n <= 7).map(|n| 8 * n)
        }
        _ if name.starts_with("af") && name.len() == 4 => match (digit(2), digit(3)) {
            (Some(class @ 1..=4), Some(drop @ 1..=3)) => Some(8 * class + 2 * drop),
            _ => None,
        },
        _ => integer(&name).and_then(|n| u8::try_from(n).ok()),
    };
    by_name.filter(|n| *n < 64).ok_or_else(|| {
        let help = "write 0 to 63, or ef, af11 .. af43, cs0 .. cs7, va, le, be";
        Mistake::new(&value.at, format!("there is no DSCP `{text}`"), help)
    })
}

fn mark(value: &Located<Value>, key: &str) -> Result<(u32, u32), Mistake> {
    let text = text(value, key, "\"0x1\"")?;
    let (bits, mask) = match text.split_once('/') {
        Some((bits, mask)) => (integer(bits.trim()), integer(mask.trim())),
        None => (integer(&text), Some(u32::MAX)),
    };
    match (bits, mask) {
        (Some(bits), Some(mask)) if bits & !mask == 0 => Ok((bits, mask)),
        (Some(bits), Some(mask)) => {
            let title = format!("the mark `{text}` has bits that its mask has not");
            let help = format!("did you mean \"{:#x}/{mask:#x}\"?", bits & mask);
            Err(Mistake::new(&value.at, title, help))
        }
        _ => {
            let help = "write mark = \"0x1\", or \"0x1/0xff\" where only some bits count";
            Err(Mistake::new(
                &value.at,
                format!("`{text}` is not a mark"),
                help,
            ))
        }
    }
}

fn mac(value: &Located<Value>, key: &str) -> Result<[u8; 6], Mistake> {
    let text = text(value, key, "\"02:00:00:00:00:01\"")?;
    let byte = |part: &str| match part.len() {
        1 | 2 => u8::from_str_radix(part, 16).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    bytes.and_then(|b| b.try_into().ok()).ok_or_else(|| {
        let help = format!("write {key} = \"02:00:00:00:00:01\"");
        let title = format!("`{text}` is not an Ethernet address");
        Mistake::new(&value.at, title, help)
    })
}

fn direction(value: &Located<Value>, _: &str) -> Result<u32, Mistake> {
    match &value.value {
        Value::Text(text) if text == "up" => Ok(abi::EMUD_UP),
        Value::Text(text) if text == "down" => Ok(abi::EMUD_DOWN),
        _ => {
            let help = "write direction = \"up\" or \"down\"; without it a rule is for both";
            Err(Mistake::new(&value.at, "this is not a direction", help))
        }
    }
}

impl Reader {
    /// The finished rules; meaningless if that adds a mistake.
    pub(super) fn finish_rules(
        &mut self,
        drafts: &[RuleDraft],
        named: &[NamedLink],
        bottlenecks: &[Bottleneck],
    ) -> Vec<Rule> {
        let before = self.mistakes.len();
        for class in drafts.iter().filter_map(|draft| draft.class.as_ref()) {
            self.is_service(class, bottlenecks);
        }
        let rules: Vec<Rule> = drafts.iter().map(|d| self.finish_rule(d, named)).collect();
        if self.mistakes.len() > before {
            return rules;
        }
        // With as many masks as the addresses of a host will have.
        let mut resolved = rules.clone();
        for rule in &mut resolved {
            let address = IpNet::from(IpAddr::from([0; 4]));
            let host = rule.matches.host.take();
            rule.matches.destination = host.map(|_| address).or(rule.matches.destination);
        }
        if let Err(error) = compile(&resolved, |_| Some(0), |_| Some(0)) {
            let at = drafts
                .get(error.place())
                .and_then(|draft| draft.at.as_ref());
            let help = match error {
                RulesError::Masks { .. } => {
                    "give prefixes of equal length, and port ranges that begin and end at \
                     multiples of a power of two: those of equal size share a mask"
                }
                RulesError::Host { .. } => "give its address",
                RulesError::Entries { .. } => "take wider prefixes or port ranges",
            };
            if let Some(at) = at {
                self.mistakes
                    .push(Mistake::new(at, error.to_string(), help));
            }
        }
        rules
    }

    /// Whether the queues of instances have room for what their links say.
    pub(super) fn instances_have_room(&mut self, drafts: &[RuleDraft], profile: &Profile) {
        for (draft, rule) in drafts.iter().zip(&profile.rules) {
            let Some(per) = &draft.per else { continue };
            let longest = (profile.links_of_rule(rule).into_iter())
                .map(super::Link::queue_packets)
                .max();
            let Some(packets) = longest.filter(|packets| *packets > INSTANCE_PACKETS) else {
                continue;
            };
            let title = format!("`per` for a link with a queue of {packets} packets");
            let help = format!(
                "each instance remembers its packets, at most {INSTANCE_PACKETS}: limit the link's \
                 queue to that, or in bytes or time, such as queue = \"1MB\" or \"200ms\""
            );
            self.mistakes.push(Mistake::new(&per.at, title, help));
        }
    }

    fn finish_rule(&mut self, draft: &RuleDraft, named: &[NamedLink]) -> Rule {
        let rule = Rule {
            matches: draft.matches.clone(),
            ..draft.values()
        };
        if let (Some(link), Target::Named(name)) = (&draft.target, &rule.target)
            && !named.iter().any(|known| known.name == *name)
        {
            let (value, at) = (name.clone(), link.at.clone());
            let names = named.iter().map(|n| n.name.as_str());
            self.mistakes
                .push(links::unknown(&Located { value, at }, names));
        }
        if let (Some(per), Target::Untouched) = (&draft.per, &rule.target) {
            let help = "leave it out: packets that pass untouched meet no link";
            let title = "`per` where `link` is \"none\"";
            self.mistakes.push(Mistake::new(&per.at, title, help));
        }
        if let (Some(class), Target::Untouched) = (&draft.class, &rule.target) {
            let help = "leave it out: packets that pass untouched wait nowhere";
            let title = "`class` where `link` is \"none\"";
            self.mistakes.push(Mistake::new(&class.at, title, help));
        }
        rule
    }
}
