// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[topology]`.

use super::limits::{MAX_NODES, of_kind};
use super::model::{Asked, Class, Kind, Topology};
use super::read::Reading;
use super::{keys, value};
use crate::text::{Entry, Located, Mistake, Value, Word, word};

/// Returns the key for the size, the minimum, the maximum; a star's classes have separate keys.
fn counted(kind: Kind) -> Option<(&'static str, u32, u32)> {
    (kind != Kind::Star).then(|| of_kind(kind))
}

/// Returns the keys of a kind besides `kind` and the size.
fn others(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Chain | Kind::Mesh => &["profile"],
        Kind::Dumbbell => &["profile", "access"],
        Kind::Star => &["class"],
    }
}

pub(crate) fn read(reading: &mut Reading, entry: &Entry) -> Option<Topology> {
    let help = "write the header [topology], and below it kind = \"chain\" and its other keys";
    let entries = value::table(&mut reading.reader, entry, help);
    let find = |key: &str| entries.iter().find(|e| e.key.value == key).copied();
    let Some(kind) = find("kind") else {
        if matches!(entry.value.value, Value::Table(_)) {
            let help = format!("set the kind: kind = {}", kinds());
            let mistake = Mistake::new(&entry.key.at, "the topology has no kind", help);
            reading.reader.mistakes.push(mistake);
        }
        return None;
    };
    let kind = reading.reader.read(&kind.value, |v| word(v, "kind"))?.value;
    for entry in &entries {
        only_its_keys(reading, kind, &entry.key);
    }
    let mut profile = |key: &str| -> Option<Asked> {
        let asked = find(key).filter(|_| others(kind).contains(&key))?;
        reading.profile(&asked.value)
    };
    let (profile, access) = (profile("profile"), profile("access"));
    let classes = match (kind, find("class")) {
        (Kind::Star, Some(class)) => classes(reading, class),
        _ => Vec::new(),
    };
    let count = match counted(kind) {
        Some(_) => count(reading, kind, entry, &entries)?,
        None => classes.iter().map(|class| class.peers).sum(),
    };
    if kind == Kind::Star && count == 0 && reading.reader.mistakes.is_empty() {
        let help = "add peers: [topology.class.peer], below it peers = 4";
        let mistake = Mistake::new(&entry.key.at, "the star has no peers", help);
        reading.reader.mistakes.push(mistake);
    }
    Some(Topology {
        at: entry.key.at.clone(),
        kind,
        count,
        profile,
        access,
        classes,
    })
}

/// Reads the size of a kind that has a key for it.
fn count(reading: &mut Reading, kind: Kind, topology: &Entry, entries: &[&Entry]) -> Option<u32> {
    let (key, least, most) = counted(kind)?;
    let Some(number) = entries.iter().find(|e| e.key.value == key) else {
        let help = format!("set the number: {key} = 4");
        let title = format!("a {} without `{key}`", kind.word());
        let mistake = Mistake::new(&topology.key.at, title, help);
        reading.reader.mistakes.push(mistake);
        return None;
    };
    let read = |v: &Located<Value>| value::count(v, key, least, most);
    Some(reading.reader.read(&number.value, read)?.value)
}

fn kinds() -> String {
    let words: Vec<_> = Kind::WORDS
        .iter()
        .map(|(w, _)| format!("\"{w}\""))
        .collect();
    words.join(", ")
}

/// Rejects a key of a different kind, which would be ignored.
fn only_its_keys(reading: &mut Reading, kind: Kind, key: &Located<String>) {
    let name = key.value.as_str();
    let mut its: Vec<_> = counted(kind).into_iter().map(|(key, ..)| key).collect();
    its.extend(others(kind));
    if name == "kind" || its.contains(&name) {
        return;
    }
    let mistake = match keys::TOPOLOGY.has(name) {
        true => {
            let title = format!("a {} has no `{name}`", kind.word());
            let help = format!("its keys are {}", its.join(", "));
            Mistake::new(&key.at, title, help)
        }
        false => keys::unknown(key, &keys::TOPOLOGY),
    };
    reading.reader.mistakes.push(mistake);
}

fn classes(reading: &mut Reading, entry: &Entry) -> Vec<Class> {
    let help =
        "write a header for each class, such as [topology.class.mobile], and its keys below it";
    let classes = value::table(&mut reading.reader, entry, help);
    classes
        .into_iter()
        .filter_map(|entry| class(reading, entry))
        .collect()
}

fn class(reading: &mut Reading, entry: &Entry) -> Option<Class> {
    class_name(reading, &entry.key);
    let mut peers = None;
    let mut profile = None;
    let help = "write its keys below a header such as [topology.class.mobile]";
    let entries = value::table(&mut reading.reader, entry, help);
    for Entry { key, value } in &entries {
        match key.value.as_str() {
            "peers" => reading.reader.put(&mut peers, value, |v| {
                value::count(v, "peers", 1, MAX_NODES - 1)
            }),
            "profile" => profile = reading.profile(value).filter(|p| one_link(reading, p)),
            _ => {
                let unknown = keys::unknown(key, &keys::CLASS);
                reading.reader.mistakes.push(unknown);
            }
        }
    }
    if entries.iter().all(|e| e.key.value != "peers") {
        let title = format!("class `{}` has no peers", entry.key.value);
        let mistake = Mistake::new(&entry.key.at, title, "set the number: peers = 16");
        reading.reader.mistakes.push(mistake);
    }
    Some(Class {
        name: entry.key.clone(),
        peers: peers?.value,
        profile,
    })
}

/// Nodes, their interfaces and a link of the hub's profile are named after it.
fn class_name(reading: &mut Reading, name: &Located<String>) {
    let text = &name.value;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let taken = ["link", "none", crate::experiment::scenario::star::HUB].contains(&text.as_str());
    let most = value::CLASS_BYTES;
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || text.len() > most || taken || !text.chars().all(fits) {
        let title = format!("`{}` cannot be the name of a class", text.escape_debug());
        let help = format!(
            "its peers are named after it: a letter, then letters, digits and -, at most {most} in \
             all; not hub, link or none"
        );
        reading
            .reader
            .mistakes
            .push(Mistake::new(&name.at, title, help));
    }
}

/// The hub's profile has its own rules, so a class can only have one link.
fn one_link(reading: &mut Reading, asked: &Asked) -> bool {
    let profile = &asked.profile;
    let more = [
        ("named links", !profile.links.is_empty()),
        ("rules", !profile.rules.is_empty()),
        ("a matrix", profile.matrix.is_some()),
        ("phases", !profile.phases.list.is_empty()),
    ];
    let Some((what, _)) = more.iter().find(|(_, has)| *has) else {
        return true;
    };
    let title = format!("the profile of a class has {what}");
    let help = "a class of peers can only have one link: use a profile without rules, phases and \
                a matrix";
    reading
        .reader
        .mistakes
        .push(Mistake::new(&asked.at, title, help));
    false
}
