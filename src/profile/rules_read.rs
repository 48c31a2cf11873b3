// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules from the text of a profile.

use std::net::IpAddr;

use ipnet::IpNet;

use super::rule_keys::{RulesError, compile};
use super::rule_kinds::LinkName;
use super::rules::{MatchDraft, RuleDraft};
use super::{Bottleneck, Match, NamedLink, Profile, Rule, Target, hosts, keys, links};
use crate::text::{At, Draft, Entry, Kind as _, Located, Reader, Value, is_none};

/// The longest queue of an instance in packets.
const INSTANCE_PACKETS: u32 = 1024;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
/// TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Reads all rules: an array of tables; `none` takes them away.
pub(super) fn read(reader: &mut Reader, value: &Located<Value>) -> Vec<RuleDraft> {
    if is_none(value) {
        return Vec::new();
    }
    let help = "write a header [[rule]] for each rule, its keys below";
    let Value::List(rules) = &value.value else {
        reader.wrong_kind(value, "rule", help);
        return Vec::new();
    };
    let mut drafts = Vec::new();
    for rule in rules {
        match &rule.value {
            Value::Table(entries) => drafts.push(one(reader, &rule.at, entries)),
            other => {
                let title = format!("a rule cannot be {}", other.kind());
                reader.mistake(&rule.at, title, help);
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
                _ => {
                    let help = "write match = { destination = \"10.0.0.0/8\", protocol = \"tcp\" }";
                    reader.wrong_kind(value, "match", help);
                }
            },
            // "none" is a target here.
            "link" => reader.put(&mut draft.target, value, |v| LinkName::read(v, "link")),
            _ if draft.key(reader, entry) => {}
            _ => reader.mistakes.push(keys::unknown(&entry.key, &keys::RULE)),
        }
    }
    if draft.target.is_none() && !entries.iter().any(|e| e.key.value == "class") {
        let help = "name the link of its packets: link = \"NAME\" of a [links.NAME], \"link\" for the \
                    profile's own, \"none\" to let them pass untouched";
        reader.mistake(at, "a rule without `link` or `class`", help);
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
        reader.mistake(&second.key.at, title, help);
    }
    if let (Some(IpNet::V4(_)), Some(IpNet::V6(_))) | (Some(IpNet::V6(_)), Some(IpNet::V4(_))) =
        (m.source, m.destination)
        && let Some(second) = find("destination")
    {
        let title = "an IPv4 and an IPv6 prefix in one rule";
        let help = "no packet has both: make it two rules";
        reader.mistake(&second.value.at, title, help);
    }
    if let (Some(host), Some(_)) = (find("host"), find("source").or(find("destination"))) {
        let title = "`host` beside `source` or `destination`";
        let help = "keep one: `host` is the address of the other host, in both directions";
        reader.mistake(&host.key.at, title, help);
    }
    if let (Some(answer), Some(_)) = (
        find("answer"),
        find("source").or(find("destination")).or(find("host")),
    ) {
        let title = "`answer` beside `source`, `destination` or `host`";
        let help = "keep one: `host` includes what answers give for it";
        reader.mistake(&answer.key.at, title, help);
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
            reader.mistake(&entry.key.at, title, help);
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

impl Reader {
    /// Returns the finished rules; meaningless if that adds a mistake.
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
        let address = IpAddr::from([0; 4]);
        let (places, resolved): (Vec<_>, Vec<_>) = (rules.iter().enumerate())
            .flat_map(|(place, rule)| {
                let all = hosts::resolved(rule, &[address]);
                all.into_iter().map(move |one| (place, one))
            })
            .unzip();
        if let Err(error) = compile(&resolved, |_| Some(0), |_| Some(0)) {
            let place = places.get(error.place()).copied().unwrap_or_default();
            let at = drafts.get(place).and_then(|draft| draft.at.as_ref());
            let help = match error {
                RulesError::Masks { .. } => {
                    "give prefixes of equal length, and port ranges that begin and end at \
                     multiples of a power of two: those of equal size share a mask"
                }
                RulesError::Cgroups { .. } => {
                    "match a common parent of several groups; a `host` counts as one name"
                }
                RulesError::Host { .. } => "give its address",
                RulesError::Entries { .. } => "take wider prefixes or port ranges",
            };
            if let Some(at) = at {
                self.mistake(at, error.to_string(), help);
            }
        }
        rules
    }

    /// Checks that the queues of instances have room for the packets of their links' queues.
    pub(super) fn instances_have_room(&mut self, drafts: &[RuleDraft], profile: &Profile) {
        for (draft, rule) in drafts.iter().zip(&profile.rules) {
            let Some(per) = &draft.per else { continue };
            let packets = profile.queue_packets_of_rule(rule);
            if packets <= INSTANCE_PACKETS {
                continue;
            }
            let title = format!("`per` for a link with a queue of {packets} packets");
            let help = format!(
                "each instance remembers its packets, at most {INSTANCE_PACKETS}: limit the link's \
                 queue to that, or in bytes or time, such as queue = \"1MB\" or \"200ms\""
            );
            self.mistake(&per.at, title, help);
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
            self.mistake(&per.at, title, help);
        }
        if let (Some(class), Target::Untouched) = (&draft.class, &rule.target) {
            let help = "leave it out: packets that pass untouched wait nowhere";
            let title = "`class` where `link` is \"none\"";
            self.mistake(&class.at, title, help);
        }
        rule
    }
}
