// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts tc's filters that send packets to a class to the matches of a profile's rules.

use std::net::IpAddr;

use ipnet::IpNet;

use super::tc_command::{Word, Words, begins};
use super::tc_handle::canonical;
use super::tc_units::whole;
use super::writer::{quoted, string};
use crate::text::{Mistake, clipped};

/// Bits of the ToS that are the DSCP.
const DSCP: i64 = 0xfc;

/// A filter that selects a class.
pub(crate) struct Filter<'a> {
    pub device: Option<&'a str>,
    /// Lower priorities are checked first.
    pub priority: i64,
    pub class: String,
    /// Keys and values of `match`; empty: every packet.
    pub matches: Vec<(&'static str, String)>,
}

/// `filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1/32 flowid 1:3`;
/// Returns `None` if it creates no filter, or one that selects no class.
pub(crate) fn filter<'a>(words: &mut Words<'a>) -> Result<Option<Filter<'a>>, Mistake> {
    let verb = words.next();
    if !verb.is_some_and(|verb| {
        ["add", "change", "replace"]
            .iter()
            .any(|v| begins(verb.value, v))
    }) {
        return Ok(None);
    }
    // Filters that redirect to an ifb select no class, and may match on anything.
    let all: Vec<_> = words.words().collect();
    let chosen = all
        .iter()
        .position(|word| matches!(*word, "flowid" | "classid"));
    let Some(class) = chosen.and_then(|i| all.get(i + 1).copied()) else {
        return Ok(None);
    };
    let mut filter = Filter {
        device: None,
        priority: i64::from(u16::MAX) + 1,
        class: canonical(class),
        matches: Vec::new(),
    };
    let mut handle = None;
    while let Some(word) = words.next() {
        let mut value = |example: &str| words.argument(word.value, example);
        match word.value {
            "dev" => filter.device = Some(value("eth0")?.value),
            "prio" | "pref" | "priority" => filter.priority = whole(&value("1")?, 0..=65535)?,
            "handle" => handle = Some(value("1")?),
            "parent" | "protocol" | "flowid" | "classid" => {
                value("1:")?;
            }
            "u32" | "matchall" | "flower" | "root" | "skip_hw" | "skip_sw" => {}
            "fw" => {
                if let Some(mark) = handle.take() {
                    filter.matches.push(("mark", quoted(mark.value)));
                }
            }
            "match" => u32_match(words, &mut filter.matches)?,
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

fn cannot(word: &Word) -> Mistake {
    let title = format!("a filter's `{}` is not imported", clipped(word.value));
    let help = "only filters by address, port, protocol, ToS and mark are supported (u32, flower, fw, matchall); write \
                the [[rule]] yourself (docs/profile.md), and leave this filter out";
    Mistake::new(&word.at, title, help)
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

/// `match ip dst 10.0.0.1/32`, `match ip dport 80 0xffff`, `match u32 0 0`.
fn u32_match(words: &mut Words, out: &mut Vec<(&'static str, String)>) -> Result<(), Mistake> {
    let family = words.argument("match", "ip dst 10.0.0.1/32")?;
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
        ("ip" | "ip6", "sport") | ("tcp" | "udp", "src") => "source-port",
        ("ip" | "ip6", "dport") | ("tcp" | "udp", "dst") => "destination-port",
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
        "source-port" | "destination-port" => 0xffff,
        _ => 0xff,
    };
    match (key, whole(&mask, 0..=0xffff)?) {
        ("tos", DSCP) if number <= 0xff => out.push(("dscp", (number >> 2).to_string())),
        (key, mask) if mask == full => out.push((key, number.to_string())),
        ("tos", mask) if number <= 0xff && (1..0xff).contains(&mask) => {
            let bits = number & mask;
            out.push(("tos", format!("\"{bits:#x}/{mask:#x}\"")));
        }
        _ => return Err(cannot(&mask)),
    }
    Ok(())
}
