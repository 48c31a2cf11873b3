// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the netems of a script of tc to a profile.

use super::netem::{Beside, Netem, link, seed};
use super::tc_script::Script;
use super::writer::{Writer, quoted, string, table};
use super::{Header, Imported, Tables};
use crate::profile::{Distribution, Word};
use crate::text::Mistake;

/// Returns the profile in a form that emud accepts.
pub(crate) fn profile(
    script: &Script,
    header: Header,
    tables: Tables,
) -> Result<Imported, Mistake> {
    let links = directions(&script.netems, header)?;
    let mut out = Writer::default();
    let netems = || {
        script
            .netems
            .iter()
            .chain(script.classes.iter().map(|(_, netem)| netem))
    };
    let texts: Vec<_> = netems().map(|netem| netem.text.as_str()).collect();
    out.key("source", string(&format!("imported: {}", texts.join("; "))));
    seed(&mut out, netems());
    let beside = match links.len() {
        0 | 1 => Beside::Nothing,
        _ => Beside::OtherDirection,
    };
    if links.is_empty() {
        out.header(header.word());
        out.note("Packets that no filter sends to a class with a netem pass without a change.");
    }
    let own = links
        .iter()
        .map(|(header, netem)| (header.word().to_owned(), *netem));
    let named = script
        .classes
        .iter()
        .map(|(name, netem)| (format!("links.{name}"), netem));
    for (name, netem) in own.chain(named) {
        out.from(&netem.start());
        out.header(&name);
        link(&mut out, netem, beside, tables)?;
    }
    for rule in &script.rules {
        out.from(&rule.at);
        out.header("[rule]");
        let keys: Vec<_> = (rule.matches.iter())
            .map(|(key, value)| (*key, Some(value.clone())))
            .collect();
        if !keys.is_empty() {
            out.key("match", table(&keys));
        }
        out.key("link", quoted(&rule.class));
        if header != Header::Link {
            out.key("direction", quoted(header.word()));
        }
    }
    if netems().all(|netem| has_table(netem, tables)) {
        out.check()?;
    }
    Ok(out.finish())
}

/// Returns whether a profile with this netem can be read here: a file that is not here may exist where
/// the profile is used.
pub(super) fn has_table(netem: &Netem, tables: Tables) -> bool {
    let named = netem.distribution.as_ref().map(|name| name.value.as_str());
    let table = named.filter(|name| Distribution::from_word(name).is_none());
    table.and_then(tables).is_none_or(|path| path.is_file())
}

/// Assigns netems to directions.
fn directions(netems: &[Netem], header: Header) -> Result<Vec<(Header, &Netem)>, Mistake> {
    let is_ifb = |netem: &Netem| {
        netem
            .device
            .as_deref()
            .is_some_and(|d| d.starts_with("ifb"))
    };
    match netems {
        [] => Ok(Vec::new()),
        [one] => Ok(vec![(header, one)]),
        [one, other] if is_ifb(one) != is_ifb(other) => {
            let (up, down) = if is_ifb(one) {
                (other, one)
            } else {
                (one, other)
            };
            Ok(vec![(Header::Up, up), (Header::Down, down)])
        }
        all => {
            let devices: Vec<_> = all.iter().filter_map(|n| n.device.as_deref()).collect();
            let title = format!("netems on {}", devices.join(", "));
            let help = "import the commands of one device, or of a device and its ifb";
            Err(Mistake::new(&all[1].start(), title, help))
        }
    }
}
