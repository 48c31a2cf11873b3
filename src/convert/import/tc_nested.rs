// SPDX-License-Identifier: MIT OR Apache-2.0
//! prio in a class: its bands are classes below that one, and what leads into the class meets its filters.

use super::tc_class::Class;
use ipnet::IpNet;

use super::tc_filter::{Filter, tos};
use super::tc_made::Made;
use super::tc_prio::Bands;
use crate::text::Mistake;

/// Keys and values of a filter.
type Matches = Vec<(&'static str, String)>;

/// A prio in a class.
pub(super) struct Nest<'a> {
    /// Id of the class.
    pub class: String,
    prio: Made<'a>,
    bands: Bands,
    /// Whether what no filter takes gets there.
    takes_rest: bool,
}

/// Returns whether packets wait in classes of a qdisc.
pub(super) fn has_classes(kind: &str) -> bool {
    let kinds = [
        "htb", "prio", "drr", "ets", "hfsc", "qfq", "cbq", "multiq", "mqprio", "taprio",
    ];
    kinds.contains(&kind)
}

/// Its packets would take another order in one queue.
pub(super) fn not_there(made: &Made, place: &str) -> Mistake {
    let title = format!("`{}` {place} is not imported", made.kind.value);
    let help = "a profile has classes of htb below each other, and a prio directly in a class of htb or prio: write \
                those, or a single queue such as pfifo there";
    Mistake::new(&made.kind.at, title, help)
}

/// Adds the bands of each prio that is directly in a class, and returns these; `default`: the class that takes what
/// no filter does.
pub(super) fn nest<'a>(
    classes: &mut Vec<Class>,
    default: &mut Option<String>,
    all: &[Made<'a>],
) -> Result<Vec<Nest<'a>>, Mistake> {
    let mut nests = Vec::new();
    let mut index = 0;
    while let Some(class) = classes.get(index) {
        index += 1;
        let id = class.id.clone();
        let is_inner = classes.iter().any(|c| c.parent.as_ref() == Some(&id));
        let is_its = |made: &&Made| made.kind.value == "prio" && class.holds(made);
        let Some(prio) = all.iter().find(is_its).filter(|_| !is_inner) else {
            continue;
        };
        let mut prio = prio.clone();
        // As the kernel chooses it: then nothing in the text refers to it.
        let chosen = format!("{:x}:", 0x8001 + nests.len());
        prio.handle.get_or_insert(chosen);
        let bands = Bands::read(&prio)?;
        if classes.iter().any(|class| bands.ids.contains(&class.id)) {
            let help = "its handle is that of another qdisc: give it another one";
            let title = format!("the prio in class {id} has classes of another qdisc");
            return Err(Mistake::new(&prio.kind.at, title, help));
        }
        classes.extend((0..).zip(&bands.ids).map(|(band, own)| Class {
            at: prio.kind.at.clone(),
            id: own.clone(),
            parent: Some(id.clone()),
            priority: Some(band),
            ..Class::default()
        }));
        let takes_rest = default.as_ref() == Some(&id);
        if takes_rest {
            *default = Some(bands.default.clone());
        }
        nests.push(Nest {
            class: id,
            prio,
            bands,
            takes_rest,
        });
    }
    Ok(nests)
}

/// Returns the filters that every packet of the device meets, those of the bands behind those that lead there.
pub(super) fn of_root<'a>(
    all: Vec<Filter<'a>>,
    root: &Made<'a>,
    bands: Option<&Bands>,
    nests: &[Nest<'a>],
    warnings: &mut Vec<String>,
) -> Result<Vec<Filter<'a>>, Mistake> {
    let all = all.into_iter();
    let (mut kept, mut rest): (Vec<_>, Vec<_>) = (all.filter(|f| f.device == root.device))
        .partition(|filter| {
            let parent = filter.parent.as_ref().filter(|_| root.handle.is_some());
            parent.is_none() || parent == root.handle.as_ref()
        });
    if let Some(bands) = bands {
        bands.choose(root, &mut kept);
    }
    for nest in nests {
        let (mut own, other): (Vec<_>, Vec<_>) =
            (rest.into_iter()).partition(|f| f.parent == nest.prio.handle);
        rest = other;
        nest.bands.choose(&nest.prio, &mut own);
        kept = nest.lead_on(&kept, &own)?;
    }
    for Filter { class, parent, .. } in rest {
        let parent = parent.unwrap_or_default();
        warnings.push(format!(
            "a filter to class {class}: it is of {parent}, not of the root"
        ));
    }
    Ok(kept)
}

impl<'a> Nest<'a> {
    /// Leads packets that a filter sends into the class on by prio's filters, then to its default band.
    fn lead_on(
        &self,
        above: &[Filter<'a>],
        own: &[Filter<'a>],
    ) -> Result<Vec<Filter<'a>>, Mistake> {
        let mut out = Vec::new();
        for (place, filter) in above.iter().enumerate() {
            if filter.class != self.class {
                out.push(filter.clone());
                continue;
            }
            let to = |class: &String, matches: &Matches, is_tos: bool| Filter {
                is_tos,
                class: class.clone(),
                matches: matches.clone(),
                ..filter.clone()
            };
            let mut has_rest = true;
            for own in not_of(&above[..place], own) {
                let Some(matches) = both(filter, own)? else {
                    continue;
                };
                out.push(to(&own.class, &matches, own.is_tos));
                has_rest = matches != filter.matches;
                if !has_rest {
                    break;
                }
            }
            if has_rest {
                out.push(to(&self.bands.default, &filter.matches, filter.is_tos));
            }
        }
        if self.takes_rest {
            out.extend(not_of(above, own).cloned());
        }
        Ok(out)
    }
}

/// Filters whose packets none of others has taken.
fn not_of<'f, 'a>(
    others: &'f [Filter<'a>],
    all: &'f [Filter<'a>],
) -> impl Iterator<Item = &'f Filter<'a>> {
    let is_new = |f: &&Filter| others.iter().all(|other| other.matches != f.matches);
    all.iter().filter(is_new)
}

/// Returns the match of packets that two filters match; `None`: there are none.
fn both(first: &Filter, second: &Filter) -> Result<Option<Matches>, Mistake> {
    let mut both = first.matches.clone();
    for (key, value) in &second.matches {
        let same = |(k, _): &&mut (&str, String)| *k == *key || (is_ds(k) && is_ds(key));
        if let Some(new) = net(key, value) {
            let mut nets = both.iter().filter_map(|(key, value)| net(key, value));
            if nets.any(|net| net.addr().is_ipv4() != new.addr().is_ipv4()) {
                return Ok(None);
            }
            if new.prefix_len() == 0 && both.iter().any(|(k, v)| net(k, v).is_some()) {
                continue;
            }
        }
        let Some((key, before)) = both.iter_mut().find(same) else {
            both.push((*key, value.clone()));
            continue;
        };
        if before == value {
            continue;
        }
        if let (Some(old), Some(new)) = (net(key, before), net(key, value)) {
            match (old.contains(&new), new.contains(&old)) {
                (true, _) => *before = value.clone(),
                (_, true) => {}
                _ => return Ok(None),
            }
        } else if let (Some(old), Some(new)) = (ds(key, before), ds(second_key(second), value)) {
            if (old.0 ^ new.0) & old.1 & new.1 != 0 {
                return Ok(None);
            }
            if let Some((k, v)) = tos(old.0 | new.0, old.1 | new.1) {
                (*key, *before) = (k, v);
            }
        } else if let (Some(old), Some(new)) = (number(before), number(value)) {
            if old != new {
                return Ok(None);
            }
        } else {
            let title = format!(
                "a filter of a prio in a class compares `{key}` otherwise than the one that leads there"
            );
            let help = "write one filter for both at the root, to a class for these packets";
            return Err(Mistake::new(&second.at, title, help));
        }
    }
    Ok(Some(both))
}

fn is_ds(key: &str) -> bool {
    matches!(key, "tos" | "dscp")
}

/// Returns the key of the DS field in a filter.
fn second_key(filter: &Filter) -> &'static str {
    let mut keys = filter.matches.iter().map(|(key, _)| *key);
    keys.find(|key| is_ds(key)).unwrap_or_default()
}

fn net(key: &str, value: &str) -> Option<IpNet> {
    let is_address = matches!(key, "source" | "destination");
    value.trim_matches('"').parse().ok().filter(|_| is_address)
}

/// Returns value and mask of the DS field, as `tc_filter::tos` writes them.
fn ds(key: &str, value: &str) -> Option<(i64, i64)> {
    let hex = |text: &str| i64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    match (key, value.trim_matches('"').split_once('/')) {
        ("tos", Some((value, mask))) => Some((hex(value)?, hex(mask)?)),
        ("tos", None) => Some((value.parse().ok()?, 0xff)),
        ("dscp", _) => Some((value.parse::<i64>().ok()? << 2, 0xfc)),
        _ => None,
    }
}

/// Reads a port or a protocol.
fn number(value: &str) -> Option<u32> {
    match value.trim_matches('"') {
        "icmp" => Some(1),
        "tcp" => Some(6),
        "udp" => Some(17),
        number => number.parse().ok(),
    }
}
