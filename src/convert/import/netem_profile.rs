// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the netems of a script of tc to a profile.

use super::netem::{Beside, Netem, link, seed};
use super::tc_script::{Script, To};
use super::writer::{Writer, string};
use super::{Header, Imported, Tables};
use crate::profile::{Distribution, Word};
use crate::text::Mistake;

/// Returns the profile in a form that emud accepts.
pub(crate) fn profile(
    script: &Script,
    header: Header,
    tables: Tables,
) -> Result<Imported, Mistake> {
    let directions = directions(script, header)?;
    let direction = |device: Option<&str>| {
        let mut found = directions.iter().filter(|(name, _)| *name == device);
        found.next().map_or(header, |(_, direction)| *direction)
    };
    let mut out = Writer::default();
    let texts: Vec<_> = script.all().map(|netem| netem.text.as_str()).collect();
    let source = format!("imported: {}", texts.join("; "));
    out.key("source", string(&shortened(source)));
    seed(&mut out, script.all());
    let beside = match directions.len() {
        0 | 1 => Beside::Nothing,
        _ => Beside::OtherDirection,
    };
    if script.netems.is_empty() {
        out.header(header.word());
        out.note("Packets that no rule sends to a link with a netem pass without a change.");
    }
    let mut own: Vec<_> = (script.netems.iter())
        .map(|netem| (direction(netem.device.as_deref()).word(), netem))
        .collect();
    own.sort_by_key(|(word, _)| *word == Header::Down.word());
    let own = own
        .into_iter()
        .map(|(word, netem)| (word.to_owned(), netem));
    let named = (script.classes.iter()).map(|of| (format!("links.{}", of.name), &of.netem));
    for (name, netem) in own.chain(named) {
        out.from(&netem.start());
        out.header(&name);
        link(&mut out, netem, beside, tables)?;
    }
    for rule in &script.rules {
        let link = match &rule.to {
            To::Own => "link",
            To::Class(name) => name,
            To::Nothing => "none",
        };
        let direction = direction(rule.device.as_deref());
        out.rule(&rule.at, rule.is_tos, &rule.matches, link, direction);
    }
    for warning in &script.warnings {
        out.warning(warning.clone());
    }
    if script.all().all(|netem| has_table(netem, tables)) {
        out.check()?;
    }
    Ok(out.finish())
}

/// Returns a text that is no longer than a value of a profile may be.
fn shortened(mut text: String) -> String {
    const MOST: usize = 4000;
    if text.len() > MOST {
        let fits = |i: &usize| text.is_char_boundary(*i);
        text.truncate((0..=MOST).rev().find(fits).unwrap_or(0));
        text.push_str("...");
    }
    text
}

/// Returns whether a profile with this netem can be read here: a file that is not here may exist where
/// the profile is used.
pub(super) fn has_table(netem: &Netem, tables: Tables) -> bool {
    let named = netem.distribution.as_ref().map(|name| name.value.as_str());
    let table = named.filter(|name| Distribution::from_word(name).is_none());
    table.and_then(tables).is_none_or(|path| path.is_file())
}

/// A device and the direction of its packets.
type Towards<'a> = (Option<&'a str>, Header);

/// Assigns the devices of netems to directions.
fn directions(script: &Script, header: Header) -> Result<Vec<Towards<'_>>, Mistake> {
    let mut devices: Vec<&Netem> = Vec::new();
    for netem in script.all() {
        if devices.iter().all(|other| other.device != netem.device) {
            devices.push(netem);
        }
    }
    let of_ifb = |netem: &Netem| match netem.is_on_ifb() {
        true => Header::Down,
        false => Header::Up,
    };
    match devices[..] {
        [] => Ok(Vec::new()),
        [one] => Ok(vec![(one.device.as_deref(), header)]),
        [one, other] if one.is_on_ifb() != other.is_on_ifb() => {
            let both = [one, other].map(|netem| (netem.device.as_deref(), of_ifb(netem)));
            Ok(both.to_vec())
        }
        [_, second, ..] => {
            let names: Vec<_> = devices.iter().filter_map(|n| n.device.as_deref()).collect();
            let title = format!("netems on {}", names.join(", "));
            let help = "import the commands of one device, or of a device and its ifb";
            Err(Mistake::new(&second.start(), title, help))
        }
    }
}
