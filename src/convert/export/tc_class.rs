// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of a tree: their numbers, and the links whose packets wait in them.

use std::collections::HashMap;

use crate::profile::{Link, Profile, Rule, ServiceClass, Target};

/// Minor number of the class above all others.
pub(super) const SERVER: u32 = 1;
/// First number for a class or qdisc whose name does not have one.
pub(super) const FIRST_FREE: u32 = 0x10;

/// A link whose packets wait in a class: by default, by its name, or by a rule.
pub(super) struct Use<'a> {
    pub class: &'a str,
    pub link: &'a Link,
}

pub(super) fn without_class(link: &Link) -> Link {
    Link {
        class: None,
        ..link.clone()
    }
}

pub(super) fn target_of<'a>(profile: &'a Profile, number: u32, rule: &Rule) -> Option<&'a Link> {
    match &rule.target {
        Target::Own => Some(profile.direction(number)),
        Target::Named(name) => {
            let named = profile.links.iter().find(|link| link.name == *name);
            named.map(|named| named.direction(number))
        }
        Target::Untouched => None,
    }
}

pub(super) fn class_of<'a>(rule: &'a Rule, link: Option<&'a Link>) -> Option<&'a str> {
    let of_link = link.and_then(|link| link.class.as_deref());
    rule.class.as_deref().or(of_link)
}

/// Returns every link with the class in which its packets wait.
pub(super) fn uses(profile: &Profile, number: u32) -> Vec<Use<'_>> {
    let own = std::iter::once(profile.direction(number));
    let named = profile.links.iter().map(|named| named.direction(number));
    let links = own.chain(named);
    let by_link = links.filter_map(|link| {
        let class = link.class.as_deref()?;
        Some(Use { class, link })
    });
    let rules = profile.rules.iter().filter(|rule| rule.is_for(number));
    let by_rule = rules.filter_map(|rule| {
        let link = target_of(profile, number, rule)?;
        let class = class_of(rule, Some(link))?;
        Some(Use { class, link })
    });
    by_link.chain(by_rule).collect()
}

/// Minor numbers of classes: those in names that import gives, `class-1-10`, and others.
pub(super) struct Ids<'a>(HashMap<&'a str, u32>);

impl<'a> Ids<'a> {
    pub fn new(classes: &'a [ServiceClass]) -> Self {
        let names = || classes.iter().map(|class| class.name.as_str());
        let mut ids: HashMap<_, _> = names()
            .filter_map(|name| Some((name, number_in(name)?)))
            .collect();
        let mut free = FIRST_FREE;
        for name in names() {
            if ids.contains_key(name) {
                continue;
            }
            while ids.values().any(|used| *used == free) {
                free += 1;
            }
            ids.insert(name, free);
        }
        Self(ids)
    }

    pub fn named(&self, class: &str) -> Option<u32> {
        self.0.get(class).copied()
    }

    /// Returns the number of `BOTTLENECK.CLASS`.
    pub fn of(&self, service: &str) -> Option<u32> {
        self.named(service.split_once('.')?.1)
    }
}

/// Returns 0x10 for `class-1-10`.
fn number_in(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("class-1-")?;
    let minor = u32::from(u16::from_str_radix(digits, 16).ok()?);
    (minor > SERVER && format!("{minor:x}") == digits).then_some(minor)
}

/// Returns a note on netems that current kernels do not accept together (check_netem_in_tree() of sch_netem.c).
pub(super) fn copies_beside(uses: &[Use<'_>]) -> Option<&'static str> {
    let netems = uses
        .iter()
        .filter(|used| without_class(used.link) != Link::default());
    let mut classes: Vec<_> = netems.map(|used| used.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let copies = |used: &Use| used.link.duplicate != Link::default().duplicate;
    (classes.len() > 1 && uses.iter().any(copies)).then_some(
        "current kernels reject a netem with `duplicate` beside another one in a tree (\"cannot mix duplicating netems \
         with other netems in tree\")",
    )
}
