// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of qdiscs as a profile: a bottleneck, a link for each class, a rule for each filter.

use super::netem::{Beside, link, seed};
use super::netem_profile::has_table;
use super::tc_aqm::Aqm;
use super::tc_class::Class;
use super::tc_queue::Queue;
use super::tc_red::Red;
use super::tc_tree::Tree;
use super::writer::{Writer, quoted, string, table};
use super::{Header, Imported, Tables};
use crate::bottleneck::Schedule;
use crate::profile::{PACKET_BYTES, Percent, Rate, Time, Word};
use crate::text::{At, Mistake};

/// A key with its value, if it is written.
type Key = (&'static str, Option<String>);

/// Name of the bottleneck.
const SERVER: &str = "tree";

pub(super) fn profile(
    tree: &Tree,
    header: Header,
    rate: Option<u64>,
    tables: Tables,
) -> Result<Imported, Mistake> {
    let Some(rate) = tree.rate.or(rate) else {
        let help = "give the rate of the device, such as --rate 100Mbit: prio, a queue alone, and htb without \
                    a class above all others, have no rate themselves";
        return Err(Mistake::new(&tree.at, "the tree has no rate", help));
    };
    let mut out = Writer::default();
    out.from(&tree.at);
    out.key("source", string("imported from tc"));
    let netems = || leaves(tree).filter_map(|class| class.netem.as_ref());
    seed(&mut out, netems());
    let default = tree.default.as_ref();
    let default = leaves(tree).find(|class| Some(&class.id) == default);
    let is_alone = tree.rate.is_none() && tree.schedule == Schedule::Fifo;
    if tree.classes.is_empty() && (is_alone || tree.queue.red.is_some()) {
        // Packets in the order of arrival: the queue of a link, with every engine.
        out.header(header.word());
        out.key("rate", quoted(Rate(rate)));
        queue(&mut out, &tree.queue, &tree.queue_at);
        warnings(&mut out, tree);
        out.check()?;
        return Ok(out.finish());
    }
    own(&mut out, tree, header, default, tables)?;
    for class in leaves(tree) {
        out.from(&class.at);
        out.header(&format!("links.{}", name(class)));
        out.key("class", service(class));
        netem(&mut out, class, tables)?;
    }
    out.from(&tree.at);
    out.header(&format!("bottleneck.{SERVER}"));
    out.key("rate", quoted(Rate(rate)));
    out.key("schedule", quoted(tree.schedule.word()));
    queue(&mut out, &tree.queue, &tree.queue_at);
    for one in &tree.classes {
        class(&mut out, one, tree);
    }
    warnings(&mut out, tree);
    rules(&mut out, tree, header);
    if netems().all(|netem| has_table(netem, tables)) {
        out.check()?;
    }
    Ok(out.finish())
}

fn warnings(out: &mut Writer, tree: &Tree) {
    for warning in &tree.warnings {
        out.warning(warning.clone());
    }
}

fn name(class: &Class) -> String {
    format!("class-{}", class.id.replace(':', "-"))
}

fn service(class: &Class) -> String {
    quoted(format!("{SERVER}.{}", name(class)))
}

/// Returns the classes in which packets wait.
fn leaves<'a>(tree: &'a Tree) -> impl Iterator<Item = &'a Class> {
    let is_parent = |class: &Class| {
        tree.classes
            .iter()
            .any(|c| c.parent.as_ref() == Some(&class.id))
    };
    tree.classes.iter().filter(move |class| !is_parent(class))
}

/// Writes the link of packets without a filter.
fn own(
    out: &mut Writer,
    tree: &Tree,
    header: Header,
    default: Option<&Class>,
    tables: Tables,
) -> Result<(), Mistake> {
    out.from(&tree.at);
    out.header(header.word());
    match default {
        Some(class) => {
            out.key("class", service(class));
            netem(out, class, tables)?;
        }
        None if tree.classes.is_empty() => out.key("class", quoted(SERVER)),
        None => out.note("htb sends packets without a filter past all classes; so does this link."),
    }
    Ok(())
}

fn netem(out: &mut Writer, class: &Class, tables: Tables) -> Result<(), Mistake> {
    match &class.netem {
        Some(netem) => link(out, netem, Beside::Server, tables),
        None => Ok(()),
    }
}

fn class(out: &mut Writer, class: &Class, tree: &Tree) {
    out.from(&class.at);
    out.header(&format!("bottleneck.{SERVER}.class.{}", name(class)));
    if let Some(priority) = class.priority {
        out.key("priority", priority);
    }
    if let Some(weight) = class.weight.filter(|weight| *weight > 1) {
        out.key("weight", weight);
    }
    if let Some(rate) = class.rate {
        out.key("rate", quoted(Rate(rate)));
    }
    match (class.ceil, class.rate) {
        (Some(ceil), _) => out.key("ceil", quoted(Rate(ceil))),
        // tc's default.
        (None, Some(rate)) if tree.schedule == Schedule::Htb => out.key("ceil", quoted(Rate(rate))),
        _ => {}
    }
    if let Some(parent) = &class.parent {
        out.key(
            "parent",
            quoted(format!("class-{}", parent.replace(':', "-"))),
        );
    }
    queue(out, &class.queue, &class.queue_at);
}

fn queue(out: &mut Writer, queue: &Queue, at: &At) {
    out.from(at);
    let bytes = queue.bytes.or(queue.red.map(|red| red.limit));
    let bytes = bytes.map(|bytes| out.room(bytes));
    let bytes = bytes.filter(|_| queue.bytes.is_some());
    let keys = [
        ("limit", queue.packets.map(|n| quoted(format!("{n}p")))),
        ("bytes", bytes.map(|n| quoted(format!("{n}B")))),
    ];
    if let Some(red) = &queue.red {
        return out.key("queue", table(&managed(red)));
    }
    if let Some(aqm) = &queue.aqm {
        let [limit, ..] = keys;
        return out.key("queue", table(&with_packets(limit, aqm)));
    }
    if *queue != Queue::default() {
        out.key("queue", table(&keys));
    }
}

fn with_packets(limit: Key, aqm: &Aqm) -> Vec<Key> {
    let times = aqm.times.iter();
    let gains = aqm.gains.iter();
    let mut keys = vec![limit, ("aqm", Some(quoted(aqm.name)))];
    keys.extend(times.map(|(key, ns)| (*key, Some(quoted(Time(*ns))))));
    keys.extend(gains.map(|(key, gain)| (*key, Some(gain.to_string()))));
    keys.push(("ecn", aqm.ecn.then(|| "true".to_owned())));
    keys
}

fn managed(red: &Red) -> [Key; 7] {
    let bytes = |bytes: u32| Some(quoted(format!("{bytes}B")));
    [
        ("bytes", bytes(red.limit.max(PACKET_BYTES))),
        ("aqm", Some(quoted("red"))),
        ("min", bytes(red.min)),
        ("max", bytes(red.max)),
        ("probability", Some(quoted(Percent(red.probability)))),
        ("weight", Some(red.weight.to_string())),
        ("ecn", red.ecn.then(|| "true".to_owned())),
    ]
}

fn rules(out: &mut Writer, tree: &Tree, header: Header) {
    for filter in &tree.filters {
        let leaf = |id: Option<&String>| leaves(tree).find(|class| Some(&class.id) == id);
        let class = leaf(Some(&filter.class));
        let (is_tos, matches) = (filter.is_tos, &filter.matches);
        if let (None, Some(root), false) = (class, &tree.htb, tree.choosing.contains(&filter.class))
        {
            // htb_classify(): not for the next filter, but the default class, or past all classes.
            let default = leaf(tree.default.as_ref()).filter(|_| filter.class != *root);
            let link = default.map_or_else(|| "none".to_owned(), name);
            out.rule(&filter.at, is_tos, matches, &link, header);
            if filter.class != *root {
                let to = default.map_or("past all classes".to_owned(), |class| {
                    format!("to class {}", class.id)
                });
                let text = format!(
                    "a filter to class {}, in which no packet waits: htb sends its packets {to}",
                    filter.class
                );
                out.note(&text);
                out.warnings.push(text);
            }
            continue;
        }
        let Some(class) = class else {
            let text = format!(
                "a filter to class {}, in which no packet waits",
                filter.class
            );
            out.warning(text);
            continue;
        };
        out.rule(&filter.at, is_tos, matches, &name(class), header);
    }
}
