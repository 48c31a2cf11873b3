// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the values of a scenario's keys.

use std::str::FromStr;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::plan::Program;
use crate::text::{self, Entry, Located, Mistake, Reader, Value};

/// Leaves space for a number after the name in an interface's name, which has 15 bytes.
pub(crate) const INTERFACE_BYTES: usize = 15;
const NODE_BYTES: usize = 32;
/// Peers of a class are named after it, with up to three digits.
pub(crate) const CLASS_BYTES: usize = 12;

pub(crate) fn string(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    match &value.value {
        Value::Text(text) if !text.contains('\0') => Ok(text.clone()),
        Value::Text(_) => {
            let title = format!("`{key}` has a zero byte");
            Err(Mistake::new(&value.at, title, "leave it out"))
        }
        other => {
            let title = format!("`{key}` cannot be {}", other.kind());
            Err(Mistake::new(
                &value.at,
                title,
                format!("write text: {key} = \"...\""),
            ))
        }
    }
}

pub(crate) fn flag(value: &Located<Value>, key: &str) -> Result<bool, Mistake> {
    match &value.value {
        Value::Flag(flag) => Ok(*flag),
        other => {
            let title = format!("`{key}` cannot be {}", other.kind());
            let help = format!("write {key} = true or {key} = false");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

/// Reads several texts; a single one needs no brackets.
pub(crate) fn strings(value: &Located<Value>, key: &str) -> Result<Vec<Located<String>>, Mistake> {
    let one = |item: &Located<Value>| {
        Ok(Located {
            value: string(item, key)?,
            at: item.at.clone(),
        })
    };
    match &value.value {
        Value::List(items) => items.iter().map(one).collect(),
        Value::Text(_) => Ok(vec![one(value)?]),
        other => {
            let title = format!("`{key}` cannot be {}", other.kind());
            let help = format!("write texts in brackets: {key} = [\"...\", \"...\"]");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

pub(crate) fn plain_strings(value: &Located<Value>, key: &str) -> Result<Vec<String>, Mistake> {
    let strings = strings(value, key)?;
    Ok(strings.into_iter().map(|text| text.value).collect())
}

/// Reads a command: text is for the shell, an array is an argument vector.
pub(crate) fn program(value: &Located<Value>) -> Result<Program, Mistake> {
    let program = match &value.value {
        Value::List(_) => Program::Argv(plain_strings(value, "command")?),
        _ => Program::Shell(string(value, "command")?),
    };
    let empty = match &program {
        Program::Argv(argv) => argv.first().is_none_or(String::is_empty),
        Program::Shell(text) => text.trim().is_empty(),
        Program::Interactive => false,
    };
    if empty {
        let help = "write command = \"ping -c 5 server\", or leave it out to run nothing here";
        return Err(Mistake::new(&value.at, "the command is empty", help));
    }
    Ok(program)
}

pub(crate) fn time(value: &Located<Value>, key: &str) -> Result<Duration, Mistake> {
    text::duration(value, key).map(Duration::from_nanos)
}

/// Reads a time above 0.
pub(crate) fn some_time(value: &Located<Value>, key: &str) -> Result<Duration, Mistake> {
    match time(value, key)? {
        Duration::ZERO => {
            let help = format!("write a time above 0, such as {key} = \"30s\"");
            Err(Mistake::new(&value.at, format!("`{key}` is 0"), help))
        }
        time => Ok(time),
    }
}

/// Reads a whole number from `least` to `most`.
pub(crate) fn count(
    value: &Located<Value>,
    key: &str,
    least: u32,
    most: u32,
) -> Result<u32, Mistake> {
    let number = match &value.value {
        Value::Number(text) => text.parse().ok(),
        _ => None,
    };
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            let help = format!("write a whole number from {least} to {most}");
            Mistake::new(&value.at, format!("invalid number of {key}"), help)
        })
}

pub(crate) fn network(value: &Located<Value>) -> Result<Ipv4Net, Mistake> {
    let text = string(value, "network")?;
    let help = "write an IPv4 prefix of 8 to 28 bits, such as network = \"10.77.0.0/16\"";
    match Ipv4Net::from_str(&text) {
        Ok(net) if net != net.trunc() => {
            let title = format!("`{text}` has bits behind its prefix");
            let help = format!("write \"{}\"", net.trunc());
            Err(Mistake::new(&value.at, title, help))
        }
        Ok(net) if (8..=28).contains(&net.prefix_len()) => Ok(net),
        _ => {
            let title = format!("`{text}` cannot be the network of a scenario");
            Err(Mistake::new(&value.at, title, help))
        }
    }
}

/// Checks a node's name, which is a host name in `/etc/hosts` and in shell commands. A `*` at its
/// end makes it a pattern.
pub(crate) fn node_name(name: &Located<String>) -> Result<(), Mistake> {
    let text = name.value.strip_suffix('*').unwrap_or(&name.value);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let ends = text.starts_with('-') || (text.ends_with('-') && text == name.value);
    let empty = text.is_empty() && text == name.value;
    if empty || ends || text.len() > NODE_BYTES || !text.chars().all(fits) {
        let title = format!(
            "`{}` is not a valid name of a node",
            name.value.escape_debug()
        );
        let help = format!("it is a host name: up to {NODE_BYTES} letters, digits and -");
        return Err(Mistake::new(&name.at, title, help));
    }
    if text == "localhost" {
        let help = "every node is localhost to itself: use a different name";
        let title = "a node cannot be called `localhost`";
        return Err(Mistake::new(&name.at, title, help));
    }
    Ok(())
}

/// Checks a link's name, which is also the name of its devices.
pub(crate) fn link_name(name: &Located<String>) -> Result<(), Mistake> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let text = &name.value;
    let long = text.len() > INTERFACE_BYTES;
    let taken = ["lo", "all", "default", "outside", ".", ".."].contains(&text.as_str());
    if text.is_empty() || text.starts_with('-') || long || taken || !text.chars().all(fits) {
        let title = format!("`{}` is not a valid name of a link", text.escape_debug());
        let help = format!(
            "its interfaces are named after it: up to {INTERFACE_BYTES} letters, digits, - _ and ., \
             not lo, all, default or outside"
        );
        return Err(Mistake::new(&name.at, title, help));
    }
    Ok(())
}

/// Returns the entries of a table of tables, up to `most`.
pub(crate) fn tables<'a>(
    reader: &mut Reader,
    entry: &'a Entry,
    most: usize,
    help: &str,
) -> Vec<&'a Entry> {
    let entries = table(reader, entry, help);
    match entries.get(most) {
        None => entries,
        Some(first) => {
            let title = format!("{} tables `{}`", entries.len(), entry.key.value);
            let help = format!("one host supports up to {most} of them");
            reader
                .mistakes
                .push(Mistake::new(&first.key.at, title, help));
            Vec::new()
        }
    }
}

/// Returns the entries of a table, in the order of the file.
pub(crate) fn table<'a>(reader: &mut Reader, entry: &'a Entry, help: &str) -> Vec<&'a Entry> {
    let Value::Table(entries) = &entry.value.value else {
        let title = format!(
            "`{}` cannot be {}",
            entry.key.value,
            entry.value.value.kind()
        );
        reader
            .mistakes
            .push(Mistake::new(&entry.value.at, title, help));
        return Vec::new();
    };
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.key.at.span.start);
    entries
}
