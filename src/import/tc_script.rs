// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which netem a text has, what gives it a rate, and which packets it sees.

use super::netem::{Netem, Under};
use super::tc_command::{Made, made};
use super::tc_shaper::Shaper;
use crate::text::{At, Mistake};

/// The netems of a text, each of another device.
pub(super) fn netems(text: &str) -> Result<Vec<Netem>, Mistake> {
    let mut all = made(text)?;
    if !all.iter().any(is_netem) {
        return Err(none(&all));
    }
    let mut netems: Vec<Netem> = Vec::new();
    for i in 0..all.len() {
        if !is_netem(&all[i]) {
            continue;
        }
        let under = under(&all, &all[i]);
        let shaper = match shaper_of(&all, &all[i]) {
            Some((at, below)) => Shaper::read(&mut all[at])?.map(|shaper| Shaper {
                // A netem below it is its queue.
                limit: shaper.limit.filter(|_| below),
                ..shaper
            }),
            None => None,
        };
        let netem = Netem::parse(text, &mut all[i], under, shaper)?;
        if let Some(other) = netems.iter().find(|other| other.device == netem.device) {
            let title = match &other.device {
                Some(device) => format!("{device} has a second netem"),
                None => "a second netem".to_owned(),
            };
            let help = "import each alone: a profile of its own, or a [links.NAME] with a [[rule]] \
                        (docs/profile.md)";
            return Err(Mistake::new(&all[i].kind.at, title, help));
        }
        netems.push(netem);
    }
    Ok(netems)
}

fn is_netem(made: &Made) -> bool {
    made.kind.value == "netem" && !made.is_class
}

fn none(all: &[Made]) -> Mistake {
    let help = "only netem is imported, alone or with the tbf or htb beside it: write dev eth0 root \
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

/// `1:` of `1:10`.
fn major(id: &str) -> &str {
    id.split(':').next().unwrap_or(id)
}

/// What its parent is, the class before the qdisc.
fn parents<'a>(all: &'a [Made<'a>], made: &Made) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut parent, device) = (made.parent, made.device);
    while let Some(id) = parent {
        let is = |m: &Made| {
            m.device == device
                && m.handle.is_some_and(|handle| match m.is_class {
                    true => handle == id,
                    false => major(handle) == major(id),
                })
        };
        let class = all.iter().position(|m| m.is_class && is(m));
        let next = class.or_else(|| all.iter().position(|m| !m.is_class && is(m)));
        match next.filter(|next| !found.contains(next)) {
            Some(next) => {
                found.push(next);
                // A class may say its qdisc as its parent, or another class.
                parent = all[next].parent;
            }
            None => break,
        }
    }
    found
}

/// The nearest one above it, else one below, and whether it is that.
fn shaper_of(all: &[Made], netem: &Made) -> Option<(usize, bool)> {
    let shapes =
        |made: &Made| made.kind.value == "tbf" || (made.is_class && made.kind.value == "htb");
    let above = parents(all, netem).into_iter().find(|i| shapes(&all[*i]));
    let below = |made: &Made| {
        let parent = made.parent.map(major);
        parent.is_some() && parent == netem.handle.map(major) && made.device == netem.device
    };
    let found = || all.iter().position(|made| shapes(made) && below(made));
    above.map(|i| (i, false)).or_else(|| Some((found()?, true)))
}

/// Which packets come to it.
fn under(all: &[Made], netem: &Made) -> Under {
    let Some(parent) = netem.parent else {
        return Under::Nothing;
    };
    let parents = parents(all, netem);
    let qdisc = |id: &str| {
        let of = |made: &&Made| !made.is_class && made.device == netem.device;
        let is = |made: &&Made| made.handle.map(major) == Some(major(id));
        all.iter().filter(of).find(is)
    };
    match qdisc(parent) {
        // They have one class.
        Some(above) if matches!(above.kind.value, "tbf" | "netem") => Under::Nothing,
        Some(above) if above.kind.value == "htb" && is_default(above, parent) => Under::Default,
        None if parents.is_empty() && parent.ends_with(":1") => Under::FirstOf(parent.to_owned()),
        _ => Under::Class(parent.to_owned()),
    }
}

/// Whether htb sends there what no filter takes.
fn is_default(htb: &Made, class: &str) -> bool {
    let minor = class.rsplit(':').next().unwrap_or(class);
    let mut options = htb.options.words();
    let given = options
        .find(|word| *word == "default")
        .and_then(|_| options.next());
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    given
        .and_then(number)
        .is_some_and(|default| Some(default) == number(minor))
}
