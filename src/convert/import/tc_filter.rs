// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts tc's filters that send packets to a class to the matches of a profile's rules.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::shell::{Word, Words};
use super::tc_handle::{canonical, major};
use super::tc_made::begins;
use super::tc_units::whole;
use super::writer::{quoted, string};
use crate::text::{At, Mistake, clipped};

/// Bits of the ToS that are the DSCP.
const DSCP: i64 = 0xfc;
/// The first priority that the kernel chooses itself, and the lowest after which it counts down (tcf_auto_prio()).
const CHOSEN: i64 = 0xc000;
const CHOSEN_MIN: i64 = 0x8000;

const HELP: &str = "only filters by address, port, protocol, ToS and mark are supported that select a class (u32, flower, \
    fw, matchall); write the [[rule]] yourself (docs/many-links.md), and leave this filter out";

const IP: u8 = 1;
const IP6: u8 = 2;

/// A filter that selects a class.
#[derive(Default, Clone)]
pub(crate) struct Filter<'a> {
    /// Its verb.
    pub at: At,
    pub device: Option<&'a str>,
    /// `None`: the root.
    pub parent: Option<String>,
    /// Lower priorities are checked first; 0: the kernel chooses.
    pub priority: i64,
    pub is_flower: bool,
    /// [`IP`], [`IP6`] or both, of `protocol`.
    pub families: u8,
    /// Whether it is prio's choice by ToS, not a filter of the text.
    pub is_tos: bool,
    pub class: String,
    /// Keys and values of `match`; empty: every packet.
    pub matches: Vec<(&'static str, String)>,
}

/// Sorts filters as the kernel checks them, and merges a filter for IPv4 with an equal one for IPv6.
pub(super) fn in_order(mut all: Vec<Filter<'_>>) -> Vec<Filter<'_>> {
    let mut lowest = HashMap::new();
    for filter in &mut all {
        let chain = (filter.device, filter.parent.clone());
        if filter.priority == 0 {
            // Below the one before: without a priority the last filter is checked first.
            filter.priority = lowest.get(&chain).map_or(CHOSEN, |lowest| lowest - 1);
        }
        if filter.priority >= CHOSEN_MIN {
            let lowest = lowest.entry(chain).or_insert(filter.priority);
            *lowest = filter.priority.min(*lowest);
        }
    }
    // fl_classify() compares all flowers with one mask before those with the next one, in the order of the first of each.
    let mut masks = HashMap::new();
    let mut places: Vec<_> = (0..).zip(all).collect();
    for (place, filter) in places.iter_mut().filter(|(_, f)| f.is_flower) {
        let mask = (
            filter.device,
            filter.parent.clone(),
            filter.priority,
            filter.mask(),
        );
        *place = *masks.entry(mask).or_insert(*place);
    }
    places.sort_by_key(|(place, filter)| (filter.priority, *place));
    let mut merged: Vec<Filter> = Vec::with_capacity(places.len());
    for (_, filter) in places {
        let same = |f: &&mut Filter| {
            (f.device, &f.class, &f.matches) == (filter.device, &filter.class, &filter.matches)
        };
        match merged.last_mut().filter(same) {
            Some(before) => before.families |= filter.families,
            None => merged.push(filter),
        }
    }
    merged.iter_mut().for_each(Filter::only_its_family);
    merged
}

impl Filter<'_> {
    /// Returns the bits that it compares.
    fn mask(&self) -> Vec<(&'static str, Option<String>)> {
        let bits = |value: &String| Some(value.split_once('/')?.1.to_owned());
        let mut mask: Vec<_> = (self.matches.iter())
            .map(|(key, value)| (*key, bits(value)))
            .collect();
        mask.sort_unstable();
        mask
    }

    /// Limits a filter to its address family: by its address or, without one, by the prefix of all addresses.
    fn only_its_family(&mut self) {
        let is_address = |key: &str| matches!(key, "source" | "destination");
        let all = match self.families {
            IP => "0.0.0.0/0",
            IP6 => "::/0",
            _ => return,
        };
        if !self.matches.iter().any(|(key, _)| is_address(key)) {
            self.matches.insert(0, ("source", quoted(all)));
        }
    }
}

/// Reads `filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1/32 flowid 1:3`;
/// Returns `None` if it creates no filter, or one that selects no class.
pub(crate) fn filter<'a>(words: &mut Words<'a>) -> Result<Option<Filter<'a>>, Mistake> {
    let Some(verb) = words.next() else {
        return Ok(None);
    };
    let all: Vec<_> = words.words().collect();
    let behind = |names: &[&str]| {
        let name = all.iter().position(|word| names.contains(word))?;
        all.get(name + 1).copied()
    };
    let parent = behind(&["parent"]).map(canonical);
    // What arrives meets no class.
    let mut place = all.iter().take_while(|word| **word != "action");
    if place.any(|word| *word == "ingress") || parent.as_deref().map(major) == Some("ffff") {
        return Ok(None);
    }
    let is = |verbs: &[&str]| verbs.iter().any(|known| begins(verb.value, known));
    let makes = is(&["add", "change", "replace"]);
    let Some(class) = behind(&["flowid", "classid", "*flowid"]) else {
        if !makes {
            return Ok(None);
        }
        // It drops or redirects packets (`action`), or what selects the class is not in the text (cgroup, fw).
        let title = "a filter without `flowid` is not imported";
        return Err(Mistake::new(&verb.at, title, HELP));
    };
    if !makes {
        return match is(&["delete", "show", "list", "get"]) {
            true => Ok(None),
            false => Err(Mistake::new(
                &verb.at,
                "a filter as tc prints it is not imported",
                "write the command that made it (tc filter add ...), or leave it out and write the [[rule]] \
                 yourself (docs/many-links.md)",
            )),
        };
    }
    let mut filter = Filter {
        at: verb.at.clone(),
        parent,
        families: IP | IP6,
        class: canonical(class),
        ..Filter::default()
    };
    let mut handle = None;
    while let Some(word) = words.next() {
        let mut value = |example: &str| words.argument(word.value, example);
        match word.value {
            "dev" => filter.device = Some(value("eth0")?.value),
            "prio" | "pref" | "priority" => filter.priority = whole(&value("1")?, 0..=65535)?,
            "handle" => handle = Some(value("1")?),
            "protocol" => {
                let protocol = value("ip")?;
                filter.families = match protocol.value {
                    "ip" | "ipv4" => IP,
                    "ipv6" => IP6,
                    "all" => IP | IP6,
                    _ => return Err(cannot(&protocol)),
                };
            }
            "parent" | "flowid" | "classid" => {
                value("1:")?;
            }
            "flower" => filter.is_flower = true,
            "u32" | "matchall" | "root" | "skip_hw" | "skip_sw" => {}
            "fw" => match handle.take() {
                Some(handle) => filter.matches.push(("mark", mark(&handle)?)),
                None => return Err(cannot(&word)),
            },
            "match" => u32_match(words, &mut filter.matches)?,
            "ip_tos" => {
                let value = value("0x10/0xfc")?;
                filter.matches.push(flower_tos(&value)?);
            }
            key => {
                let key = match key {
                    "src_ip" => "source",
                    "dst_ip" => "destination",
                    "ip_proto" => "protocol",
                    "src_port" => "source-port",
                    "dst_port" => "destination-port",
                    _ => return Err(cannot(&word)),
                };
                let value = value("10.0.0.1")?;
                filter.matches.push((key, prefix(&value, key)?));
            }
        }
    }
    Ok(Some(filter))
}

/// Returns whether 16 bits are a prefix: no 1 follows a 0.
fn is_prefix(mask: i64) -> bool {
    let others = 0xffff ^ mask;
    others & (others + 1) == 0
}

/// Returns the match of a ToS under a mask.
pub(super) fn tos(value: i64, mask: i64) -> Option<(&'static str, String)> {
    match (value, mask) {
        (..=0xff, DSCP) => Some(("dscp", (value >> 2).to_string())),
        (_, 0xff) => Some(("tos", value.to_string())),
        (..=0xff, 1..0xff) => Some(("tos", format!("\"{:#x}/{mask:#x}\"", value & mask))),
        _ => None,
    }
}

/// Reads `0x10` or `0x10/0xfc`.
fn flower_tos(word: &Word) -> Result<(&'static str, String), Mistake> {
    let number = |value| {
        let at = word.at.clone();
        whole(&Word { value, at }, 0..=0xff)
    };
    let (value, mask) = word.value.split_once('/').unwrap_or((word.value, "0xff"));
    tos(number(value)?, number(mask)?).ok_or_else(|| cannot(word))
}

/// Reads `6`, `0x6/0xff`, and `010`, which is 8.
fn mark(word: &Word) -> Result<String, Mistake> {
    let number = |value| {
        let at = word.at.clone();
        whole(&Word { value, at }, 0..=u32::MAX.into())
    };
    Ok(match word.value.split_once('/') {
        Some((mark, mask)) => quoted(format!("{:#x}/{:#x}", number(mark)?, number(mask)?)),
        None => quoted(format!("{:#x}", number(word.value)?)),
    })
}

fn cannot(word: &Word) -> Mistake {
    let title = format!("a filter's `{}` is not imported", clipped(word.value));
    Mistake::new(&word.at, title, HELP)
}

/// Removes the bits after the prefix of an address, as tc does; returns other values unchanged.
fn prefix(word: &Word, key: &str) -> Result<String, Mistake> {
    if !matches!(key, "source" | "destination") {
        return Ok(string(word.value));
    }
    let text = word.value;
    let net = text
        .parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    match net {
        Ok(net) => Ok(quoted(net.trunc())),
        Err(_) => Err(cannot(word)),
    }
}

/// Reads `match ip dst 10.0.0.1/32`, `match ip dport 80 0xffff`, `match u32 0 0`.
fn u32_match(words: &mut Words, out: &mut Vec<(&'static str, String)>) -> Result<(), Mistake> {
    let mut rest = words.clone();
    let ends = |word: &str| matches!(word, "match" | "flowid" | "classid" | "action");
    let whole_match: Vec<_> = std::iter::from_fn(|| rest.next())
        .map(|word| word.value)
        .take_while(|word| !ends(word))
        .collect();
    let cannot = |word: &Word| {
        let mut mistake = cannot(word);
        mistake.title += &format!(", in `match {}`", clipped(&whole_match.join(" ")));
        mistake
    };
    let family = words.argument("match", "ip dst 10.0.0.1/32")?;
    if matches!(family.value, "tcp" | "udp") {
        // `nexthdr+0`, but u32_classify() knows where that is from a filter with a link and an offset alone.
        let title = format!("a filter's `{}` is not imported", family.value);
        let help = "without a link and an offset the kernel compares bytes of the IP header with it: to compare the \
                    port, write match ip dport 80 0xffff";
        return Err(Mistake::new(&family.at, title, help));
    }
    let field = words.argument(family.value, "dst 10.0.0.1/32")?;
    let key = match (family.value, field.value) {
        ("u32", "0" | "0x0" | "0x00000000") => {
            let mask = words.argument("u32", "0 0")?;
            words.skip("at");
            words.number();
            return match mask.value.trim_start_matches("0x").trim_matches('0') {
                "" => Ok(()),
                _ => Err(cannot(&mask)),
            };
        }
        ("ip" | "ip6", "src") => "source",
        ("ip" | "ip6", "dst") => "destination",
        ("ip" | "ip6", "sport") => "source-port",
        ("ip" | "ip6", "dport") => "destination-port",
        ("ip" | "ip6", "protocol") => "protocol",
        ("ip", "tos" | "dsfield") | ("ip6", "priority") => "tos",
        _ => return Err(cannot(&field)),
    };
    let value = words.argument(field.value, "10.0.0.1/32")?;
    if matches!(key, "source" | "destination") {
        out.push((key, prefix(&value, key)?));
        return Ok(());
    }
    let number = whole(&value, 0..=65535)?;
    let mask = words.argument(field.value, "80 0xffff")?;
    let full = match key {
        "protocol" => 0xff,
        _ => 0xffff,
    };
    // Unlike the value: get_u32(&mask, *argv, 16).
    let digits = mask.value.trim_start_matches("0x");
    let bits = i64::from_str_radix(digits, 16).map_err(|_| cannot(&mask))?;
    match (key, bits) {
        ("tos", bits) => out.push(tos(number, bits).ok_or_else(|| cannot(&mask))?),
        (key, mask) if mask == full => out.push((key, number.to_string())),
        // A prefix of a port is a range.
        ("source-port" | "destination-port", 1..0xffff) if is_prefix(bits) => {
            let first = number & bits;
            out.push((key, quoted(format!("{first}-{}", first | (0xffff ^ bits)))));
        }
        _ => return Err(cannot(&mask)),
    }
    Ok(())
}
