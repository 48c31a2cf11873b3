// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the netem in a text, its rate limiter, and the packets it receives.

use super::netem::{Netem, Under};
use super::tc_command::{Made, filters, made};
use super::tc_filter::Filter;
use super::tc_handle::{canonical, major};
use super::tc_shaper::Shaper;
use crate::text::{At, Mistake};

/// The content of a text.
pub(crate) struct Script {
    /// Netems that receive every packet, each on a different device.
    pub netems: Vec<Netem>,
    /// Netems that receive what filters send to their class, with names for the classes.
    pub classes: Vec<(String, Netem)>,
    /// In order of priority.
    pub rules: Vec<ClassRule>,
}

/// Packets of a class, and the filter that selects them.
pub(crate) struct ClassRule {
    pub at: At,
    /// Keys and values of a match.
    pub matches: Vec<(&'static str, String)>,
    pub class: String,
}

pub(crate) fn read(text: &str) -> Result<Script, Mistake> {
    let mut all = made(text)?;
    if !all.iter().any(is_netem) {
        return Err(none(&all));
    }
    let filters = filters(text)?;
    let mut script = Script {
        netems: Vec::new(),
        classes: Vec::new(),
        rules: Vec::new(),
    };
    for i in 0..all.len() {
        if !is_netem(&all[i]) {
            continue;
        }
        let under = under(&all, &all[i]);
        let shaper = match shaper_of(&all, &all[i]) {
            Some((at, below)) => Shaper::read(&mut all[at].clone())?
                .filter(|shaper| shaper.bits() >= 1.0)
                .map(|shaper| Shaper {
                    // A netem below it is its queue.
                    limit: shaper.limit.filter(|_| below),
                    ..shaper
                }),
            None => None,
        };
        let made = &mut all[i];
        let chosen = |filter: &&Filter| {
            Some(&filter.class) == made.parent.as_ref() && filter.device == made.device
        };
        let mut chosen = filters.iter().filter(chosen).peekable();
        if let (Under::Class(class), true) = (&under, chosen.peek().is_some()) {
            let name = format!("class-{}", class.replace(':', "-"));
            let rules = chosen.map(|filter| ClassRule {
                at: filter.at.clone(),
                matches: filter.matches.clone(),
                class: name.clone(),
            });
            script.rules.extend(rules);
            let netem = Netem::parse(text, made, Under::Nothing, shaper)?;
            script.classes.push((name, netem));
            continue;
        }
        let netem = Netem::parse(text, made, under, shaper)?;
        let same = |other: &Netem| other.device == netem.device;
        if script.netems.iter().any(same) {
            let title = match &netem.device {
                Some(device) => format!("{device} has a second netem"),
                None => "a second netem".to_owned(),
            };
            let help = "no filter in the text sends packets to its class: import each separately, and \
                        write a [links.NAME] and a [[rule]] for it (docs/profile.md)";
            return Err(Mistake::new(&all[i].kind.at, title, help));
        }
        script.netems.push(netem);
    }
    // In the order in which tc checks the filters, whatever the order of the classes.
    let place = |rule: &ClassRule| filters.iter().position(|filter| filter.at == rule.at);
    script.rules.sort_by_key(place);
    Ok(script)
}

fn is_netem(made: &Made) -> bool {
    made.kind.value == "netem" && !made.is_class
}

fn none(all: &[Made]) -> Mistake {
    let help = "only netem is imported, with or without a tbf or htb: write dev eth0 root \
                netem ..., or the part from netem on";
    match all.first() {
        Some(first) => {
            let title = format!("`{}` is not netem", first.kind.value);
            Mistake::new(&first.kind.at, title, help)
        }
        None => {
            let start = At {
                source: 0,
                span: 0..0,
            };
            Mistake::new(&start, "there is no command", help)
        }
    }
}

/// Returns its parents, the class before the qdisc.
fn parents<'a>(all: &'a [Made<'a>], made: &Made) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut parent, device) = (made.parent.as_deref(), made.device);
    while let Some(id) = parent {
        let is = |m: &Made| {
            m.device == device
                && m.handle.as_deref().is_some_and(|handle| match m.is_class {
                    true => handle == id,
                    false => major(handle) == major(id),
                })
        };
        let class = all.iter().position(|m| m.is_class && is(m));
        let next = class.or_else(|| all.iter().position(|m| !m.is_class && is(m)));
        match next.filter(|next| !found.contains(next)) {
            Some(next) => {
                found.push(next);
                // The parent of a class may be its qdisc or another class.
                parent = all[next].parent.as_deref();
            }
            None => break,
        }
    }
    found
}

/// Returns the nearest rate limiter above it, or one below, and whether it is below.
fn shaper_of(all: &[Made], netem: &Made) -> Option<(usize, bool)> {
    let shapes =
        |made: &Made| made.kind.value == "tbf" || (made.is_class && made.kind.value == "htb");
    let above = parents(all, netem).into_iter().find(|i| shapes(&all[*i]));
    let below = |made: &Made| {
        let parent = made.parent.as_deref().map(major);
        parent.is_some()
            && parent == netem.handle.as_deref().map(major)
            && made.device == netem.device
    };
    let found = || all.iter().position(|made| shapes(made) && below(made));
    above.map(|i| (i, false)).or_else(|| Some((found()?, true)))
}

/// Returns which packets it receives.
fn under(all: &[Made], netem: &Made) -> Under {
    let Some(parent) = netem.parent.as_deref() else {
        return Under::Nothing;
    };
    let parents = parents(all, netem);
    let qdisc = |id: &str| {
        let of = |made: &&Made| !made.is_class && made.device == netem.device;
        let is = |made: &&Made| made.handle.as_deref().map(major) == Some(major(id));
        all.iter().filter(of).find(is)
    };
    match qdisc(parent) {
        // These have a single class.
        Some(above) if matches!(above.kind.value, "tbf" | "netem") => Under::Nothing,
        Some(above) if above.kind.value == "htb" && is_default(above, parent) => Under::Default,
        None if parents.is_empty() && parent.ends_with(":1") => Under::FirstOf(parent.to_owned()),
        _ => Under::Class(parent.to_owned()),
    }
}

/// Returns whether htb sends packets there that no filter matches.
fn is_default(htb: &Made, class: &str) -> bool {
    let mut options = htb.options.words();
    let given = options
        .find(|word| *word == "default")
        .and_then(|_| options.next());
    given.is_some_and(|minor| canonical(&format!("{}:{minor}", major(class))) == class)
}
