// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of nodes and links, and tables of tables.

use crate::text::{Entry, Located, Mistake, Reader, Value};

/// Leaves space for a number after the name in an interface's name, which has 15 bytes.
pub(crate) const INTERFACE_BYTES: usize = 15;
const NODE_BYTES: usize = 32;
/// Peers of a class are named after it, with up to three digits.
pub(crate) const CLASS_BYTES: usize = 12;

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
    if text == name.value && is_address(text) {
        let title = format!("`{text}` cannot be the name of a node");
        let help = format!("programs take a number for an address: use a name such as n{text}");
        return Err(Mistake::new(&name.at, title, help));
    }
    if text.eq_ignore_ascii_case("localhost") {
        let help = "every node is localhost to itself: use a different name";
        let title = "a node cannot be called `localhost`";
        return Err(Mistake::new(&name.at, title, help));
    }
    Ok(())
}

/// Returns whether C libraries take a text without dots for an IPv4 address, before they search
/// `/etc/hosts`: 7 for 0.0.0.7.
fn is_address(text: &str) -> bool {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hex {
        Some(digits) => !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit()),
        None => text.chars().all(|c| c.is_ascii_digit()),
    }
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
    key: &str,
    value: &'a Located<Value>,
    most: usize,
    help: &str,
) -> Vec<&'a Entry> {
    let entries = table(reader, key, value, help);
    if let Some(first) = entries.get(most) {
        let title = format!("{} tables `{key}`", entries.len());
        let help = format!("a scenario has up to {most} of them");
        let mistake = Mistake::new(&first.key.at, title, help);
        reader.mistakes.push(mistake);
        return Vec::new();
    }
    entries
}

/// Returns the entries of a table, in the order of the file.
pub(crate) fn table<'a>(
    reader: &mut Reader,
    key: &str,
    value: &'a Located<Value>,
    help: &str,
) -> Vec<&'a Entry> {
    let Value::Table(entries) = &value.value else {
        let title = format!("`{key}` cannot be {}", value.value.kind());
        let mistake = Mistake::new(&value.at, title, help);
        reader.mistakes.push(mistake);
        return Vec::new();
    };
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.key.at.span.start);
    entries
}
