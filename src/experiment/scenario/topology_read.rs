// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[topology]`.

use super::limits;
use super::medium::OnAir;
use super::model::{Asked, Class, ClassDraft, Kind, Topology, TopologyDraft};
use super::reading::Reading;
use super::{keys, value};
use crate::text::{Entry, Located, Value, Word};

/// Returns the keys of a kind besides `kind`; the first is its size.
fn keys_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Chain => &["routers", "profile", "medium", "spacing"],
        Kind::Mesh => &["nodes", "profile", "medium", "spacing"],
        Kind::Dumbbell => &["pairs", "profile", "access"],
        Kind::Ring | Kind::Tandem => &["nodes", "profile"],
        Kind::Switches => &["nodes", "switches", "profile", "access"],
        Kind::Star => &["class"],
    }
}

pub(crate) fn read(reading: &mut Reading, entry: &Entry) -> Option<Topology> {
    let draft: TopologyDraft = reading.table(entry, &keys::TOPOLOGY, "[topology]");
    let profile = reading.profile(draft.profile.as_ref());
    let access = reading.profile(draft.access.as_ref());
    let classes = match &draft.class {
        Some(value) => classes(reading, value),
        None => Vec::new(),
    };
    let at = &entry.key.at;
    let Some(kind) = draft.kind.as_ref().map(|kind| kind.value) else {
        if !draft.broken {
            let kinds = Kind::WORDS.iter().map(|(word, _)| format!("\"{word}\""));
            let kinds: Vec<_> = kinds.collect();
            let help = format!("set the kind: kind = {}", kinds.join(", "));
            reading.mistake(at, "the topology has no kind", help);
        }
        return None;
    };
    only_its_keys(reading, kind, entry);
    let on_air = on_air(reading, &draft);
    let peers = || classes.iter().map(|class| class.peers).sum();
    let count = match kind {
        Kind::Chain => &draft.routers,
        Kind::Mesh | Kind::Ring | Kind::Tandem | Kind::Switches => &draft.nodes,
        Kind::Dumbbell => &draft.pairs,
        Kind::Star => &None,
    };
    let count = count.as_ref().map(|count| count.value);
    let count = count.or_else(|| (kind == Kind::Star).then(peers));
    if count == Some(0) && reading.reader.mistakes.is_empty() {
        let help = "add peers: [topology.class.peer], below it peers = 4";
        reading.mistake(at, "the star has no peers", help);
    } else if let (Kind::Star, Some(peers)) = (kind, count)
        && peers > limits::MAX_PEERS
    {
        let help = format!("a star has up to {}", limits::MAX_PEERS);
        reading.mistake(at, format!("{peers} peers"), help);
    } else if count.is_none() && !draft.broken {
        let key = keys_of(kind)[0];
        let title = format!("a {} without `{key}`", kind.word());
        reading.mistake(at, title, format!("set the number: {key} = 4"));
    }
    let switches = draft.values().switches;
    let number = match kind {
        Kind::Chain => draft.routers,
        _ => draft.nodes,
    };
    let topology = Topology {
        at: at.clone(),
        kind,
        count: count?,
        switches,
        profile,
        access,
        classes,
        on_air,
    };
    if let Some(number) = number {
        fits(reading, &topology, &number);
    }
    Some(topology)
}

/// Checks the limits of a key, which depend on the kind and on other keys.
fn fits(reading: &mut Reading, topology: &Topology, number: &Located<u32>) {
    let (key, least, most) = topology.limits();
    if (least..=most).contains(&number.value) {
        return;
    }
    let title = format!("`{key}` of {} is out of range", number.value);
    let more = match topology.kind {
        Kind::Mesh if topology.on_air.is_none() => "; more on a medium",
        Kind::Switches => " for this many switches",
        _ => "",
    };
    let help = format!("write a whole number from {least} to {most}{more}");
    reading.mistake(&number.at, title, help);
}

/// Returns the medium that the nodes share instead of wires.
fn on_air(reading: &mut Reading, draft: &TopologyDraft) -> Option<OnAir> {
    if let (Some(_), Some(profile)) = (&draft.medium, &draft.profile) {
        let help = "leave it out: a medium has no wires, and its figures are in [medium.NAME]";
        reading.mistake(&profile.at, "a topology on a medium has no `profile`", help);
    }
    if let (None, Some(spacing)) = (&draft.medium, &draft.spacing) {
        let help = "add it: medium = \"wlan0\"";
        reading.mistake(&spacing.at, "`spacing` without a medium", help);
    }
    Some(OnAir {
        medium: draft.medium.clone()?,
        spacing_m: draft.spacing.as_ref().map_or(0.0, |metres| metres.value),
    })
}

/// Rejects the keys of a different kind, which would be ignored.
fn only_its_keys(reading: &mut Reading, kind: Kind, entry: &Entry) {
    let Value::Table(entries) = &entry.value.value else {
        return;
    };
    let its = keys_of(kind);
    for Entry { key, .. } in entries {
        let name = key.value.as_str();
        if name != "kind" && !its.contains(&name) && keys::TOPOLOGY.has(name) {
            let title = format!("a {} has no `{name}`", kind.word());
            reading.mistake(&key.at, title, format!("its keys are {}", its.join(", ")));
        }
    }
}

fn classes(reading: &mut Reading, value: &Located<Value>) -> Vec<Class> {
    let help =
        "write a header for each class, such as [topology.class.mobile], and its keys below it";
    let classes = value::table(&mut reading.reader, "class", value, help).into_iter();
    let classes: Vec<_> = classes.filter_map(|entry| class(reading, entry)).collect();
    one_offload(reading, &classes);
    classes
}

/// Checks that the classes agree about super-packets: the links of all peers are on one device.
fn one_offload(reading: &mut Reading, classes: &[Class]) {
    let mut profiles = classes.iter().filter_map(|class| class.profile.as_ref());
    let Some(first) = profiles.next() else {
        return;
    };
    if let Some(other) = profiles.find(|asked| asked.profile.offload != first.profile.offload) {
        let title = "the profiles of the classes differ in `offload`";
        let help = "it is for the hub's device, which has the links of all peers: use the same one";
        reading.mistake(&other.at, title, help);
    }
}

fn class(reading: &mut Reading, entry: &Entry) -> Option<Class> {
    class_name(reading, &entry.key);
    let draft: ClassDraft = reading.table(entry, &keys::CLASS, "[topology.class.mobile]");
    if draft.peers.is_none() && !draft.broken {
        let title = format!("class `{}` has no peers", entry.key.value);
        reading.mistake(&entry.key.at, title, "set the number: peers = 16");
    }
    let profile = reading.profile(draft.profile.as_ref());
    Some(Class {
        name: entry.key.clone(),
        peers: draft.values().peers?,
        profile: profile.filter(|profile| one_link(reading, profile)),
    })
}

/// Nodes, their interfaces and a link of the hub's profile are named after it.
fn class_name(reading: &mut Reading, name: &Located<String>) {
    let text = &name.value;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let taken = ["link", "none", super::star::HUB].contains(&text.as_str());
    let most = value::CLASS_BYTES;
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || text.len() > most || taken || !text.chars().all(fits) {
        let title = format!("`{}` cannot be the name of a class", text.escape_debug());
        let help = format!(
            "its peers are named after it: a letter, then letters, digits and -, at most {most} in \
             all; not hub, link or none"
        );
        reading.mistake(&name.at, title, help);
    }
}

/// Checks that a class has one link: the hub's profile has its own rules.
fn one_link(reading: &mut Reading, asked: &Asked) -> bool {
    let profile = &asked.profile;
    let more = [
        ("named links", !profile.links.is_empty()),
        ("rules", !profile.rules.is_empty()),
        ("bottlenecks", !profile.bottlenecks.is_empty()),
        ("a matrix", profile.matrix.is_some()),
        ("phases", !profile.phases.list.is_empty()),
    ];
    let Some((what, _)) = more.iter().find(|(_, has)| *has) else {
        return true;
    };
    let title = format!("the profile of a class has {what}");
    let help = "a class of peers can only have one link: use a profile without rules, bottlenecks, \
                phases and a matrix";
    reading.mistake(&asked.at, title, help);
    false
}
