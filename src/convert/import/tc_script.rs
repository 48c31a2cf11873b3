// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the netem in a text, its rate limiter, and the packets it receives.

use super::netem::{Netem, Under};
use super::tc_command::{Left, filters, made};
use super::tc_filter::Filter;
use super::tc_limiter::{has_one_class, is_default, parents, qdisc, shaper, shapes, slowest};
use super::tc_made::{Made, in_one_place};
use super::tc_prio::Bands;
use crate::text::{At, Mistake};

/// The content of a text.
pub(crate) struct Script {
    /// Netems that receive every packet that no rule takes, each on a different device.
    pub netems: Vec<Netem>,
    /// Netems that receive what filters send to their class.
    pub classes: Vec<ClassNetem>,
    /// In order of priority.
    pub rules: Vec<ClassRule>,
    pub warnings: Vec<String>,
}

/// A netem in a class.
pub(crate) struct ClassNetem {
    /// Name of the link.
    pub name: String,
    /// As in `1:10`.
    class: String,
    pub netem: Netem,
}

/// Packets of a class, and the filter that selects them.
pub(crate) struct ClassRule {
    pub at: At,
    pub device: Option<String>,
    /// Whether it is prio's choice by ToS.
    pub is_tos: bool,
    /// Keys and values of a match.
    pub matches: Vec<(&'static str, String)>,
    pub to: To,
}

/// Destination of the packets of a class.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The netem of all packets that no rule takes.
    Own,
    /// A netem in a class, by its name.
    Class(String),
    Nothing,
}

impl Script {
    /// Returns all netems.
    pub fn all(&self) -> impl Iterator<Item = &Netem> {
        let of_classes = self.classes.iter().map(|class| &class.netem);
        self.netems.iter().chain(of_classes)
    }

    fn own(&self, device: Option<&str>) -> Option<&Netem> {
        let mut netems = self.netems.iter();
        netems.find(|netem| netem.device.as_deref() == device)
    }
}

/// Reads a script; with `device` only the commands for it.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<Script, Mistake> {
    let Left {
        made: mut all,
        gone,
    } = made(text)?;
    all.retain(|made| device.is_none_or(|device| made.device == Some(device)));
    if !all.iter().any(is_netem) {
        return Err(none(&all));
    }
    let mut script = Script {
        netems: Vec::new(),
        classes: Vec::new(),
        rules: Vec::new(),
        warnings: Vec::new(),
    };
    let place = in_one_place(&mut all, is_netem, "netems")?;
    let filters = filters(text, device, &place, &gone, &mut script.warnings)?;
    let mut filters = of_roots(filters, &all, &mut script.warnings);
    let is_prio = |made: &&Made| made.kind.value == "prio" && !made.is_class;
    for root in all.iter().filter(is_prio).filter(|m| m.parent.is_none()) {
        if all.iter().any(|m| is_netem(m) && m.device == root.device) {
            Bands::read(root)?.choose(root, &mut filters);
        }
    }
    for i in 0..all.len() {
        if !is_netem(&all[i]) {
            continue;
        }
        if parents(&all, &all[i]).iter().any(|i| is_netem(&all[*i])) {
            return Err(below_another(&all[i]));
        }
        let under = under(&all, &all[i]);
        let shaper = slowest(&all, &all[i], &mut script.warnings)?;
        let made = &mut all[i];
        let is_chosen = |class: &&String| {
            let of_it = |f: &Filter| f.class == **class && f.device == made.device;
            filters.iter().any(of_it)
        };
        let class = match &under {
            Under::Class(class) | Under::FirstOf(class) => Some(class),
            _ => None,
        };
        if let Some(class) = class.filter(is_chosen).cloned() {
            let netem = Netem::parse(text, made, Under::Nothing, shaper)?;
            let same = |c: &ClassNetem| c.class == class && c.netem.device == netem.device;
            if script.classes.iter().any(same) {
                return Err(second(&all[i]));
            }
            let name = format!("class-{}", class.replace(':', "-"));
            script.classes.push(ClassNetem { name, class, netem });
            continue;
        }
        let netem = Netem::parse(text, made, under, shaper)?;
        if script.own(netem.device.as_deref()).is_some() {
            return Err(second(&all[i]));
        }
        script.netems.push(netem);
    }
    let names: Vec<_> = script.classes.iter().map(|c| c.name.clone()).collect();
    for class in script.classes.iter_mut().filter(|c| c.netem.is_on_ifb()) {
        // A class of the device beside it may have the same number.
        if names.iter().filter(|name| **name == class.name).count() > 1 {
            class.name += "-down";
        }
    }
    rules(filters, &all, &mut script)?;
    Ok(script)
}

fn second(made: &Made) -> Mistake {
    let title = match made.device {
        Some(device) => format!("{device} has a second netem"),
        None => "a second netem".to_owned(),
    };
    let help = "no filter in the text sends packets to its class: import each separately, and \
                write a [links.NAME] and a [[rule]] for it (docs/profile.md)";
    Mistake::new(&made.kind.at, title, help)
}

/// Returns the mistake of two nested netems. Both act on a packet: netem_dequeue() enqueues due packets into its child.
pub(super) fn below_another(made: &Made) -> Mistake {
    let title = "a netem below another netem";
    let help = "a link has one netem: write one with the options of both, whose delays add up";
    Mistake::new(&made.kind.at, title, help)
}

/// Returns the filters that every packet of a device with a netem meets.
fn of_roots<'a>(
    mut filters: Vec<Filter<'a>>,
    all: &[Made],
    warnings: &mut Vec<String>,
) -> Vec<Filter<'a>> {
    filters.retain(|filter| {
        let qdiscs = || {
            let of_it = |made: &&Made| !made.is_class && made.device == filter.device;
            all.iter().filter(of_it)
        };
        let root = qdiscs().find(|made| made.parent.is_none());
        let has_filters = root.is_none_or(|root| !has_one_class(root));
        if !has_filters || !qdiscs().any(is_netem) {
            return false;
        }
        let parent = filter.parent.as_deref().unwrap_or_default();
        let at_root = match root.and_then(|root| root.handle.as_deref()) {
            Some(handle) => parent.is_empty() || parent == handle,
            None => parent.is_empty() || parent.ends_with(':'),
        };
        if !at_root {
            let class = &filter.class;
            warnings.push(format!(
                "a filter to class {class}: it is of {parent}, not of the root"
            ));
        }
        at_root
    });
    filters
}

/// Makes a rule of each filter, in their order: a filter to a class without a netem takes packets from
/// those behind it.
fn rules(filters: Vec<Filter>, all: &[Made], script: &mut Script) -> Result<(), Mistake> {
    let mut rules = Vec::new();
    for filter in filters {
        let device = filter.device;
        let of_class =
            |c: &&ClassNetem| c.class == filter.class && c.netem.device.as_deref() == device;
        let named = script.classes.iter().find(of_class);
        let own = script.own(device).map(|netem| &netem.under);
        let (default, rest) = match own {
            Some(Under::Default) => (To::Own, To::Own),
            Some(_) => (To::Nothing, To::Own),
            None => (To::Nothing, To::Nothing),
        };
        // That link receives every packet, which a warning says.
        if filter.is_tos && named.is_none() && matches!(own, Some(Under::Class(_))) {
            continue;
        }
        let is_in = |made: &Made| {
            made.device == device && made.parent.as_deref() == Some(filter.class.as_str())
        };
        let root = qdisc(all, device, &filter.class);
        let to = if let Some(named) = named {
            To::Class(named.name.clone())
        } else if root.is_some_and(|root| is_default(root, &filter.class))
            || (!filter.class.ends_with(':') && all.iter().any(|made| made.is_class && is_in(made)))
        {
            // htb also sends there what a filter sends to a class above others.
            default
        } else if all
            .iter()
            .filter(|made| is_netem(made))
            .any(|netem| is_in(netem) || parents(all, netem).iter().any(|i| is_in(&all[*i])))
        {
            script.warnings.push(format!(
                "a filter to class {}: netem is in a class of a qdisc below it",
                filter.class
            ));
            continue;
        } else {
            To::Nothing
        };
        if to == To::Nothing {
            unlimited(all, device, &filter.class, &mut script.warnings)?;
        }
        // No other one of them matches the same packets.
        if filter.is_tos && to == rest {
            continue;
        }
        rules.push(ClassRule {
            at: filter.at,
            device: device.map(str::to_owned),
            is_tos: filter.is_tos,
            matches: filter.matches,
            to,
        });
    }
    // What no filter takes passes as well, where its class has no netem.
    for root in all.iter().filter(|m| !m.is_class && m.parent.is_none()) {
        let has_netem = (script.classes.iter()).any(|c| c.netem.device.as_deref() == root.device);
        if !has_netem || script.own(root.device).is_some() {
            continue;
        }
        let mut ids = (all.iter().filter(|m| m.device == root.device)).filter_map(Made::class);
        if let Some(default) = ids.find(|id| is_default(root, id)) {
            unlimited(all, root.device, default, &mut script.warnings)?;
        }
    }
    // The last ones have no effect if they lead where the rest goes, too.
    let mut ended = Vec::new();
    for rule in rules.into_iter().rev() {
        let rest = match script.own(rule.device.as_deref()) {
            Some(_) => To::Own,
            None => To::Nothing,
        };
        if rule.to == rest && !ended.contains(&rule.device) {
            continue;
        }
        ended.push(rule.device.clone());
        script.rules.push(rule);
    }
    script.rules.reverse();
    Ok(())
}

/// Says what limits the rate of a class whose packets pass without a netem: the profile does not have it.
fn unlimited(
    all: &[Made],
    device: Option<&str>,
    class: &str,
    warnings: &mut Vec<String>,
) -> Result<(), Mistake> {
    let is_of_it = |made: &Made| made.device == device && made.class() == Some(class);
    let limit = all.iter().position(|made| is_of_it(made) && shapes(made));
    if let Some(limit) = limit
        && let Some(shaper) = shaper(all, limit)?
    {
        let (kind, bits) = (&shaper.kind, shaper.bits());
        let text = format!("the {kind} of {bits} bit/s in class {class}, which has no netem");
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    Ok(())
}

pub(super) fn is_netem(made: &Made) -> bool {
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

/// Returns which packets it receives.
fn under(all: &[Made], netem: &Made) -> Under {
    let mut class = netem.parent.as_deref();
    // As often as there are qdiscs: parents may form a circle.
    for _ in all {
        let above = class.and_then(|class| qdisc(all, netem.device, class));
        match above.filter(|above| has_one_class(above)) {
            Some(above) => class = above.parent.as_deref(),
            None => break,
        }
    }
    let Some(class) = class else {
        return Under::Nothing;
    };
    let is_made =
        |m: &Made| m.is_class && m.device == netem.device && m.handle.as_deref() == Some(class);
    match qdisc(all, netem.device, class) {
        Some(root) if root.parent.is_none() && is_default(root, class) => Under::Default,
        None if !all.iter().any(is_made) && class.ends_with(":1") => {
            Under::FirstOf(class.to_owned())
        }
        _ => Under::Class(class.to_owned()),
    }
}
