// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate limiters in a text, and those that every packet of a netem meets.

use super::tc_handle::{canonical, major};
use super::tc_made::Made;
use super::tc_prio::Bands;
use super::tc_shaper::Shaper;
use crate::text::Mistake;

/// Returns its parents, the class before the qdisc.
pub(super) fn parents<'a>(all: &'a [Made<'a>], made: &Made) -> Vec<usize> {
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

pub(super) fn shapes(made: &Made) -> bool {
    made.kind.value == "tbf" || (made.is_class && made.kind.value == "htb")
}

pub(super) fn has_one_class(qdisc: &Made) -> bool {
    matches!(qdisc.kind.value, "tbf" | "netem")
}

/// Returns the qdisc of a class.
pub(super) fn qdisc<'a>(
    all: &'a [Made<'a>],
    device: Option<&str>,
    class: &str,
) -> Option<&'a Made<'a>> {
    let is = |made: &&Made| {
        let handle = made.handle.as_deref().map(major);
        !made.is_class && made.device == device && handle == Some(major(class))
    };
    all.iter().find(is)
}

/// Returns whether htb or prio sends packets there that no filter matches, prio those of priority 0.
pub(super) fn is_default(qdisc: &Made, class: &str) -> bool {
    if qdisc.kind.value == "prio" {
        return Bands::read(qdisc).is_ok_and(|bands| bands.default == class);
    }
    let mut options = qdisc.options.words();
    let given = options
        .find(|word| *word == "default")
        .and_then(|_| options.next());
    let is = |minor: &str| canonical(&format!("{}:{minor}", major(class))) == class;
    qdisc.kind.value == "htb" && given.is_some_and(is)
}

/// Reads a rate limiter, a class of htb with what it sends at most as its ceil.
pub(super) fn shaper(all: &[Made], at: usize) -> Result<Option<Shaper>, Mistake> {
    let Some(mut shaper) = Shaper::read(&mut all[at].clone())? else {
        return Ok(None);
    };
    if all[at].is_class {
        let above = parents(all, &all[at]).into_iter().map(|i| &all[i]);
        let above: Vec<_> = above.take_while(|made| made.is_class).collect();
        let mut lent = 0.0;
        for class in above.into_iter().rev() {
            let lender = Shaper::read(&mut class.clone())?;
            lent = lender.map_or(0.0, |lender| lender.most(lent));
        }
        shaper.ceil = Some(shaper.most(lent));
    }
    Ok(Some(shaper))
}

/// Returns the slowest rate limiter that every packet of a netem meets: netem_dequeue() enqueues due packets
/// into what is below it.
pub(super) fn slowest(
    all: &[Made],
    netem: &Made,
    warnings: &mut Vec<String>,
) -> Result<Option<Shaper>, Mistake> {
    let parents = parents(all, netem);
    // Of classes of one htb the lowest, which includes those above it.
    let is_lowest = |place: &usize| {
        let is_class = |place: usize| all[parents[place]].is_class;
        !is_class(*place) || *place == 0 || !is_class(*place - 1)
    };
    let above = (0..parents.len())
        .filter(is_lowest)
        .map(|place| parents[place]);
    let above = above.filter(|i| shapes(&all[*i])).map(|i| (i, false));
    let below = below(all, netem, warnings).into_iter().map(|i| (i, true));
    let mut found = Vec::new();
    for (at, is_below) in above.chain(below) {
        let Some(shaper) = shaper(all, at)?.filter(|shaper| shaper.bits() >= 1.0) else {
            continue;
        };
        found.push(Shaper {
            // A netem below it is its queue.
            limit: shaper.limit.filter(|_| is_below),
            ..shaper
        });
    }
    found.sort_by(|one, other| one.bits().total_cmp(&other.bits()));
    let mut found = found.into_iter();
    let slowest = found.next();
    if let Some(slowest) = &slowest {
        let named = |shaper: &Shaper| format!("the {} of {} bit/s", shaper.kind, shaper.bits());
        warnings.extend(found.map(|other| {
            format!(
                "{} beside netem: {} is no faster",
                named(&other),
                named(slowest)
            )
        }));
    }
    Ok(slowest)
}

/// Returns the rate limiters below a netem, one below the other; the others have a warning.
fn below(all: &[Made], netem: &Made, warnings: &mut Vec<String>) -> Vec<usize> {
    let is_below = |made: &Made, upper: &Made| {
        is_in(made, upper) && (!upper.is_class || made.parent == upper.handle)
    };
    let is_leaf = |class: &Made| !all.iter().any(|m| m.is_class && is_below(m, class));
    let (mut path, mut upper) = (Vec::new(), netem);
    while let Some(lower) = all.iter().position(|m| !m.is_class && is_below(m, upper))
        && !path.contains(&lower)
    {
        path.push(lower);
        upper = &all[lower];
        if upper.kind.value == "htb" {
            let is_its = |m: &Made| m.is_class && is_in(m, upper);
            let mut leaves = (0..all.len()).filter(|i| is_its(&all[*i]) && is_leaf(&all[*i]));
            let (Some(leaf), None) = (leaves.next(), leaves.next()) else {
                break;
            };
            if !is_default(upper, all[leaf].handle.as_deref().unwrap_or_default()) {
                break;
            }
            path.push(leaf);
            upper = &all[leaf];
        } else if !has_one_class(upper) {
            break;
        }
    }
    // Every other class and bucket below it, but for the classes that lend to one of those.
    let known: Vec<_> = path.iter().flat_map(|i| parents(all, &all[*i])).collect();
    let (mut missed, mut qdiscs) = (Vec::new(), vec![netem]);
    for _ in all {
        let Some(upper) = qdiscs.pop() else { break };
        for (i, made) in all.iter().enumerate().filter(|(_, m)| is_in(m, upper)) {
            if !made.is_class {
                qdiscs.push(made);
            }
            if shapes(made) && !path.contains(&i) && !known.contains(&i) {
                let id = made.handle.as_ref().or(made.parent.as_ref());
                missed.push(format!("{} {}", made.kind.value, id.map_or("", |id| id)));
            }
        }
    }
    if !missed.is_empty() {
        let missed = missed.join(", ");
        warnings.push(format!(
            "rate limiters below netem that not every packet meets: {missed}"
        ));
    }
    path.retain(|i| shapes(&all[*i]));
    path
}

/// Returns whether its parent is this qdisc, or a class of it.
pub(super) fn is_in(made: &Made, qdisc: &Made) -> bool {
    let parent = made.parent.as_deref().map(major);
    let own = qdisc.handle.as_deref().map(major);
    made.device == qdisc.device && parent.is_some() && parent == own
}
