// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the netems of a script of tc to a profile.

use super::netem::{Netem, link};
use super::tc_script::Script;
use super::writer::{Writer, quoted, string, table};
use super::{Header, Imported, Tables};
use crate::profile::{Distribution, Profile, ProfileError, Word};
use crate::text::{Mistake, TextError};

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
    if let Some(seed) = netems().find_map(|netem| netem.seed) {
        out.note("The same seed repeats emud's decisions, not those of netem.");
        out.key("seed", seed);
    }
    let both = links.len() > 1;
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
        let lines = out.lines();
        out.header(&name);
        link(&mut out, netem, both, tables)?;
        let named = netem.distribution.as_ref().map(|name| name.value.as_str());
        let table = named.filter(|name| Distribution::from_word(name).is_none());
        let table = table.and_then(tables);
        // A file that cannot be read here may exist where the profile is used.
        if table.is_none_or(|path| path.is_file()) {
            check(netem, out.text(), lines)?;
        }
    }
    for (matches, name) in &script.rules {
        out.header("[rule]");
        let keys: Vec<_> = matches
            .iter()
            .map(|(key, value)| (*key, Some(value.clone())))
            .collect();
        if !keys.is_empty() {
            out.key("match", table(&keys));
        }
        out.key("link", quoted(name));
        if header != Header::Link {
            out.key("direction", quoted(header.word()));
        }
    }
    if let (false, Some((_, netem))) = (script.rules.is_empty(), script.classes.last()) {
        check(netem, out.text(), 0)?;
    }
    Ok(out.finish())
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

/// If the profile's reader rejects a value, the mistake is reported at its option; `lines` is the
/// number of lines before this link.
fn check(netem: &Netem, toml: &str, lines: usize) -> Result<(), Mistake> {
    const OPTIONS: [(&str, &[&str]); 9] = [
        ("delay", &["delay", "latency", "distribution"]),
        ("loss", &["loss", "drop"]),
        ("duplicate", &["duplicate"]),
        ("corrupt", &["corrupt"]),
        ("reorder", &["reorder", "gap"]),
        ("slot", &["slot"]),
        ("rate", &["rate"]),
        ("overhead", &["rate"]),
        ("queue", &["limit"]),
    ];
    let Err(error) = Profile::parse(toml, "the profile") else {
        return Ok(());
    };
    let (key, title, help) = match &error {
        ProfileError::Text(TextError::Mistakes(found)) => {
            match found.iter().find(|mistake| found.line(mistake) > lines) {
                Some(first) => {
                    let line = toml.lines().nth(found.line(first) - 1).unwrap_or("");
                    let key = line.split(' ').next().unwrap_or_default();
                    (key, first.title.clone(), first.help.clone())
                }
                None => ("", error.to_string(), String::new()),
            }
        }
        other => ("", other.to_string(), String::new()),
    };
    let options = OPTIONS.iter().find(|(k, _)| *k == key);
    let at = netem.place_of(options.map_or(&[], |(_, options)| options));
    Err(Mistake::new(
        &at,
        format!("no profile can say this: {title}"),
        help,
    ))
}
