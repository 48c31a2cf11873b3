// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of rules: prefixes, protocols, ports, marks.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::hosts;
use super::kinds::{Text, quoted};
use super::rules::{NONE, OWN, PROTOCOLS, mac_name, protocol_name};
use super::{Ports, Target};
use crate::abi;
use crate::text::{Located, Mistake, Value, closest, kinds};

kinds! {
    /// The name of a link.
    LinkName: Target = target, |target| quoted(match target {
        Target::Own => OWN,
        Target::Named(name) => name,
        Target::Untouched => NONE,
    });
    Towards: u32 = direction, |direction| quoted(abi::direction_name(*direction));
    Net: IpNet = net, |net| quoted(net);
    Host: String = host, Text::text;
    Name: String = name, Text::text;
    Cgroup: String = cgroup, |path| Text::text(&format!("/{path}"));
    Protocol: u8 = protocol, |number| quoted(protocol_name(*number));
    PortRange: Ports = ports, |ports| quoted(ports);
    Mac: [u8; 6] = mac, |mac| quoted(mac_name(mac));
    Mark: (u32, u32) = mark, |(bits, mask)| match *mask {
        u32::MAX => format!("\"{bits:#x}\""),
        mask => format!("\"{bits:#x}/{mask:#x}\""),
    };
    Dscp: u8 = dscp, u8::to_string;
    Tos: (u8, u8) = tos, |(bits, mask)| match *mask {
        u8::MAX => bits.to_string(),
        mask => format!("\"{bits:#x}/{mask:#x}\""),
    };
    Byte: u8 = |value, key| number(value, key, u8::MAX), u8::to_string;
    Vlan: u16 = |value, key| number(value, key, 4095), u16::to_string;
}

fn text(value: &Located<Value>, key: &str, example: &str) -> Result<String, Mistake> {
    match &value.value {
        Value::Text(text) | Value::Number(text) => Ok(text.trim().to_owned()),
        _ => {
            let help = format!("write {key} = {example}");
            Err(Mistake::wrong_kind(value, key, help))
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
        let title = format!("`{text}` has host bits set");
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

/// Reads a name that a question of DNS can have, without a dot at its end.
fn name(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let name = text(value, key, "\"api.example.org\"")?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    if hosts::hash(name).is_none() {
        let title = format!("`{name}` is not a name of DNS");
        let help = "write answer = \"api.example.org\": ASCII (xn-- for others), up to 253 characters, up to 63 between dots";
        return Err(Mistake::new(&value.at, title, help));
    }
    Ok(name.to_owned())
}

/// Returns the path of a control group, without a slash at the start and the end.
fn cgroup(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    const EXAMPLE: &str = "\"/system.slice/nginx.service\"";
    const MOUNT: &str = "/sys/fs/cgroup";
    let path = text(value, key, EXAMPLE)?;
    let wrong = |title: String, help: String| Err(Mistake::new(&value.at, title, help));
    if let Some(rest) = path.strip_prefix(MOUNT) {
        let rest = rest.strip_prefix("/unified").unwrap_or(rest);
        let title = format!("`{path}` begins with a mount point");
        return wrong(
            title,
            format!(
                "write the path below it: {key} = \"/{}\"",
                rest.trim_matches('/')
            ),
        );
    }
    let inner = path.trim_matches('/');
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains('\0');
    if !path.starts_with('/') || !inner.is_empty() && inner.split('/').any(odd) {
        let title = format!("`{path}` is not the path of a control group");
        let help = format!(
            "write its path below the root of cgroup v2, as in /proc/PID/cgroup: {key} = {EXAMPLE}"
        );
        return wrong(title, help);
    }
    Ok(inner.to_owned())
}

/// Reads a number from 0 to `most`, decimal or with 0x.
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

/// Reads a DSCP by name (RFC 2474, 2597, 3246, 5865, 8622) or number.
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
    masked(value, key, u32::MAX)
}

fn tos(value: &Located<Value>, key: &str) -> Result<(u8, u8), Mistake> {
    let (bits, mask) = masked(value, key, u8::MAX.into())?;
    Ok((bits as u8, mask as u8))
}

/// Reads bits up to `all`, and which of them count.
fn masked(value: &Located<Value>, key: &str, all: u32) -> Result<(u32, u32), Mistake> {
    let text = text(value, key, "\"0x1\"")?;
    let (bits, mask) = match text.split_once('/') {
        Some((bits, mask)) => (integer(bits.trim()), integer(mask.trim())),
        None => (integer(&text), Some(all)),
    };
    let fits = |number: Option<u32>| number.filter(|number| *number <= all);
    match (fits(bits), fits(mask)) {
        (Some(bits), Some(mask)) if bits & !mask == 0 => Ok((bits, mask)),
        (Some(bits), Some(mask)) => {
            let title = format!("`{key}` of `{text}` has bits outside of its mask");
            let help = format!("did you mean \"{:#x}/{mask:#x}\"?", bits & mask);
            Err(Mistake::new(&value.at, title, help))
        }
        _ => {
            let help = format!(
                "write {key} = \"0x1\", or \"0x1/0xf\" where only some bits count; all bits are {all:#x}"
            );
            let title = format!("`{key}` cannot be `{text}`");
            Err(Mistake::new(&value.at, title, help))
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
